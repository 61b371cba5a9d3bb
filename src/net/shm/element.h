// What a collective computes with: types of elements, and how many ranks' values become one. Used by
// Exchange and by the backend in room torch. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::net::shm {

enum class Element : std::uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64 };
/// "float32", "bfloat16", "int64", as torch says it.
std::string_view to_text(Element element);
std::size_t size_of(Element element);

enum class Reduction : std::uint8_t {
  sum,
  average,  ///< the sum, divided by the number of ranks; integers are cut towards zero
  product,
  least,     ///< a NaN of any rank stays
  greatest,  ///< a NaN of any rank stays
};

/// "sum", "average", ...
std::string_view to_text(Reduction reduction);

/// One kind of arithmetic.
struct Arithmetic {
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// into[i] = from[0][i] + from[1][i] + ..., strictly in this order, so every rank that computes it gets the
/// same bits. 16-bit floating point is summed in 32 bits and rounded once at the end. `into` may be one of
/// `from`; `bytes` is a multiple of the element's size.
void fold(Arithmetic arithmetic, std::byte* into, std::span<const std::byte* const> from, std::size_t bytes);

/// values[i] /= divisor, as an average does it. `bytes` as above.
void divide(Element element, std::byte* values, std::size_t divisor, std::size_t bytes);

}  // namespace stoker::net::shm
