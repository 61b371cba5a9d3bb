// A setting is declared once; the reader, validation, help text, docs table and the effective file derive
// from the declaration. Used by rooms that have settings; this room knows none of them. Declarations are
// constants.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "config/yaml.h"

namespace stoker::config {

enum class Type {
  text,
  path,
  boolean,
  count,     ///< a whole number
  number,    ///< with a fraction perhaps; finite
  size,      ///< an amount of bytes, with a unit
  duration,  ///< with a unit
  choice,    ///< one of Setting::choices
  numbers,   ///< a list
  every,     ///< "never", a duration, or a count of one of Setting::choices ("100 steps")
  words,     ///< a command line: text split by shell quoting, or a list; never empty
  texts,     ///< as words, and may be empty
};

/// What STOKER_SET_<...> makes of a name that the file does not have.
enum class Names { lower_case, as_written };

/// The declaration.
struct Setting {
  /// "train.optimizer.lr"; a segment `*` stands for a name people choose.
  std::string_view key;
  Type type = Type::text;
  /// The default as people would write it; empty: there is none.
  std::string_view fallback = "";
  /// What holds when it is not set and has no default, in words. With neither the setting is required
  /// wherever the map it sits in is written.
  std::string_view unset = "";
  /// Separated by '|'.
  std::string_view choices = "";
  /// Durations in seconds, sizes in bytes; each element of `numbers`.
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  /// One sentence.
  std::string_view what;
  /// Where to read on; may be empty.
  std::string_view see = "";
  /// Of a key with `*`.
  Names names = Names::lower_case;

  bool is_required() const { return fallback.empty() && unset.empty(); }
};

/// A value of Type::every.
struct Period {
  std::int64_t count = 0;  ///< of `unit`
  std::string unit;        ///< as declared in Setting::choices; empty: `time` counts, or never
  Duration time{0};

  friend bool operator==(const Period&, const Period&) = default;
};

/// text, path, choice: string; count: int64; numbers: vector<double>; words, texts: vector<string>.
using Value = std::variant<std::string, bool, std::int64_t, double, ByteCount, Duration, std::vector<double>,
                           Period, std::vector<std::string>>;

/// Reads a scalar or list as the setting says and checks its range. Error texts start with what follows the
/// key:
/// "'abc' is not a whole number".
Result<Value> read_value(const Setting& setting, const Node& node);

/// The value as YAML in one line, readable back: quoted where needed, and `${` escaped.
std::string yaml_text(const Value& value);
/// A text as one YAML scalar.
std::string yaml_scalar(std::string_view text);

/// For docs and help: "whole number", "duration", "one of a, b".
std::string type_text(const Setting& setting);
/// "at least 1, at most 10", or empty.
std::string range_text(const Setting& setting);

}  // namespace stoker::config
