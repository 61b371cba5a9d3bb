#include "checkpoint/save/plan.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

// A place between two rows, or two tensors, of the list.
struct Cut {
  std::size_t tensor = 0;
  std::int64_t row = 0;
};

std::uint64_t bytes_of_tensor(const TensorInfo& tensor) {
  return formats::tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
}

std::int64_t rows_of(const TensorInfo& tensor) { return tensor.shape.empty() ? 1 : tensor.shape[0]; }

// part / whole of amount without overflow.
std::uint64_t fraction(std::uint64_t amount, std::uint64_t part, std::uint64_t whole) {
  return amount / whole * part + amount % whole * part / whole;
}

// The byte at which `rank`'s stretch begins.
std::uint64_t start_of(std::uint64_t total, std::uint64_t held, std::uint64_t rank,
                       std::uint64_t world_size) {
  if (rank == 0) return 0;
  if (rank == world_size) return total;
  const std::uint64_t even = fraction(total, rank, world_size);
  if (held <= fraction(total, 1, world_size)) return even;
  // Rank 0 is full already: the others share what is left.
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

// The cut nearest to byte `position` of the list; at a border, behind the tensors without bytes that lie
// there.
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

std::vector<Slice> share_of(std::span<const TensorInfo> tensors, std::size_t held_by_rank_zero, Rank rank,
                            WorldSize world_size) {
  std::uint64_t total = 0;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    total += bytes_of_tensor(tensors[i]);
    if (i < held_by_rank_zero) held = total;
  }
  const auto cut_before = [&](int r) -> Cut {
    if (r == 0) return {0, 0};
    if (r == world_size.value) return {tensors.size(), 0};
    const Cut cut = cut_at(tensors, start_of(total, held, static_cast<std::uint64_t>(r),
                                             static_cast<std::uint64_t>(world_size.value)));
    return cut.tensor < held_by_rank_zero ? Cut{held_by_rank_zero, 0} : cut;
  };
  const Cut from = cut_before(rank.value);
  const Cut to = cut_before(rank.value + 1);
  std::vector<Slice> slices;
  for (std::size_t i = from.tensor; i < tensors.size() && i <= to.tensor; ++i) {
    if (i == to.tensor && to.row == 0) break;
    const std::int64_t first = i == from.tensor ? from.row : 0;
    const std::int64_t end = i == to.tensor ? to.row : rows_of(tensors[i]);
    // No stretch of a split tensor, though an empty tensor's only stretch has no rows and is kept.
    if (first == end && rows_of(tensors[i]) != 0) continue;
    slices.push_back({i, first, end - first});
  }
  return slices;
}

std::vector<const TensorView*> views_of(const Contents& contents, Part part) {
  std::vector<const TensorView*> views;
  const auto add = [&](const std::vector<TensorView>& list) {
    for (const TensorView& view : list) views.push_back(&view);
  };
  if (part == Part::model) {
    add(contents.buffers);
    add(contents.parameters);
  } else {
    add(contents.optimizer);
  }
  return views;
}

std::span<const std::byte> bytes_of(const TensorView& view, const Slice& slice) {
  if (view.shape.empty() || view.data.empty()) return view.data;
  const std::size_t row_bytes = view.data.size() / static_cast<std::size_t>(view.shape[0]);
  return view.data.subspan(static_cast<std::size_t>(slice.first_row) * row_bytes,
                           static_cast<std::size_t>(slice.rows) * row_bytes);
}

namespace {

Status check_view(const TensorView& view, std::set<std::string_view>& names) {
  if (view.name.empty() || printable(view.name) != view.name) {
    return invalid("checkpoint: tensor '{}': name is empty or not plain text", printable(view.name));
  }
  if (!names.insert(view.name).second) return invalid("checkpoint: tensor '{}' appears twice", view.name);
  const std::optional<std::uint64_t> bytes = formats::tensor_bytes(view.dtype, view.shape);
  if (!bytes) return invalid("checkpoint: tensor '{}': shape is negative or too large", view.name);
  if (*bytes == view.data.size()) return {};
  return invalid("checkpoint: tensor '{}': has {} bytes, shape and dtype need {}", view.name,
                 view.data.size(), *bytes);
}

void describe(const PartPlan& plan, std::size_t held_by_rank_zero, Sha256& hash) {
  hash.update(format("{} {};", plan.tensors.size(), held_by_rank_zero));
  for (const TensorInfo& tensor : plan.tensors) {
    std::string text = format("{} {}", tensor.name, to_text(tensor.dtype));
    for (const std::int64_t size : tensor.shape) text += format(" {}", size);
    hash.update(text + ";");
  }
}

}  // namespace

Result<SavePlan> plan_save(const Contents& contents, Rank rank, WorldSize world_size) {
  SavePlan plan;
  Sha256 hash;
  for (const Part part : kParts) {
    PartPlan& parts = plan.parts[static_cast<std::size_t>(part)];
    std::set<std::string_view> names;
    const std::vector<const TensorView*> views = views_of(contents, part);
    for (const TensorView* view : views) {
      RETURN_IF_ERROR(check_view(*view, names));
      parts.tensors.push_back({view->name, view->dtype, view->shape});
    }
    const std::size_t held = part == Part::model ? contents.buffers.size() : 0;
    describe(parts, held, hash);
    parts.mine = share_of(parts.tensors, held, rank, world_size);
    for (const Slice& slice : parts.mine) parts.bytes += bytes_of(*views[slice.tensor], slice).size();
  }
  const Digest digest = hash.finish();
  plan.layout = hex(std::span(digest).first(16));
  return plan;
}

}  // namespace stoker::checkpoint
