// Lays a file, environment variables and flags over the defaults and resolves every setting to one typed
// value with its origin. Used by rooms that have settings. Thread-compatible: one Layers belongs to one load.
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

/// One setting's final value.
struct Entry {
  const Setting* setting = nullptr;
  Value value;
  Origin origin;
};

/// Every setting that has a value, defaults too, by full key path.
class Effective {
 public:
  /// The value of `key`, or nothing when it is not set.
  template <typename T>
  const T* find(std::string_view key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : std::get_if<T>(&found->second.value);
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// Where a key, or the map of that name, was written; a default's origin if nobody wrote it.
  Origin origin(std::string_view key) const;
  /// Somebody wrote this map or something in it.
  bool has_group(std::string_view path) const { return groups_.contains(path); }
  /// The names people chose below `path` ("train" and "validation" below "data"), sorted.
  std::vector<std::string> names(std::string_view path) const;

 private:
  friend class Layers;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Origin, std::less<>> groups_;
};

/// Added weakest first; then resolved.
class Layers {
 public:
  /// `variables` are known to ${...} beside the keys. REQUIRES: `schema` and `mistakes` outlive it.
  Layers(const Schema& schema, std::map<std::string, std::string> variables, Mistakes& mistakes);

  /// The keys of a file. An empty file is a mistake.
  void add_document(const Document& document);
  /// Of "NAME=value" texts those whose name is STOKER_SET_<KEY_PATH>.
  void add_environment(std::span<const std::string> environment);
  /// "key.path=value" texts; mistakes name them "<label> key.path".
  void add_flags(std::span<const std::string> flags, std::string_view label = "--set");
  /// Expands references, reads and checks every value, adds defaults. What could not be read is missing in
  /// the result and told in the mistakes.
  Effective resolve();

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
  void require(Effective& effective);

  const Schema& schema_;
  std::map<std::string, std::string> variables_;
  Mistakes& mistakes_;
  std::map<std::string, Assignment, std::less<>> assignments_;
  std::map<std::string, Origin, std::less<>> groups_;
  std::optional<Origin> file_;
};

}  // namespace stoker::config
