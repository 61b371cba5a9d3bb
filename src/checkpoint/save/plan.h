// Assigns each rank its share of the tensors, identically on all ranks without communication. Used by Saver.
// Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"
#include "stoker/checkpoint.h"

namespace stoker::checkpoint {

/// Tensors below this size are never split.
inline constexpr std::uint64_t kWholeBelow = 64 << 10;

/// Rows of a tensor, by its index in the list.
struct Slice {
  std::size_t tensor = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;  ///< 1 for a tensor without dimensions
  bool operator==(const Slice&) const = default;
};

/// The slices of `tensors` that `rank` writes. The concatenated list is cut into `world_size` ranges of equal
/// bytes, between rows or beside a small tensor. The first `rank0_tensors` tensors always go to rank 0; the
/// other ranks get correspondingly more of the rest.
std::vector<Slice> rank_slices(std::span<const TensorInfo> tensors, std::size_t rank0_tensors, Rank rank,
                               WorldSize world_size);

/// One part of the contents and this rank's slices of it.
struct PartPlan {
  std::vector<TensorInfo> tensors;
  std::vector<Slice> own_slices;
  std::uint64_t bytes = 0;  ///< of `own_slices`
  /// Number of first tensors saved by rank 0, and of last tensors sharded over all ranks.
  std::size_t rank0_tensors = 0;
  std::size_t sharded = 0;
};

/// One rank's plan for one step.
struct SavePlan {
  std::array<PartPlan, 2> parts;  ///< by Part
  std::string layout;             ///< hash of both lists: must be identical on all ranks
};

/// A rank's memory of one planned tensor.
struct TensorSource {
  const TensorView* view = nullptr;
  const Shape* shape = nullptr;  ///< of the whole tensor
  std::int64_t first_row = 0;    ///< first row of `view` in it
};

/// Tensors of a part in the order of its plan: pointers into `contents`.
std::vector<TensorSource> sources_of(const StepContents& contents, StepPart part);

/// Invalid if a name is empty, repeated or not plain text, or if a tensor's bytes do not match its shape.
Result<SavePlan> plan_save(const StepContents& contents, Rank rank, WorldSize world_size);

/// Whether plan_save() would return `plan` again for these contents: the same names, types and shapes in the
/// same order. Visits each tensor and allocates nothing. Always false for contents with shards.
bool fits(const SavePlan& plan, const StepContents& contents);

/// The part of `source` in `slice`.
std::span<const std::byte> bytes_of(const TensorSource& source, const Slice& slice);

/// The CRC-32C of each shared tensor; 0 for others. Reads all of their bytes.
std::vector<std::uint32_t> tensor_checksums(const StepContents& contents, const SavePlan& plan);

/// Invalid with rank and tensor if another rank's checksum differs from rank 0's.
Status compare_checksums(const SavePlan& plan, std::span<const std::uint32_t> zero,
                         std::span<const std::uint32_t> other, Rank rank);

}  // namespace stoker::checkpoint
