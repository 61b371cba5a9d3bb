// Constraints between parameters: comparisons and arithmetic over their names ("width * layers <= 4096 and
// kind != 'sgd'"). Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/status.h"

namespace stoker::sweep {

/// A value of a parameter.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// As in YAML and JSON: true, 12, 0.001, text without quotes. Numbers in the shortest form that reads back
/// equal.
std::string to_text(const Value& value);
/// The number of a number or boolean.
std::optional<double> number_of(const Value& value);
/// Equal as YAML scalars: 1 and 1.0 are, 1 and "1" and true are not.
bool is_same_value(const Value& a, const Value& b);

/// A condition over named values.
class Expression {
 public:
  /// `or`, `and`, `not`, `== != < <= > >=`, `in (a, b)`, `+ - * / // % **`, unary minus, parentheses,
  /// numbers, 'text', true, false and names with dots. Precedence as in Python. Invalid with the column of
  /// the error; at most 2 000 characters and 64 levels.
  static Result<Expression> parse(std::string_view text);

  const std::string& text() const { return text_; }
  /// The names in it, sorted, each once.
  const std::vector<std::string>& names() const { return names_; }
  /// Whether it holds. `value_of` returns the value of a name, or nullopt where it has none: the result is
  /// then nullopt, unless `and` or `or` decides without it. Invalid for text used as a number, and for a
  /// result that is no condition.
  Result<std::optional<bool>> holds(
      const std::function<std::optional<Value>(std::string_view)>& value_of) const;

  struct Term;

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const Term> root_;
};

}  // namespace stoker::sweep
