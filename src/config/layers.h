// Overrides defaults with a file, environment variables and flags, and resolves every setting to a typed
// value with its origin. Thread-compatible: one Layers belongs to one load.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "config/source.h"
#include "config/yaml.h"

namespace stoker::config {

/// Final value of one setting.
struct Entry {
  const Setting* setting = nullptr;
  Value value;
  Origin origin;
};

/// All settings with a value, including defaults, by key path.
class EffectiveConfig {
 public:
  /// The value of `key`, or null if it is not set.
  template <typename T>
  const T* find(std::string_view key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : std::get_if<T>(&found->second.value);
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// Origin of a key or a map; a default's origin if it was not written.
  Origin origin(std::string_view key) const;
  /// Whether this map or a key in it was written.
  bool has_group(std::string_view path) const { return groups_.contains(path); }
  /// The user-defined names below `path` ("train" and "validation" below "data"), sorted.
  std::vector<std::string> names(std::string_view path) const;

 private:
  friend class Layers;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Origin, std::less<>> groups_;
};

/// Add layers from weakest to strongest, then resolve.
class Layers {
 public:
  /// `variables` can be referenced by ${...}, like keys. REQUIRES: `schema` and `errors` outlive it.
  Layers(const Schema& schema, std::map<std::string, std::string> variables, ErrorList& errors);

  /// Adds the keys of a file. An empty file is an error.
  void add_document(const Document& document);
  /// Adds the variables named STOKER_SET_<KEY_PATH> from "NAME=value" texts.
  void add_environment(std::span<const std::string> environment);
  /// Adds "key.path=value" texts. Errors name them "<label> key.path".
  void add_flags(std::span<const std::string> flags, std::string_view label = "--set");
  /// Expands references, parses and validates every value, and adds defaults. Unreadable values are missing
  /// from the result and added to the errors.
  EffectiveConfig resolve();

 private:
  struct Assignment {
    const Setting* setting = nullptr;
    Node node;
    Origin origin;      // of the value
    Origin key_origin;  // of the key
  };
  friend class Expansion;

  void add_map(const std::string& path, const Node& map, const std::shared_ptr<const Source>& source);
  void add_member(const std::string& path, const Member& member, const std::shared_ptr<const Source>& source);
  void add_text(const std::string& path, std::string_view text, const std::shared_ptr<const Source>& source);
  void assign(const std::string& path, Assignment assignment);
  void erase(const std::string& path);
  void add_groups(std::string_view path, const Origin& origin);
  void require(EffectiveConfig& effective);

  const Schema& schema_;
  std::map<std::string, std::string> variables_;
  ErrorList& errors_;
  std::map<std::string, Assignment, std::less<>> assignments_;
  std::map<std::string, Origin, std::less<>> groups_;
  std::optional<Origin> file_;
};

}  // namespace stoker::config
