#include "checkpoint/save/plan.h"

#include <algorithm>
#include <set>

#include "archive/safetensors.h"
#include "base/hash.h"

namespace stoker::checkpoint {

namespace {

// A position between two rows, or two tensors, of the list.
struct Cut {
  std::size_t tensor = 0;
  std::int64_t row = 0;
};

std::uint64_t bytes_of_tensor(const TensorInfo& tensor) {
  return archive::tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
}

std::int64_t rows_of(const TensorInfo& tensor) { return tensor.shape.empty() ? 1 : tensor.shape[0]; }

// part / whole of amount without overflow.
std::uint64_t fraction(std::uint64_t amount, std::uint64_t part, std::uint64_t whole) {
  return amount / whole * part + amount % whole * part / whole;
}

// Start byte of `rank`'s range.
std::uint64_t start_of(std::uint64_t total, std::uint64_t held, std::uint64_t rank,
                       std::uint64_t world_size) {
  if (rank == 0) return 0;
  if (rank == world_size) return total;
  const std::uint64_t even = fraction(total, rank, world_size);
  if (held <= fraction(total, 1, world_size)) return even;
  // Rank 0 is full already: its peers share the rest.
  return held + (world_size == 1 ? 0 : fraction(total - held, rank - 1, world_size - 1));
}

Cut cut_in(const TensorInfo& tensor, std::size_t index, std::uint64_t offset) {
  const std::uint64_t bytes = bytes_of_tensor(tensor);
  const std::int64_t rows = rows_of(tensor);
  if (offset == 0) return {index, 0};
  if (bytes < kWholeBelow || rows <= 1) return offset >= bytes - offset ? Cut{index + 1, 0} : Cut{index, 0};
  const std::uint64_t row_bytes = bytes / static_cast<std::uint64_t>(rows);
  const std::int64_t row = static_cast<std::int64_t>((offset + row_bytes / 2) / row_bytes);
  return row >= rows ? Cut{index + 1, 0} : Cut{index, row};
}

// The cut nearest to byte `position` of the list; on a boundary, after the empty tensors there.
Cut cut_at(std::span<const TensorInfo> tensors, std::uint64_t position) {
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = bytes_of_tensor(tensors[i]);
    if (position < begin + bytes) return cut_in(tensors[i], i, position - begin);
    begin += bytes;
  }
  return {tensors.size(), 0};
}

}  // namespace

std::vector<Slice> rank_slices(std::span<const TensorInfo> tensors, std::size_t rank0_tensors, Rank rank,
                               WorldSize world_size) {
  std::uint64_t total = 0;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    total += bytes_of_tensor(tensors[i]);
    if (i < rank0_tensors) held = total;
  }
  const auto cut_before = [&](int r) -> Cut {
    if (r == 0) return {0, 0};
    if (r == world_size.value) return {tensors.size(), 0};
    const Cut cut = cut_at(tensors, start_of(total, held, static_cast<std::uint64_t>(r),
                                             static_cast<std::uint64_t>(world_size.value)));
    return cut.tensor < rank0_tensors ? Cut{rank0_tensors, 0} : cut;
  };
  const Cut from = cut_before(rank.value);
  const Cut to = cut_before(rank.value + 1);
  std::vector<Slice> slices;
  for (std::size_t i = from.tensor; i < tensors.size() && i <= to.tensor; ++i) {
    if (i == to.tensor && to.row == 0) break;
    const std::int64_t first = i == from.tensor ? from.row : 0;
    const std::int64_t end = i == to.tensor ? to.row : rows_of(tensors[i]);
    // Not a part of a split tensor. The only slice of an empty tensor has no rows and is kept.
    if (first == end && rows_of(tensors[i]) != 0) continue;
    slices.push_back({i, first, end - first});
  }
  return slices;
}

std::vector<TensorSource> sources_of(const StepContents& contents, StepPart part) {
  std::vector<TensorSource> sources;
  const auto add = [&](const std::vector<TensorView>& list) {
    for (const TensorView& view : list) sources.push_back({&view, &view.shape, 0});
  };
  const bool is_model = part == StepPart::model;
  add(is_model ? contents.buffers : contents.rank0_optimizer);
  add(is_model ? contents.parameters : contents.optimizer);
  for (const ShardView& shard : contents.shards) {
    if (shard.is_optimizer != is_model) sources.push_back({&shard.rows, &shard.shape, shard.first_row});
  }
  return sources;
}

bool fits(const SavePlan& plan, const StepContents& contents) {
  if (plan.layout.empty() || !contents.shards.empty()) return false;
  for (const StepPart part : kParts) {
    const PartPlan& planned = plan.parts[static_cast<std::size_t>(part)];
    const bool is_model = part == StepPart::model;
    const auto& held = is_model ? contents.buffers : contents.rank0_optimizer;
    const auto& shared = is_model ? contents.parameters : contents.optimizer;
    if (planned.sharded != 0 || planned.rank0_tensors != held.size()) return false;
    if (planned.tensors.size() != held.size() + shared.size()) return false;
    auto tensor = planned.tensors.begin();
    for (const auto* list : {&held, &shared}) {
      for (const TensorView& view : *list) {
        if (view.dtype != tensor->dtype || view.data.size() != bytes_of_tensor(*tensor)) return false;
        if (view.shape != tensor->shape || view.name != tensor->name) return false;
        ++tensor;
      }
    }
  }
  return true;
}

std::span<const std::byte> bytes_of(const TensorSource& source, const Slice& slice) {
  const TensorView& view = *source.view;
  if (view.shape.empty() || view.data.empty()) return view.data;
  const std::size_t row_bytes = view.data.size() / static_cast<std::size_t>(view.shape[0]);
  return view.data.subspan(static_cast<std::size_t>(slice.first_row - source.first_row) * row_bytes,
                           static_cast<std::size_t>(slice.rows) * row_bytes);
}

std::vector<std::uint32_t> tensor_checksums(const StepContents& contents, const SavePlan& plan) {
  std::vector<std::uint32_t> checksums;
  for (const StepPart part : kParts) {
    const PartPlan& of_part = plan.parts[static_cast<std::size_t>(part)];
    const std::vector<TensorSource> sources = sources_of(contents, part);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const bool is_shared = i >= of_part.rank0_tensors && i + of_part.sharded < sources.size();
      checksums.push_back(is_shared ? crc32c(sources[i].view->data) : 0);
    }
  }
  return checksums;
}

Status compare_checksums(const SavePlan& plan, std::span<const std::uint32_t> zero,
                         std::span<const std::uint32_t> other, Rank rank) {
  std::size_t at = 0;
  for (const PartPlan& part : plan.parts) {
    for (const TensorInfo& tensor : part.tensors) {
      const bool is_same = at < zero.size() && at < other.size() && zero[at] == other[at];
      ++at;
      if (is_same) continue;
      return invalid("tensor '{}': values on rank {} differ from rank 0", tensor.name, rank);
    }
  }
  return {};
}

namespace {

Status check_view(const TensorView& view, std::set<std::string_view>& names) {
  if (view.name.empty() || printable(view.name) != view.name) {
    return invalid("checkpoint: tensor '{}': name is empty or not plain text", printable(view.name));
  }
  if (!names.insert(view.name).second) return invalid("checkpoint: tensor '{}' appears twice", view.name);
  const std::optional<std::uint64_t> bytes = archive::tensor_bytes(view.dtype, view.shape);
  if (!bytes) return invalid("checkpoint: tensor '{}': shape is negative or too large", view.name);
  if (*bytes == view.data.size()) return {};
  return invalid("checkpoint: tensor '{}': has {} bytes, but shape and dtype require {}", view.name,
                 view.data.size(), *bytes);
}

// A shard: its rows are inside the whole, and all other sizes are equal.
Status check_shard(const TensorSource& source) {
  const TensorView& view = *source.view;
  const Shape& whole = *source.shape;
  const bool is_alike = !whole.empty() && view.shape.size() == whole.size() &&
                        std::equal(whole.begin() + 1, whole.end(), view.shape.begin() + 1);
  const bool is_inside = is_alike && source.first_row >= 0 && source.first_row <= whole[0] &&
                         view.shape[0] <= whole[0] - source.first_row;
  if (is_inside && archive::tensor_bytes(view.dtype, whole)) return {};
  return invalid("checkpoint: tensor '{}': the rows of this rank do not fit the whole tensor", view.name);
}

void describe(const PartPlan& plan, Sha256& hash) {
  hash.update(format("{} {} {};", plan.tensors.size(), plan.rank0_tensors, plan.sharded));
  for (const TensorInfo& tensor : plan.tensors) {
    std::string text = format("{} {}", tensor.name, to_text(tensor.dtype));
    for (const std::int64_t size : tensor.shape) text += format(" {}", size);
    hash.update(text + ";");
  }
}

// This rank's rows of the sharded tensors, which start at `first`. An empty one belongs to rank 0.
Status add_shards(const std::vector<TensorSource>& sources, std::size_t first, Rank rank, PartPlan& plan) {
  for (std::size_t i = first; i < sources.size(); ++i) {
    STOKER_RETURN_IF_ERROR(check_shard(sources[i]));
    const std::int64_t rows = sources[i].view->shape[0];
    const bool is_empty = (*sources[i].shape)[0] == 0;
    if (rows > 0 || (is_empty && rank.value == 0)) plan.own_slices.push_back({i, sources[i].first_row, rows});
  }
  return {};
}

}  // namespace

Result<SavePlan> plan_save(const StepContents& contents, Rank rank, WorldSize world_size) {
  SavePlan plan;
  Sha256 hash;
  for (const StepPart part : kParts) {
    PartPlan& parts = plan.parts[static_cast<std::size_t>(part)];
    std::set<std::string_view> names;
    const std::vector<TensorSource> sources = sources_of(contents, part);
    for (const TensorSource& source : sources) {
      STOKER_RETURN_IF_ERROR(check_view(*source.view, names));
      parts.tensors.push_back({source.view->name, source.view->dtype, *source.shape});
    }
    const bool is_model = part == StepPart::model;
    parts.rank0_tensors = is_model ? contents.buffers.size() : contents.rank0_optimizer.size();
    for (const ShardView& shard : contents.shards) parts.sharded += shard.is_optimizer != is_model ? 1 : 0;
    describe(parts, hash);
    const std::span all(parts.tensors);
    const std::size_t shared = all.size() - parts.sharded;
    parts.own_slices = rank_slices(all.first(shared), parts.rank0_tensors, rank, world_size);
    STOKER_RETURN_IF_ERROR(add_shards(sources, shared, rank, parts));
    for (const Slice& slice : parts.own_slices) parts.bytes += bytes_of(sources[slice.tensor], slice).size();
  }
  const Digest digest = hash.finish();
  plan.layout = hex(std::span(digest).first(16));
  return plan;
}

}  // namespace stoker::checkpoint
