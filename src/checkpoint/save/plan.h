// Who writes what: each rank's share of the tensors, the same on every rank without a word between them.
// Used by Saver. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// Tensors below this size are never split.
inline constexpr std::uint64_t kWholeBelow = 64 << 10;

/// Rows of a tensor, by its place in the list.
struct Slice {
  std::size_t tensor = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;  ///< 1 for a tensor without dimensions
  bool operator==(const Slice&) const = default;
};

/// The slices of `tensors` that `rank` writes: the list, laid end to end, is cut into `world_size` stretches
/// of equal bytes; a cut falls between rows, or beside a small tensor. The first `held_by_rank_zero` tensors
/// go to rank 0 whatever their size, and the rest is then shared so that the others carry the more.
std::vector<Slice> share_of(std::span<const TensorInfo> tensors, std::size_t held_by_rank_zero, Rank rank,
                            WorldSize world_size);

/// One part of the contents, with what this rank writes of it.
struct PartPlan {
  std::vector<TensorInfo> tensors;
  std::vector<Slice> mine;
  std::uint64_t bytes = 0;  ///< of `mine`
  /// The first so many tensors come from rank 0, the last so many lie in rows on all ranks.
  std::size_t held_by_rank_zero = 0;
  std::size_t sharded = 0;
};

/// The plan of one rank for one step.
struct SavePlan {
  std::array<PartPlan, 2> parts;  ///< by Part
  std::string layout;             ///< hash over both lists: must be the same on every rank
};

/// What a rank has in memory of a tensor of the plan.
struct Source {
  const TensorView* view = nullptr;
  const Shape* shape = nullptr;  ///< of the whole tensor
  std::int64_t first_row = 0;    ///< of `view` in it
};

/// The tensors of a part in the order of its plan: pointers into `contents`.
std::vector<Source> sources_of(const Contents& contents, Part part);

/// Invalid when a name is empty, repeated or not plain text, or a tensor's bytes are not what its shape
/// needs.
Result<SavePlan> plan_save(const Contents& contents, Rank rank, WorldSize world_size);

/// Whether `plan` is what plan_save() would make of these contents once more: the same names, types and
/// shapes in the same order. Costs a look at each tensor and takes no memory. Contents with shards never fit.
bool fits(const SavePlan& plan, const Contents& contents);

/// The part of `source` that `slice` names.
std::span<const std::byte> bytes_of(const Source& source, const Slice& slice);

/// A sample of each tensor that ranks share: a CRC-32C over a few of its bytes, 0 for those they do not
/// share.
std::vector<std::uint32_t> samples_of(const Contents& contents, const SavePlan& plan);

/// Invalid naming rank and tensor when another rank's sample differs from rank 0's.
Status compare_samples(const SavePlan& plan, std::span<const std::uint32_t> zero,
                       std::span<const std::uint32_t> other, Rank rank);

}  // namespace stoker::checkpoint
