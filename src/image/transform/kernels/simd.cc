// Compiled once per instruction set by Highway's foreach_target.h. The choice among them is ours, so that
// Highway is needed at build time only.
#include <cstring>

#include "image/transform/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/transform/kernels/simd.cc"
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace stoker::image {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1].
template <class D32, class V16, class V32 = hn::Vec<D32>>
HWY_INLINE V32 add_pairs(D32 d32, V16 a, V16 b, V32 sum) {
#if HWY_ARCH_X86
  V32 unused = hn::Zero(d32);
  return hn::ReorderWidenMulAccumulate(d32, a, b, sum, unused);
#else
  const auto a32 = hn::BitCast(d32, a);
  const auto b32 = hn::BitCast(d32, b);
  const auto even =
      hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)), hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
  return hn::Add(sum, hn::Add(even, hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32))));
#endif
}

template <class V32>
HWY_INLINE V32 finish(V32 upper, V32 lower) {
  return hn::ShiftRight<kWeightBits>(hn::Add(hn::ShiftLeft<kWeightSplit>(upper), lower));
}

// One 16-byte block of each row: as many rows as fit a vector.
using D128 = hn::FixedTag<std::uint8_t, 16>;
#if HWY_MAX_BYTES >= 64
using DBlocks = hn::FixedTag<std::uint8_t, 64>;
#elif HWY_MAX_BYTES >= 32
using DBlocks = hn::FixedTag<std::uint8_t, 32>;
#else
using DBlocks = D128;
#endif
constexpr std::size_t kBlocks = hn::MaxLanes(DBlocks()) / 16;

// The rows' pointers as values: from an array, they would be reloaded after every byte written.
struct RowPointers {
  const std::uint8_t* a;
  const std::uint8_t* b;
  const std::uint8_t* c;
  const std::uint8_t* d;
};

HWY_INLINE hn::Vec<DBlocks> load_blocks(const RowPointers& rows, std::size_t offset) {
  const D128 d;
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<std::uint8_t, 32> half;
  const auto low = hn::Combine(half, hn::LoadU(d, rows.b + offset), hn::LoadU(d, rows.a + offset));
  const auto high = hn::Combine(half, hn::LoadU(d, rows.d + offset), hn::LoadU(d, rows.c + offset));
  return hn::Combine(DBlocks(), high, low);
#elif HWY_MAX_BYTES >= 32
  return hn::Combine(DBlocks(), hn::LoadU(d, rows.b + offset), hn::LoadU(d, rows.a + offset));
#else
  return hn::LoadU(d, rows.a + offset);
#endif
}

// Bytes of two pixels as 16-bit lanes r r g g b b 0 0; an index of 0x80 and more gives 0.
alignas(16) constexpr std::uint8_t kFirstPair[16] = {0, 0x80, 3, 0x80, 1,    0x80, 4,    0x80,
                                                     2, 0x80, 5, 0x80, 0x80, 0x80, 0x80, 0x80};
alignas(16) constexpr std::uint8_t kSecondPair[16] = {6, 0x80, 9,  0x80, 7,    0x80, 10,   0x80,
                                                      8, 0x80, 11, 0x80, 0x80, 0x80, 0x80, 0x80};

// Resizes kBlocks of the four rows.
void horizontal_rows(const HorizontalPlan& plan, const std::uint8_t* const* from, std::uint8_t* const* to) {
  const DBlocks d8;
  const hn::Repartition<std::int16_t, DBlocks> d16;
  const hn::Repartition<std::int32_t, DBlocks> d32;
  const auto first_pair = hn::LoadDup128(d8, kFirstPair);
  const auto second_pair = hn::LoadDup128(d8, kSecondPair);
  const auto half = hn::Set(d32, 1 << (kWeightBits - 1));
  const auto pair = [&](std::int32_t both) HWY_ATTR { return hn::BitCast(d16, hn::Set(d32, both)); };
  const RowPointers rows{from[0], from[kBlocks > 1 ? 1 : 0], from[kBlocks > 2 ? 2 : 0],
                         from[kBlocks > 3 ? 3 : 0]};
  std::uint8_t* out[kBlocks];
  for (std::size_t row = 0; row < kBlocks; ++row) out[row] = to[row];
  const std::int32_t* HWY_RESTRICT weights = plan.weights.data();
  const std::uint32_t* HWY_RESTRICT first = plan.first.data();
  const std::size_t count = plan.first.size();
  const std::size_t groups = plan.groups;
  for (std::size_t x = 0; x < count; ++x) {
    std::size_t offset = std::size_t{3} * first[x];
    auto upper = hn::Zero(d32);
    auto lower = half;
    for (std::size_t group = 0; group < groups; ++group, offset += 12, weights += 4) {
      const auto bytes = load_blocks(rows, offset);
      const auto a = hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, first_pair));
      const auto b = hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, second_pair));
      upper = add_pairs(d32, a, pair(weights[0]), upper);
      lower = add_pairs(d32, a, pair(weights[2]), lower);
      upper = add_pairs(d32, b, pair(weights[1]), upper);
      lower = add_pairs(d32, b, pair(weights[3]), lower);
    }
    const hn::Rebind<std::uint8_t, decltype(d32)> d8_part;
    const hn::Repartition<std::uint32_t, decltype(d8_part)> d_pixel;
    const auto pixels = hn::BitCast(d_pixel, hn::DemoteTo(d8_part, finish(upper, lower)));
    alignas(16) std::uint32_t each[kBlocks];
    hn::Store(pixels, d_pixel, each);
    for (std::size_t row = 0; row < kBlocks; ++row) {
      std::memcpy(out[row], &each[row], 4);
      out[row] += 3;
    }
  }
}

void horizontal(const HorizontalPlan& plan, const SourceRows& from, const TargetRows& to) {
  for (std::size_t row = 0; row < kRowsAtOnce; row += kBlocks) {
    horizontal_rows(plan, from.data() + row, to.data() + row);
  }
}

void vertical(const VerticalPlan& plan, std::size_t bytes, std::uint8_t* out) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Repartition<std::int32_t, decltype(d16)> d32;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const auto half = hn::Set(d32, 1 << (kWeightBits - 1));
  const std::size_t step = hn::Lanes(d16);
  for (std::size_t i = 0; i < bytes; i += step) {
    auto upper0 = hn::Zero(d32), upper1 = hn::Zero(d32);
    auto lower0 = half, lower1 = half;
    for (std::size_t k = 0; k < plan.pairs; ++k) {
      const auto a = hn::PromoteTo(d16, hn::LoadU(d8, plan.rows[2 * k] + i));
      const auto b = hn::PromoteTo(d16, hn::LoadU(d8, plan.rows[2 * k + 1] + i));
      const auto first = hn::InterleaveLower(d16, a, b);
      const auto second = hn::InterleaveUpper(d16, a, b);
      const auto upper = hn::BitCast(d16, hn::Set(d32, plan.weights[2 * k]));
      const auto lower = hn::BitCast(d16, hn::Set(d32, plan.weights[2 * k + 1]));
      upper0 = add_pairs(d32, first, upper, upper0);
      upper1 = add_pairs(d32, second, upper, upper1);
      lower0 = add_pairs(d32, first, lower, lower0);
      lower1 = add_pairs(d32, second, lower, lower1);
    }
    const auto words = hn::ReorderDemote2To(d16, finish(upper0, lower0), finish(upper1, lower1));
    hn::StoreU(hn::DemoteTo(d8, words), d8, out + i);
  }
}

using DFloat = hn::CappedTag<float, 16>;
using VFloat = hn::Vec<DFloat>;

// The correctly rounded value / divisor: a product with the reciprocal, corrected by its remainder.
// SampleWriter tests whether it is exact for its constants.
HWY_INLINE VFloat divided(VFloat value, VFloat divisor, VFloat reciprocal) {
  const VFloat quotient = hn::Mul(value, reciprocal);
  return hn::MulAdd(hn::NegMulAdd(quotient, divisor, value), reciprocal, quotient);
}

struct StoreFloat {
  using T = float;
  static constexpr DFloat d{};
  static HWY_INLINE VFloat convert(VFloat v) { return v; }
};
struct StoreBf16 {
  using T = std::uint16_t;
  static constexpr hn::Rebind<std::uint16_t, DFloat> d{};
  static HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, DFloat>> convert(VFloat v) {
    const hn::RebindToUnsigned<DFloat> du;
    const hn::RebindToSigned<DFloat> di;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
    return hn::DemoteTo(hn::Rebind<std::uint16_t, DFloat>(), hn::BitCast(di, rounded));
  }
};
struct StoreF16 {
  using T = std::uint16_t;
  static constexpr hn::Rebind<std::uint16_t, DFloat> d{};
  static HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, DFloat>> convert(VFloat v) {
    return hn::BitCast(hn::Rebind<std::uint16_t, DFloat>(),
                       hn::DemoteTo(hn::Rebind<hwy::float16_t, DFloat>(), v));
  }
};

template <class Store>
std::size_t write_as(const std::uint8_t* rgb, const Normalization& formula, const PixelRun& run) {
  const hn::CappedTag<std::uint8_t, 16> d8;
  const DFloat df;
  const hn::RebindToSigned<DFloat> di;
  const hn::Rebind<std::uint8_t, DFloat> d8_part;
  const std::size_t lanes = hn::Lanes(df);
  const std::size_t whole = run.count / 16 * 16;
  using T = typename Store::T;
  VFloat mean[3], deviation[3], reciprocal[3];
  for (int c = 0; c < 3; ++c) {
    mean[c] = hn::Set(df, formula.mean[static_cast<std::size_t>(c)]);
    deviation[c] = hn::Set(df, formula.deviation[static_cast<std::size_t>(c)]);
    reciprocal[c] = hn::Set(df, 1.0f / formula.deviation[static_cast<std::size_t>(c)]);
  }
  const VFloat k255 = hn::Set(df, 255.0f);
  const VFloat k1_255 = hn::Set(df, 1.0f / 255.0f);
  const auto level = [&](const std::uint8_t* bytes, int c) HWY_ATTR {
    const VFloat value = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(d8_part, bytes)));
    const VFloat unit = divided(value, k255, k1_255);
    const auto result = Store::convert(divided(hn::Sub(unit, mean[c]), deviation[c], reciprocal[c]));
    return run.is_flipped ? hn::Reverse(Store::d, result) : result;
  };
  alignas(16) std::uint8_t planes[3][16];
  for (std::size_t i = 0; i < whole; i += 16) {
    hn::Vec<decltype(d8)> red, green, blue;
    hn::LoadInterleaved3(d8, rgb + 3 * i, red, green, blue);
    hn::Store(red, d8, planes[0]);
    hn::Store(green, d8, planes[1]);
    hn::Store(blue, d8, planes[2]);
    for (std::size_t k = 0; k < 16; k += lanes) {
      const std::size_t at = run.is_flipped ? run.count - i - k - lanes : i + k;
      if (run.is_interleaved) {
        T* to = static_cast<T*>(run.planes[0]) + 3 * at;
        hn::StoreInterleaved3(level(planes[0] + k, 0), level(planes[1] + k, 1), level(planes[2] + k, 2),
                              Store::d, to);
      } else {
        for (int c = 0; c < 3; ++c) {
          hn::StoreU(level(planes[c] + k, c), Store::d,
                     static_cast<T*>(run.planes[static_cast<std::size_t>(c)]) + at);
        }
      }
    }
  }
  return whole;
}

std::size_t write(DType element, const std::uint8_t* rgb, const Normalization& formula, const PixelRun& run) {
  switch (element) {
    case DType::f32:
      return write_as<StoreFloat>(rgb, formula, run);
    case DType::bf16:
      return write_as<StoreBf16>(rgb, formula, run);
    case DType::f16:
      return write_as<StoreF16>(rgb, formula, run);
    default:
      return 0;
  }
}

std::size_t skip_scan(const std::uint8_t* bytes, std::size_t begin, std::size_t end) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto all_ones = hn::Set(d, 0xFF);
  std::size_t i = begin;
  for (; i + lanes < end; i += lanes) {
    const auto here = hn::LoadU(d, bytes + i);
    const auto next = hn::LoadU(d, bytes + i + 1);
    const auto is_restart = hn::Eq(hn::And(next, hn::Set(d, 0xF8)), hn::Set(d, 0xD0));
    const auto is_data = hn::Or(is_restart, hn::Eq(next, hn::Zero(d)));
    if (!hn::AllFalse(d, hn::AndNot(is_data, hn::Eq(here, all_ones)))) break;
  }
  return i;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels all{hwy::TargetName(HWY_TARGET), horizontal, vertical, write, skip_scan};
  return all;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::image
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace stoker::image {
namespace {

std::vector<const Kernels*> find_runnable() {
  std::vector<const Kernels*> all{&plain_kernels()};
#if HWY_TARGETS & HWY_SSE4
  if (__builtin_cpu_supports("sse4.2")) all.push_back(&N_SSE4::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_avx2) all.push_back(&N_AVX2::kernels());
#endif
#if HWY_TARGETS & HWY_AVX3
  const bool has_avx3 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512cd");
  if (has_avx3) all.push_back(&N_AVX3::kernels());
#endif
#if HWY_TARGETS & HWY_NEON
  all.push_back(&N_NEON::kernels());
#endif
  return all;
}

}  // namespace

std::vector<const Kernels*> runnable_kernels() { return find_runnable(); }

const Kernels& best_kernels() {
  static const Kernels& best = *find_runnable().back();
  return best;
}

}  // namespace stoker::image
#endif
