// A number of a table, whatever type its column has: compared by value, and turned into another type without
// losing any silently. Used by tables, and where their numbers are read as they lie. Plain values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/tensor_view.h"

namespace stoker::formats {

class Number {
 public:
  Number(std::int64_t value) : value_(value) {}
  Number(std::uint64_t value);
  Number(double value) : value_(value) {}

  bool is_real() const { return std::holds_alternative<double>(value_); }
  bool is_nan() const;
  /// The nearest there is.
  double real() const;
  /// Of a whole number that fits; 3.0 is one.
  std::optional<std::int64_t> whole() const;

  /// By value: 3 and 3.0 are equal, NaN is unordered.
  friend std::partial_ordering operator<=>(const Number& a, const Number& b);
  friend bool operator==(const Number& a, const Number& b) { return std::is_eq(a <=> b); }
  friend std::string to_text(const Number& number);
  /// As store_number().
  std::string_view put(DType type, std::byte* to) const;

 private:
  // The second for what the first cannot hold.
  std::variant<std::int64_t, std::uint64_t, double> value_;
};

/// "12", "0.5", "-0.25", "1e-3", "nan"; nothing for other texts.
std::optional<Number> number_of(std::string_view text);

/// The element at `from`. REQUIRES: size_of(type) bytes there.
Number load_number(DType type, const std::byte* from);

/// Writes it as an element of another type. A fraction becomes the nearest that a floating type has; all else
/// must be kept as it is. Says why it cannot be, as in "has a fraction"; empty where it was written.
std::string_view store_number(const Number& number, DType type, std::byte* to);

/// "float32", as NumPy calls it.
std::string_view numpy_name(DType type);
bool is_floating(DType type);
/// What NumPy makes of both together: numpy.result_type.
DType common_type(DType a, DType b);

}  // namespace stoker::formats
