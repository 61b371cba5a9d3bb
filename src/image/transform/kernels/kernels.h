// The inner loops of resizing, normalisation and JPEG scanning, in plain C++ and for each SIMD instruction
// set; all compute the same bits. Chosen at run time. Used by Resizer, SampleWriter and pack. Thread-safe:
// no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stoker/tensor_view.h"

namespace stoker::image {

/// Weights are 22-bit fixed point, in two halves: the upper part times 2^11 plus the lower part. Both fit
/// 16-bit multiplications.
inline constexpr int kWeightBits = 22;
inline constexpr int kWeightSplit = 11;

/// The plan of horizontal resizing: each result pixel depends on `groups` x 4 pixels from first[i] on.
/// Weights are pairs of 16 bits (of pixels 0 and 1, 2 and 3), first the upper halves of both pairs, then the
/// lower.
struct HorizontalPlan {
  std::vector<std::uint32_t> first;  // in pixels
  std::size_t groups = 1;
  std::vector<std::int32_t> weights;  // 4 x groups for each result pixel
};

/// Rows per call of horizontal(), which reads up to 16 bytes from the first pixel of a group on.
inline constexpr std::size_t kRowsAtOnce = 4;
using SourceRows = std::array<const std::uint8_t*, kRowsAtOnce>;
using TargetRows = std::array<std::uint8_t*, kRowsAtOnce>;
/// Bytes needed after the end of rows written by horizontal() or vertical(), and of rows read by vertical().
inline constexpr std::size_t kRowPadding = 64;

/// The plan of one row of vertical(): weights as in HorizontalPlan, the upper and lower halves of each pair
/// of rows in turn.
struct VerticalPlan {
  const std::uint8_t* const* rows = nullptr;  // 2 x pairs
  const std::int32_t* weights = nullptr;      // 2 x pairs
  std::size_t pairs = 0;
};

/// (value / 255 - mean) / deviation.
struct Normalization {
  std::array<float, 3> mean;
  std::array<float, 3> deviation;
};

/// The destination of pixels: three planes, or one run of pixels when `is_interleaved` (then planes[0]); in
/// reverse if is_flipped.
struct PixelRun {
  std::array<void*, 3> planes{};
  std::size_t count = 0;
  bool is_interleaved = false;
  bool is_flipped = false;
};

struct Kernels {
  std::string_view name;
  void (*horizontal)(const HorizontalPlan& plan, const SourceRows& from, const TargetRows& to);
  void (*vertical)(const VerticalPlan& plan, std::size_t bytes, std::uint8_t* out);
  /// Writes the first pixels as f32, bf16 or f16 and returns their number: as many as fill its vectors.
  std::size_t (*write)(DType element, const std::uint8_t* rgb, const Normalization& formula,
                       const PixelRun& run);
  /// Skips entropy-coded data of a JPEG. Returns a position from `begin` on without a marker before it, that
  /// is, without 0xFF except before 0 (data) or 0xD0 to 0xD7 (restarts). It may return early; never past the
  /// last byte before `end`.
  std::size_t (*skip_scan)(const std::uint8_t* bytes, std::size_t begin, std::size_t end);
};

/// The fastest kernels for this processor.
const Kernels& best_kernels();
/// All kernels that this processor can run, plain C++ first.
std::vector<const Kernels*> runnable_kernels();
/// The kernels in plain C++.
const Kernels& plain_kernels();

}  // namespace stoker::image
