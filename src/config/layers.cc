#include "config/layers.h"

#include <algorithm>
#include <utility>

#include "config/expansion.h"
#include "config/yaml_text.h"
#include "stoker/text.h"

namespace stoker::config {
namespace {

constexpr std::string_view kPrefix = "STOKER_SET_";

std::string below(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : format("{}.{}", path, name);
}

}  // namespace

Origin EffectiveConfig::origin(std::string_view key) const {
  if (const auto entry = entries_.find(key); entry != entries_.end()) return entry->second.origin;
  const auto group = groups_.find(key);
  return group == groups_.end() ? Origin{} : group->second;
}

std::vector<std::string> EffectiveConfig::names(std::string_view path) const {
  std::vector<std::string> found;
  const std::string prefix = format("{}.", path);
  const auto take = [&](std::string_view key) {
    if (!key.starts_with(prefix)) return;
    const std::string_view rest = key.substr(prefix.size());
    found.emplace_back(rest.substr(0, rest.find('.')));
  };
  for (const auto& [key, entry] : entries_) take(key);
  for (const auto& [key, origin] : groups_) take(key);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Layers::Layers(const Schema& schema, std::map<std::string, std::string> variables, ErrorList& errors)
    : schema_(schema), variables_(std::move(variables)), errors_(errors) {}

void Layers::add_document(const Document& document) {
  const Origin start{document.source, document.root.offset};
  file_ = start;
  if (document.root.kind == Node::Kind::null) {
    errors_.add(start, "the file is empty");
  } else if (document.root.kind != Node::Kind::map) {
    errors_.add(start, "expected keys and values, such as 'name: resnet50'");
  } else {
    add_map("", document.root, document.source);
  }
}

void Layers::add_map(const std::string& path, const Node& map, const std::shared_ptr<const Source>& source) {
  for (const Member& member : map.members) {
    if (errors_.is_full()) return;
    add_member(below(path, member.key), member, source);
  }
}

void Layers::add_member(const std::string& path, const Member& member,
                        const std::shared_ptr<const Source>& source) {
  const Origin key_origin{source, member.offset};
  const std::size_t dot = path.size() - member.key.size();
  const std::string parent = dot == 0 ? "" : path.substr(0, dot - 1);
  if (schema_.find(parent).allows_any_name && schema_.children(parent).empty() && !is_name(member.key)) {
    return errors_.add(key_origin, format("'{}' is not a name: letters, digits, '_' and '-' only, at most 64",
                                          printable(member.key)));
  }
  // A dot in a key would look like a path.
  const KeyKind kind = member.key.find('.') == std::string::npos ? schema_.find(path) : KeyKind{};
  if (!kind.setting && !kind.is_group) {
    const bool is_path = member.key.find('.') != std::string::npos && schema_.find(path).setting;
    if (!is_path) return errors_.add(key_origin, schema_.unknown_key(path));
    return errors_.add(key_origin, format("unknown key '{}'; write a path as nested keys", member.key));
  }
  if (member.value.kind == Node::Kind::null) {
    erase(path);
  } else if (member.value.kind == Node::Kind::map && kind.is_group) {
    // The map replaces a scalar (`run: ...`).
    if (kind.setting) assignments_.erase(path);
    add_groups(path, key_origin);
    add_map(path, member.value, source);
  } else if (kind.setting) {
    assign(path, {kind.setting, member.value, Origin{source, member.value.offset}, key_origin});
  } else {
    const std::vector<std::string_view> keys = schema_.children(path);
    errors_.add({source, member.value.offset},
                format("{}: expected keys and values, such as '{}: {{{}: ...}}'", path, member.key,
                       keys.empty() ? "name" : keys.front()));
  }
}

void Layers::add_environment(std::span<const std::string> environment) {
  std::vector<std::string> known;
  for (const auto& [path, assignment] : assignments_) known.push_back(path);
  for (const std::string& variable : environment) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name = variable.substr(0, equals);
    const auto source = std::make_shared<const Source>(Layer::environment, printable(name), "");
    const std::string path = schema_.from_variable(name.substr(kPrefix.size()), known);
    if (path.empty()) {
      std::vector<std::string> names;
      for (const Setting& setting : schema_.settings())
        names.push_back(std::string(kPrefix) + variable_name(setting.key));
      const std::vector<std::string_view> views(names.begin(), names.end());
      errors_.add({source, 0}, format("unknown setting{}", suggestion(name, views)));
    } else {
      add_text(path, equals < variable.size() ? std::string_view(variable).substr(equals + 1) : "", source);
    }
  }
}

void Layers::add_flags(std::span<const std::string> flags, std::string_view label) {
  for (const std::string& flag : flags) {
    const std::size_t equals = flag.find('=');
    const std::string path(trim(flag.substr(0, std::min(equals, flag.size()))));
    const auto source =
        std::make_shared<const Source>(Layer::flag, format("{} {}", label, printable(path)), "");
    if (equals == std::string::npos || path.empty()) {
      errors_.add({source, 0}, "expected KEY.PATH=VALUE, such as --set params.lr=0.2");
      continue;
    }
    const KeyKind kind = schema_.find(path);
    bool has_names = true;
    for (std::string_view name : split(path, '.')) has_names = has_names && is_name(name);
    if (!has_names || (!kind.setting && !kind.is_group)) {
      errors_.add({source, 0}, schema_.unknown_key(path));
    } else {
      add_text(path, std::string_view(flag).substr(equals + 1), source);
    }
  }
}

void Layers::add_text(const std::string& path, std::string_view text,
                      const std::shared_ptr<const Source>& source) {
  const KeyKind kind = schema_.find(path);
  const Origin origin{source, 0};
  if (text.size() > Limits{}.bytes) return errors_.add(origin, "the value is longer than 1 MB");
  if (const auto bad = find_bad_text(text)) return errors_.add(origin, bad->text);
  if (text == "null" || text == "~") return erase(path);
  if (!kind.setting) {
    const std::string first(schema_.children(path).empty() ? "NAME" : schema_.children(path).front());
    return errors_.add(origin,
                       format("{} is a group; set one of its keys, such as {}.{}", path, path, first));
  }
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::string(text);
  // A list is parsed as YAML. Everything else is used verbatim, so that no double quoting is needed.
  if (kind.setting->type == Type::numbers) {
    const auto list = std::make_shared<const Source>(source->layer(), source->name(), std::string(text));
    const std::optional<Node> parsed = parse_yaml(list, errors_);
    if (!parsed) return;
    node = *parsed;
  }
  assign(path, {kind.setting, std::move(node), origin, origin});
}

void Layers::assign(const std::string& path, Assignment assignment) {
  // A scalar replaces a map of the same name (`run` and `run.shell`), and vice versa.
  erase(path);
  for (std::size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0;
       dot = path.rfind('.', dot - 1)) {
    assignments_.erase(path.substr(0, dot));
  }
  const std::size_t last = path.rfind('.');
  if (last != std::string::npos) add_groups(std::string_view(path).substr(0, last), assignment.key_origin);
  assignments_.insert_or_assign(path, std::move(assignment));
}

void Layers::erase(const std::string& path) {
  std::erase_if(assignments_, [&](const auto& entry) { return is_below(entry.first, path); });
  std::erase_if(groups_, [&](const auto& entry) { return is_below(entry.first, path); });
}

void Layers::add_groups(std::string_view path, const Origin& origin) {
  for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1)) {
    groups_.emplace(path.substr(0, end), origin);
  }
  groups_.emplace(path, origin);
}

EffectiveConfig Layers::resolve() {
  EffectiveConfig effective;
  effective.groups_ = groups_;
  Expansion expansion(*this);
  for (const auto& [path, assignment] : assignments_) {
    const std::optional<Node> node = expansion.expand(path);
    if (!node) continue;
    Result<Value> value = read_value(*assignment.setting, *node);
    if (value.ok()) {
      effective.entries_.emplace(path, Entry{assignment.setting, std::move(*value), assignment.origin});
    } else {
      errors_.add(assignment.origin, format("{}: {}", path, value.error().message()));
    }
  }
  require(effective);
  return effective;
}

// Adds defaults, and an error for each missing required setting.
void Layers::require(EffectiveConfig& effective) {
  for (const Setting& setting : schema_.settings()) {
    const std::size_t star = setting.key.find('*');
    std::vector<std::string> paths = {std::string(setting.key)};
    if (star != std::string_view::npos) {
      paths.clear();
      if (star + 1 == setting.key.size()) continue;  // a name without nested settings has no default
      for (const std::string& name : effective.names(setting.key.substr(0, star - 1))) {
        paths.push_back(format("{}{}{}", setting.key.substr(0, star), name, setting.key.substr(star + 1)));
      }
    }
    for (const std::string& path : paths) {
      if (assignments_.contains(path)) continue;
      const std::size_t dot = path.rfind('.');
      const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
      if (!setting.fallback.empty()) {
        Node node;
        node.kind = Node::Kind::scalar;
        node.text = std::string(setting.fallback);
        Result<Value> value = read_value(setting, node);
        STOKER_CHECK(value.ok());
        effective.entries_.emplace(path, Entry{&setting, std::move(*value), Origin{}});
      } else if (setting.is_required() && (parent.empty() || groups_.contains(parent))) {
        const auto group = groups_.find(parent);
        errors_.add(group == groups_.end() ? file_.value_or(Origin{}) : group->second,
                    format("{} is missing: {}", path, setting.help));
      }
    }
  }
}

}  // namespace stoker::config
