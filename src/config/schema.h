// All settings of one kind of file, found by key path. Used by this room's layers, by docs and help. Views
// the settings it is given: they outlive it (declarations are constants). Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/setting.h"

namespace stoker::config {

/// What a key path is.
struct KeyKind {
  const Setting* setting = nullptr;  ///< a value may be written here
  bool is_group = false;             ///< keys may be written below it; both for `run` and `run.shell`
  bool takes_names = false;          ///< the keys below are people's own names
};

/// The declared settings, in the order declared.
class Schema {
 public:
  explicit Schema(std::span<const Setting> settings) : settings_(settings) {}

  std::span<const Setting> settings() const { return settings_; }
  /// What "data.train.source" is; neither setting nor group: unknown.
  KeyKind find(std::string_view path) const;
  /// Keys that may follow `path` ("" for the top), without `*`.
  std::vector<std::string_view> children(std::string_view path) const;
  /// "unknown key 'resorces'; did you mean 'resources'?" for the first unknown segment of `path`.
  std::string unknown_key(std::string_view path) const;
  /// The key path that STOKER_SET_<`name`> means, such as TRAIN_EPOCHS; "" if none. A name that people chose
  /// is looked for in `known` first and is otherwise as Setting::names says.
  std::string from_variable(std::string_view name, std::span<const std::string> known) const;

 private:
  std::span<const Setting> settings_;
};

/// Whether `path` is "a.b" or below it, for `prefix` "a.b".
bool is_below(std::string_view path, std::string_view prefix);
/// Whether the pattern "data.*.source" means "data.train.source".
bool matches(std::string_view pattern, std::string_view path);
/// TRAIN_EPOCHS for "train.epochs".
std::string variable_name(std::string_view path);
/// Letters, digits, '_' and '-', not beginning with a digit or '-', at most 64: what people may call things.
bool is_name(std::string_view text);

}  // namespace stoker::config
