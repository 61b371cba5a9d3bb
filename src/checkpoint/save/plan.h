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
};

/// The plan of one rank for one step.
struct SavePlan {
  std::array<PartPlan, 2> parts;  ///< by Part
  std::string layout;             ///< hash over both lists: must be the same on every rank
};

/// The tensors of a part in the order of its plan: views into `contents`.
std::vector<const TensorView*> views_of(const Contents& contents, Part part);

/// Invalid when a name is empty, repeated or not plain text, or a tensor's bytes are not what its shape
/// needs.
Result<SavePlan> plan_save(const Contents& contents, Rank rank, WorldSize world_size);

/// The part of `view` that `slice` names.
std::span<const std::byte> bytes_of(const TensorView& view, const Slice& slice);

}  // namespace stoker::checkpoint
