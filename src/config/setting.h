// Declaration of a setting. The reader, validation, help text, docs table and effective file derive from it.
// This room contains no settings. Declarations are constants.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/yaml.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::config {

enum class Type {
  text,
  path,
  boolean,
  count,     ///< a whole number
  number,    ///< may have a fraction; finite
  size,      ///< an byte count, with a unit
  duration,  ///< with a unit
  choice,    ///< one of Setting::choices
  numbers,   ///< a list
  every,     ///< "never", a duration, or a count of one of Setting::choices ("100 steps")
  words,     ///< a command line: a text split by shell quoting, or a list; never empty
  texts,     ///< like words, but may be empty
};

/// Case of a user-defined name in STOKER_SET_<...> that the file does not contain.
enum class Names { lower_case, as_written };

/// Declaration of a setting.
struct Setting {
  /// "train.optimizer.lr"; a segment `*` is a user-defined name.
  std::string_view key;
  Type type = Type::text;
  /// The default as written in a file; empty: no default.
  std::string_view fallback = "";
  /// Description of the behaviour without a value. Without `fallback` and `unset`, the setting is required if
  /// its parent map is present.
  std::string_view unset = "";
  /// Separated by '|'.
  std::string_view choices = "";
  /// Durations in seconds, sizes in bytes; applies to each element of `numbers`.
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  /// One sentence.
  std::string_view help;
  /// Further information; may be empty.
  std::string_view note = "";
  /// For a key with `*`.
  Names names = Names::lower_case;

  bool is_required() const { return fallback.empty() && unset.empty(); }
};

/// A value of Type::every.
struct Period {
  std::int64_t count = 0;  ///< of `unit`
  std::string unit;        ///< as declared in Setting::choices; empty: use `time`, or never
  Duration time{0};

  friend bool operator==(const Period&, const Period&) = default;
};

/// text, path, choice: string; count: int64; numbers: vector<double>; words, texts: vector<string>.
using Value = std::variant<std::string, bool, std::int64_t, double, ByteCount, Duration, std::vector<double>,
                           Period, std::vector<std::string>>;

/// Parses a scalar or list by the setting's type and checks its range. Errors begin after the key: "'abc' is
/// not a whole number".
Result<Value> read_value(const Setting& setting, const Node& node);

/// The value as YAML on one line that parses back to it: quoted if needed, `${` escaped.
std::string yaml_text(const Value& value);
/// A text as one YAML scalar.
std::string yaml_scalar(std::string_view text);

/// For docs and help: "whole number", "duration", "one of a, b".
std::string type_text(const Setting& setting);
/// "at least 1, at most 10", or empty.
std::string range_text(const Setting& setting);

}  // namespace stoker::config
