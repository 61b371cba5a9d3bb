#include "config/layers.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/expansion.h"
#include "config/yaml_text.h"

namespace stoker::config {
namespace {

constexpr std::string_view kPrefix = "STOKER_SET_";

std::string below(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : format("{}.{}", path, name);
}

}  // namespace

Origin Effective::origin(std::string_view key) const {
  if (const auto entry = entries_.find(key); entry != entries_.end()) return entry->second.origin;
  const auto group = groups_.find(key);
  return group == groups_.end() ? Origin{} : group->second;
}

std::vector<std::string> Effective::names(std::string_view path) const {
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

Layers::Layers(const Schema& schema, std::map<std::string, std::string> variables, Mistakes& mistakes)
    : schema_(schema), variables_(std::move(variables)), mistakes_(mistakes) {}

void Layers::add_document(const Document& document) {
  const Origin start{document.source, document.root.offset};
  file_ = start;
  if (document.root.kind == Node::Kind::null) {
    mistakes_.add(start, "the file is empty");
  } else if (document.root.kind != Node::Kind::map) {
    mistakes_.add(start, "wants keys and values, as in 'name: resnet50'");
  } else {
    add_map("", document.root, document.source);
  }
}

void Layers::add_map(const std::string& path, const Node& map, const std::shared_ptr<const Source>& source) {
  for (const Member& member : map.members) {
    if (mistakes_.is_full()) return;
    add_member(below(path, member.key), member, source);
  }
}

void Layers::add_member(const std::string& path, const Member& member,
                        const std::shared_ptr<const Source>& source) {
  const Origin key_origin{source, member.offset};
  const std::size_t dot = path.size() - member.key.size();
  const std::string parent = dot == 0 ? "" : path.substr(0, dot - 1);
  if (schema_.find(parent).takes_names && schema_.children(parent).empty() && !is_name(member.key)) {
    return mistakes_.add(key_origin, format("'{}' is no name: letters, digits, '_' and '-' only, at most 64",
                                            printable(member.key)));
  }
  // A dot in a key would be taken for a path.
  const KeyKind kind = member.key.find('.') == std::string::npos ? schema_.find(path) : KeyKind{};
  if (!kind.setting && !kind.is_group) {
    const bool is_path = member.key.find('.') != std::string::npos && schema_.find(path).setting;
    if (!is_path) return mistakes_.add(key_origin, schema_.unknown_key(path));
    return mistakes_.add(key_origin,
                         format("unknown key '{}'; a path is written as nested keys", member.key));
  }
  if (member.value.kind == Node::Kind::null) {
    erase(path);
  } else if (member.value.kind == Node::Kind::map && kind.is_group) {
    // A value there (`run: ...`) is replaced by the map.
    if (kind.setting) assignments_.erase(path);
    add_groups(path, key_origin);
    add_map(path, member.value, source);
  } else if (kind.setting) {
    assign(path, {kind.setting, member.value, Origin{source, member.value.offset}, key_origin});
  } else {
    const std::vector<std::string_view> keys = schema_.children(path);
    mistakes_.add({source, member.value.offset},
                  format("{}: wants keys and values, as in '{}: {{{}: ...}}'", path, member.key,
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
      mistakes_.add({source, 0}, format("no such setting{}", suggestion(name, views)));
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
      mistakes_.add({source, 0}, "wants KEY.PATH=VALUE, as in --set params.lr=0.2");
      continue;
    }
    const KeyKind kind = schema_.find(path);
    bool has_names = true;
    for (std::string_view name : split(path, '.')) has_names = has_names && is_name(name);
    if (!has_names || (!kind.setting && !kind.is_group)) {
      mistakes_.add({source, 0}, schema_.unknown_key(path));
    } else {
      add_text(path, std::string_view(flag).substr(equals + 1), source);
    }
  }
}

void Layers::add_text(const std::string& path, std::string_view text,
                      const std::shared_ptr<const Source>& source) {
  const KeyKind kind = schema_.find(path);
  const Origin origin{source, 0};
  if (text.size() > Limits{}.bytes) return mistakes_.add(origin, "the value is longer than 1 MB");
  if (const auto bad = find_bad_text(text)) return mistakes_.add(origin, bad->text);
  if (text == "null" || text == "~") return erase(path);
  if (!kind.setting) {
    const std::string first(schema_.children(path).empty() ? "NAME" : schema_.children(path).front());
    return mistakes_.add(origin,
                         format("{} has keys of its own; set one of them, as in {}.{}", path, path, first));
  }
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::string(text);
  // A list has to be read as YAML; everything else is taken as it stands, so that no quoting is needed twice.
  if (kind.setting->type == Type::numbers) {
    const auto list = std::make_shared<const Source>(source->layer(), source->name(), std::string(text));
    const std::optional<Node> parsed = parse_yaml(list, mistakes_);
    if (!parsed) return;
    node = *parsed;
  }
  assign(path, {kind.setting, std::move(node), origin, origin});
}

void Layers::assign(const std::string& path, Assignment assignment) {
  // A value replaces a map of the same name (`run` and `run.shell`) and the other way round.
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

Effective Layers::resolve() {
  Effective effective;
  effective.groups_ = groups_;
  Expansion expansion(*this);
  for (const auto& [path, assignment] : assignments_) {
    const std::optional<Node> node = expansion.expand(path);
    if (!node) continue;
    Result<Value> value = read_value(*assignment.setting, *node);
    if (value.ok()) {
      effective.entries_.emplace(path, Entry{assignment.setting, std::move(*value), assignment.origin});
    } else {
      mistakes_.add(assignment.origin, format("{}: {}", path, value.error().message()));
    }
  }
  require(effective);
  return effective;
}

// Adds defaults, and a mistake for each setting that must be there and is not.
void Layers::require(Effective& effective) {
  for (const Setting& setting : schema_.settings()) {
    const std::size_t star = setting.key.find('*');
    std::vector<std::string> paths = {std::string(setting.key)};
    if (star != std::string_view::npos) {
      paths.clear();
      if (star + 1 == setting.key.size()) continue;  // a name without settings below has no default
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
        CHECK(value.ok());
        effective.entries_.emplace(path, Entry{&setting, std::move(*value), Origin{}});
      } else if (setting.is_required() && (parent.empty() || groups_.contains(parent))) {
        const auto group = groups_.find(parent);
        mistakes_.add(group == groups_.end() ? file_.value_or(Origin{}) : group->second,
                      format("{} is missing: {}", path, setting.what));
      }
    }
  }
}

}  // namespace stoker::config
