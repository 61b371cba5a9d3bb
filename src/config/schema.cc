#include "config/schema.h"

#include <algorithm>

#include "stoker/text.h"

namespace stoker::config {
namespace {

// How a path relates to the key of a setting.
struct PathMatch {
  bool is_same = false;
  bool is_above = false;       // the path is a group that contains the key
  std::string_view next = {};  // the key's segment after the path
};

// Compares segment by segment without copies, because every key is compared with all settings.
PathMatch match_path(std::string_view pattern, std::string_view path) {
  while (!path.empty()) {
    if (pattern.empty()) return {};
    const std::string_view part = pattern.substr(0, pattern.find('.'));
    const std::string_view name = path.substr(0, path.find('.'));
    if (part != "*" && part != name) return {};
    pattern.remove_prefix(std::min(part.size() + 1, pattern.size()));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
  }
  if (pattern.empty()) return {.is_same = true};
  return {.is_above = true, .next = pattern.substr(0, pattern.find('.'))};
}

std::vector<std::string_view> segments(std::string_view path) {
  return path.empty() ? std::vector<std::string_view>() : split(path, '.');
}

}  // namespace

bool is_below(std::string_view path, std::string_view prefix) {
  return path == prefix || (path.starts_with(prefix) && path[prefix.size()] == '.');
}

bool matches(std::string_view pattern, std::string_view path) { return match_path(pattern, path).is_same; }

std::string variable_name(std::string_view path) {
  std::string name;
  for (char c : path) {
    const bool is_lower = c >= 'a' && c <= 'z';
    name += c == '.' || c == '-' ? '_' : is_lower ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

bool is_name(std::string_view text) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kRest = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-";
  return !text.empty() && text.size() <= 64 && kFirst.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(kRest) == std::string_view::npos;
}

KeyKind Schema::find(std::string_view path) const {
  KeyKind kind;
  for (const Setting& setting : settings_) {
    const PathMatch found = match_path(setting.key, path);
    if (found.is_same) kind.setting = &setting;
    if (!found.is_above) continue;
    kind.is_group = true;
    kind.allows_any_name = kind.allows_any_name || found.next == "*";
  }
  return kind;
}

std::vector<std::string_view> Schema::children(std::string_view path) const {
  std::vector<std::string_view> found;
  for (const Setting& setting : settings_) {
    const PathMatch above = match_path(setting.key, path);
    if (!above.is_above || above.next == "*") continue;
    if (std::find(found.begin(), found.end(), above.next) == found.end()) found.push_back(above.next);
  }
  return found;
}

std::string Schema::unknown_key(std::string_view path) const {
  std::string known;
  std::string_view wrong = path;
  for (std::string_view name : segments(path)) {
    const std::string longer = known.empty() ? std::string(name) : format("{}.{}", known, name);
    const KeyKind kind = find(longer);
    wrong = name;
    if (!kind.setting && !kind.is_group) break;
    known = longer;
  }
  const std::vector<std::string_view> siblings = children(known);
  if (closest(wrong, siblings).empty()) {
    // The key exists elsewhere.
    for (const Setting& setting : settings_) {
      if (segments(setting.key).back() == wrong && setting.key.find('*') == std::string_view::npos) {
        return format("unknown key '{}'; did you mean '{}'?", printable(wrong), setting.key);
      }
    }
  }
  return format("unknown key '{}'{}", printable(wrong), suggestion(wrong, siblings));
}

std::string Schema::from_variable(std::string_view name, std::span<const std::string> known) const {
  for (const Setting& setting : settings_) {
    if (setting.key.find('*') == std::string_view::npos && variable_name(setting.key) == name) {
      return std::string(setting.key);
    }
  }
  for (const std::string& path : known) {
    if (find(path).setting && variable_name(path) == name) return path;
  }
  for (const Setting& setting : settings_) {
    const std::size_t star = setting.key.find('*');
    if (star == std::string_view::npos) continue;
    const std::string before = variable_name(setting.key.substr(0, star));
    const std::string after = variable_name(setting.key.substr(star + 1));
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
      continue;
    const std::string_view chosen = name.substr(before.size(), name.size() - before.size() - after.size());
    return format("{}{}{}", setting.key.substr(0, star),
                  setting.names == Names::as_written ? std::string(chosen) : to_lower(chosen),
                  setting.key.substr(star + 1));
  }
  return "";
}

}  // namespace stoker::config
