#include "config/schema.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::config {
namespace {

// The segments of `pattern` fit the first segments of `path`, and there are no fewer of them in `path`.
bool begins_with(const std::vector<std::string_view>& path, const std::vector<std::string_view>& pattern) {
  if (pattern.size() > path.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != "*" && pattern[i] != path[i]) return false;
  }
  return true;
}

std::vector<std::string_view> segments(std::string_view path) {
  return path.empty() ? std::vector<std::string_view>() : split(path, '.');
}

}  // namespace

bool is_below(std::string_view path, std::string_view prefix) {
  return path == prefix || (path.starts_with(prefix) && path[prefix.size()] == '.');
}

bool matches(std::string_view pattern, std::string_view path) {
  const auto parts = segments(pattern);
  const auto names = segments(path);
  return parts.size() == names.size() && begins_with(names, parts);
}

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
  const auto names = segments(path);
  KeyKind kind;
  for (const Setting& setting : settings_) {
    const auto parts = segments(setting.key);
    if (parts.size() == names.size() && begins_with(names, parts)) kind.setting = &setting;
    if (parts.size() <= names.size()) continue;
    const std::vector<std::string_view> head(parts.begin(),
                                             parts.begin() + static_cast<std::ptrdiff_t>(names.size()));
    if (!begins_with(names, head)) continue;
    kind.is_group = true;
    kind.takes_names = kind.takes_names || parts[names.size()] == "*";
  }
  return kind;
}

std::vector<std::string_view> Schema::children(std::string_view path) const {
  const auto names = segments(path);
  std::vector<std::string_view> found;
  for (const Setting& setting : settings_) {
    const auto parts = segments(setting.key);
    if (parts.size() <= names.size()) continue;
    const std::vector<std::string_view> head(parts.begin(),
                                             parts.begin() + static_cast<std::ptrdiff_t>(names.size()));
    const std::string_view child = parts[names.size()];
    if (child == "*" || !begins_with(names, head)) continue;
    if (std::find(found.begin(), found.end(), child) == found.end()) found.push_back(child);
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
    // A key that exists, only somewhere else.
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
    return format("{}{}{}", setting.key.substr(0, star), to_lower(chosen), setting.key.substr(star + 1));
  }
  return "";
}

}  // namespace stoker::config
