#include "net/shm/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace stoker::net::shm {

namespace {

// Elements per block: the accumulator stays in the L1 cache.
constexpr std::size_t kBlock = 1024;

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// IEEE 754 binary16. Both conversions are branch-free, so that compilers can vectorize them.
float widen(Half half) {
  constexpr float kTwoTo112 = std::bit_cast<float>(0x77800000U);  // changes the exponent bias from 15 to 127
  const std::uint32_t magnitude = (half.bits & 0x7fffU) << 13;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kTwoTo112);
  bits |= magnitude >= (0x7c00U << 13) ? 0x7f800000U : 0U;  // infinity or NaN
  return std::bit_cast<float>(bits | (half.bits & 0x8000U) << 16);
}

Half narrow(float value, Half /*type*/) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Rounds to nearest, ties to even: adds half of the last place kept, minus one if that place is even.
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23)) >> 13;
  // Adding 0.5 aligns the last place of a subnormal binary16 with the last place of the sum, which then
  // rounds there.
  const float moved = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(moved) - std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t narrowed = magnitude >= 0x47800000U ? special : finite;
  return {static_cast<std::uint16_t>(narrowed | (bits >> 16 & 0x8000U))};
}

float widen(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

BFloat16 narrow(float value, BFloat16 /*type*/) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool is_number = (bits & 0x7fffffffU) <= 0x7f800000U;
  return {static_cast<std::uint16_t>(is_number ? rounded : 0x7fc0U)};
}

template <typename T>
T widen(T value) {
  return value;
}
template <typename T>
T narrow(T value, T /*type*/) {
  return value;
}

// Integer sums wrap around, as in torch.
template <typename T, typename CollectiveOp>
T wrapping(T a, T b, CollectiveOp operation) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(operation(static_cast<Wide>(a), static_cast<Wide>(b)));
  } else {
    return operation(a, b);
  }
}

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}
// Comparisons with NaN are false: this selects a NaN in `b`, and is_nan selects one in `a`.
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return a < b || is_nan(a) ? a : b;
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a > b || is_nan(a) ? a : b;
  }
};

template <typename T>
T divided(T total, std::size_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(total) / static_cast<std::int64_t>(divisor));
  } else {
    return total / static_cast<T>(divisor);
  }
}

// Two ranks, and `into` is one of the inputs: one pass over memory. False otherwise.
template <typename T, typename CollectiveOp>
bool fold_in_place(T* into, std::span<const std::byte* const> from, std::size_t count) {
  const T* first = reinterpret_cast<const T*>(from[0]);
  const T* second = reinterpret_cast<const T*>(from[1]);
  if (into == first) {
    for (std::size_t i = 0; i < count; ++i) into[i] = CollectiveOp::apply(into[i], second[i]);
  } else if (into == second) {
    for (std::size_t i = 0; i < count; ++i) into[i] = CollectiveOp::apply(first[i], into[i]);
  } else {
    return false;
  }
  return true;
}

// A `divisor` of 1 leaves the totals unchanged.
template <typename T, typename CollectiveOp>
void fold_as(T* into, std::span<const std::byte* const> from, std::size_t count, std::size_t divisor) {
  using Total = decltype(widen(T{}));
  if constexpr (std::is_same_v<T, Total>) {
    if (from.size() == 2 && divisor == 1 && fold_in_place<T, CollectiveOp>(into, from, count)) return;
  }
  Total totals[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    const T* first = reinterpret_cast<const T*>(from[0]) + begin;
    for (std::size_t i = 0; i < size; ++i) totals[i] = widen(first[i]);
    for (const std::byte* other : from.subspan(1)) {
      const T* values = reinterpret_cast<const T*>(other) + begin;
      for (std::size_t i = 0; i < size; ++i)
        totals[i] = CollectiveOp::apply(totals[i], Total(widen(values[i])));
    }
    if (divisor > 1) {
      for (std::size_t i = 0; i < size; ++i) totals[i] = divided(totals[i], divisor);
    }
    for (std::size_t i = 0; i < size; ++i) into[begin + i] = narrow(totals[i], T{});
  }
}

template <typename T>
void fold_type(Reduction reduction, std::byte* into, std::span<const std::byte* const> from,
               std::size_t bytes) {
  T* target = reinterpret_cast<T*>(into);
  const std::size_t count = bytes / sizeof(T);
  switch (reduction) {
    case Reduction::sum:
      return fold_as<T, Sum>(target, from, count, 1);
    case Reduction::average:
      return fold_as<T, Sum>(target, from, count, from.size());
    case Reduction::product:
      return fold_as<T, Product>(target, from, count, 1);
    case Reduction::min:
      return fold_as<T, Min>(target, from, count, 1);
    case Reduction::max:
      return fold_as<T, Max>(target, from, count, 1);
  }
}

// Calls body with a value of the element's type.
template <typename Body>
void with_type(Element element, const Body& body) {
  switch (element) {
    case Element::f32:
      return body(float{});
    case Element::f64:
      return body(double{});
    case Element::f16:
      return body(Half{});
    case Element::bf16:
      return body(BFloat16{});
    case Element::i8:
      return body(std::int8_t{});
    case Element::u8:
      return body(std::uint8_t{});
    case Element::i16:
      return body(std::int16_t{});
    case Element::i32:
      return body(std::int32_t{});
    case Element::i64:
      return body(std::int64_t{});
  }
}

}  // namespace

std::string_view to_text(Element element) {
  constexpr std::string_view kNames[] = {"float32", "float64", "float16", "bfloat16", "int8",
                                         "uint8",   "int16",   "int32",   "int64"};
  return kNames[static_cast<std::size_t>(element)];
}

std::string_view to_text(Reduction reduction) {
  constexpr std::string_view kNames[] = {"sum", "average", "product", "least", "greatest"};
  return kNames[static_cast<std::size_t>(reduction)];
}

std::size_t size_of(Element element) {
  constexpr std::size_t kSizes[] = {4, 8, 2, 2, 1, 1, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(element)];
}

void fold(ReduceSpec arithmetic, std::byte* into, std::span<const std::byte* const> from, std::size_t bytes) {
  with_type(arithmetic.element,
            [&](auto zero) { fold_type<decltype(zero)>(arithmetic.reduction, into, from, bytes); });
}

void divide(Element element, std::byte* values, std::size_t divisor, std::size_t bytes) {
  const std::byte* const from[] = {values};
  with_type(element, [&](auto zero) {
    using T = decltype(zero);
    fold_as<T, Sum>(reinterpret_cast<T*>(values), from, bytes / sizeof(T), divisor);
  });
}

}  // namespace stoker::net::shm
