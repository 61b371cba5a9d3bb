// A number of a table, independent of its column's type: compared by value, and converted to other types
// without silent loss. Plain values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "stoker/tensor_view.h"

namespace stoker::parquet {

class Number {
 public:
  Number(std::int64_t value) : value_(value) {}
  Number(std::uint64_t value);
  Number(double value) : value_(value) {}

  bool is_real() const { return std::holds_alternative<double>(value_); }
  bool is_nan() const;
  /// The nearest double.
  double real() const;
  /// Of an integer in range; 3.0 is one.
  std::optional<std::int64_t> whole() const;

  /// By value: 3 and 3.0 are equal, NaN is unordered.
  friend std::partial_ordering operator<=>(const Number& a, const Number& b);
  friend bool operator==(const Number& a, const Number& b) { return std::is_eq(a <=> b); }
  friend std::string to_text(const Number& number);
  /// As store_number().
  std::string_view put(DType type, std::byte* to) const;

 private:
  // uint64 only for values beyond int64.
  std::variant<std::int64_t, std::uint64_t, double> value_;
};

/// "12", "0.5", "-0.25", "1e-3", "nan"; nullopt for other texts.
std::optional<Number> number_from_text(std::string_view text);

/// The element at `from`. REQUIRES: size_of(type) bytes there.
Number load_number(DType type, const std::byte* from);

/// Writes it as an element of a given type. Fractions are rounded to floating types; any other loss is an
/// error. Returns the reason, such as "has a fraction", or empty after writing.
std::string_view store_number(const Number& number, DType type, std::byte* to);

/// "float32", as in NumPy.
std::string_view numpy_name(DType type);
bool is_floating(DType type);
/// The common type of both: numpy.result_type.
DType common_type(DType a, DType b);

}  // namespace stoker::parquet
