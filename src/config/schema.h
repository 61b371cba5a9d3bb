// The settings of one kind of file, by key path. Used by layers, docs and help. A view: the declarations are
// constants and outlive it. Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/setting.h"

namespace stoker::config {

/// Kind of a key path.
struct KeyKind {
  const Setting* setting = nullptr;  ///< set if the path accepts a value
  bool is_group = false;             ///< keys may follow below it; `run` and `run.shell` are both
  bool allows_any_name = false;      ///< user-defined names may follow below it
};

/// The declared settings, in order of declaration.
class Schema {
 public:
  explicit Schema(std::span<const Setting> settings) : settings_(settings) {}

  std::span<const Setting> settings() const { return settings_; }
  /// The kind of "data.train.source". Neither a setting nor a group: unknown.
  KeyKind find(std::string_view path) const;
  /// Keys that may follow `path` ("" for the top level), without `*`.
  std::vector<std::string_view> children(std::string_view path) const;
  /// "unknown key 'resorces'; did you mean 'resources'?" for the first unknown segment of `path`.
  std::string unknown_key(std::string_view path) const;
  /// The key path of STOKER_SET_<`name`>, such as TRAIN_EPOCHS, or "". User-defined names are looked up in
  /// `known` first, and otherwise follow Setting::names.
  std::string from_variable(std::string_view name, std::span<const std::string> known) const;

 private:
  std::span<const Setting> settings_;
};

/// Whether `path` equals `prefix` or is below it.
bool is_below(std::string_view path, std::string_view prefix);
/// Whether the pattern "data.*.source" matches "data.train.source".
bool matches(std::string_view pattern, std::string_view path);
/// TRAIN_EPOCHS for "train.epochs".
std::string variable_name(std::string_view path);
/// Whether a text is a valid user-defined name: letters, digits, '_' and '-', not beginning with a digit or
/// '-', at most 64.
bool is_name(std::string_view text);

}  // namespace stoker::config
