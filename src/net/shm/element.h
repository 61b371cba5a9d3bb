// Element types and reductions of collectives. Used by Exchange and by the backend in room train.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::net::shm {

enum class Element : std::uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64 };
/// "float32", "bfloat16", "int64", as in torch.
std::string_view to_text(Element element);
std::size_t size_of(Element element);

enum class Reduction : std::uint8_t {
  sum,
  average,  ///< the sum divided by the number of ranks; integers truncate towards zero
  product,
  min,  ///< propagates NaN
  max,  ///< propagates NaN
};

/// "sum", "average", ...
std::string_view to_text(Reduction reduction);

/// An element type and its reduction.
struct ReduceSpec {
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;

  friend bool operator==(const ReduceSpec&, const ReduceSpec&) = default;
};

/// into[i] = from[0][i] + from[1][i] + ..., strictly in this order, so that every rank computes the same
/// bits. 16-bit floating point is accumulated in 32 bits and rounded once. `into` may be one of `from`.
/// `bytes` is a multiple of the element size.
void fold(ReduceSpec arithmetic, std::byte* into, std::span<const std::byte* const> from, std::size_t bytes);

/// values[i] /= divisor, with the rounding of an average. `bytes` as above.
void divide(Element element, std::byte* values, std::size_t divisor, std::size_t bytes);

}  // namespace stoker::net::shm
