// The inner loops of resizing, normalisation and looking through JPEGs, once in plain C++ and once for each
// SIMD instruction set; all give the same bits. Chosen when the program runs. Used by Resizer, SampleWriter
// and pack. Thread-safe: no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/tensor_view.h"

namespace stoker::data {

/// Weights are 22-bit fixed point; they are given in two halves, the upper part times 2^11 plus the lower
/// part, so that both fit 16-bit multiplications.
inline constexpr int kWeightBits = 22;
inline constexpr int kWeightSplit = 11;

/// How rows are resized across: each result pixel is made of `groups` x 4 pixels from first[i] on. Weights
/// lie as pairs of 16 bits (of pixels 0 and 1, 2 and 3), first the upper halves of both pairs, then the
/// lower.
struct AcrossPlan {
  std::vector<std::uint32_t> first;  // in pixels
  std::size_t groups = 1;
  std::vector<std::int32_t> weights;  // 4 x groups for each result pixel
};

/// Rows that across() takes at once; it reads up to 16 bytes from the first pixel of a group on.
inline constexpr std::size_t kRowsAtOnce = 4;
using FromRows = std::array<const std::uint8_t*, kRowsAtOnce>;
using ToRows = std::array<std::uint8_t*, kRowsAtOnce>;
/// Bytes that must lie behind the end of a row that across() or down() writes, and of those that down()
/// reads.
inline constexpr std::size_t kSlack = 64;

/// How down() makes a row: weights as in AcrossPlan, upper and lower halves of each pair of rows after each
/// other.
struct DownPlan {
  const std::uint8_t* const* rows = nullptr;  // 2 x pairs
  const std::int32_t* weights = nullptr;      // 2 x pairs
  std::size_t pairs = 0;
};

/// (value / 255 - mean) / deviation.
struct LevelFormula {
  std::array<float, 3> mean;
  std::array<float, 3> deviation;
};

/// Where pixels go: three planes, or one run of pixels when `is_interleaved` (then planes[0]); the last pixel
/// first if is_flipped.
struct PixelRun {
  std::array<void*, 3> planes{};
  std::size_t count = 0;
  bool is_interleaved = false;
  bool is_flipped = false;
};

struct Kernels {
  std::string_view name;
  void (*across)(const AcrossPlan& plan, const FromRows& from, const ToRows& to);
  void (*down)(const DownPlan& plan, std::size_t bytes, std::uint8_t* out);
  /// Writes the first pixels as f32, bf16 or f16 and returns how many it wrote: all that fill its vectors.
  std::size_t (*write)(DType element, const std::uint8_t* rgb, const LevelFormula& formula,
                       const PixelRun& run);
  /// Skips entropy-coded data of a JPEG: a position from `begin` on before which there is no marker, that is,
  /// no 0xFF but those followed by 0 (data) or 0xD0 to 0xD7 (restarts). It may give up early; never past the
  /// last byte before `end`.
  std::size_t (*skip_scan)(const std::uint8_t* bytes, std::size_t begin, std::size_t end);
};

/// The fastest for this processor.
const Kernels& best_kernels();
/// All that this processor can run, plain C++ first.
std::vector<const Kernels*> runnable_kernels();
/// Those in plain C++.
const Kernels& plain_kernels();

}  // namespace stoker::data
