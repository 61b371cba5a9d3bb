#include <algorithm>
#include <array>
#include <map>

#include "archive/safetensors.h"
#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/read/step_reader.h"
#include "stoker/checkpoint.h"

namespace stoker::checkpoint {

namespace {

using Views = std::map<std::string_view, const MutableTensorView*>;

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Collects differences; the text lists the first ten.
class Differences {
 public:
  template <typename... Args>
  void add(std::string_view pattern, const Args&... args) {
    if (++count_ <= kMost) text_ += (count_ > 1 ? "; " : "") + format(pattern, args...);
  }
  Status status(const Path& folder) const {
    if (count_ == 0) return {};
    const std::string more = count_ > kMost ? format("; and {} more", count_ - kMost) : "";
    return invalid("{}: does not fit the model: {}{}", printable(folder.string()), text_, more);
  }

 private:
  static constexpr int kMost = 10;
  int count_ = 0;
  std::string text_;
};

Result<Views> by_name(const std::vector<MutableTensorView>& targets) {
  Views views;
  for (const MutableTensorView& view : targets) {
    const auto bytes = archive::tensor_bytes(view.dtype, view.shape);
    if (!bytes || *bytes != view.data.size()) {
      return invalid("checkpoint: tensor '{}': has {} bytes, but shape and dtype require {}",
                     printable(view.name), view.data.size(), bytes.value_or(0));
    }
    if (!views.emplace(view.name, &view).second) {
      return invalid("checkpoint: tensor '{}' appears twice", printable(view.name));
    }
  }
  return views;
}

// Names with one of the `optional_prefixes` may be missing on either side.
void compare(const std::vector<TensorInfo>& stored, const Views& views,
             const std::vector<std::string>& optional_prefixes, Differences& differences) {
  const auto may_be_missing = [&](std::string_view name) {
    return std::ranges::any_of(optional_prefixes,
                               [&](const std::string& begin) { return name.starts_with(begin); });
  };
  std::map<std::string_view, const TensorInfo*> names;
  for (const TensorInfo& tensor : stored) {
    names.emplace(tensor.name, &tensor);
    const auto found = views.find(tensor.name);
    if (found == views.end()) {
      if (may_be_missing(tensor.name)) continue;
      differences.add("'{}' is only in the checkpoint", printable(tensor.name));
    } else if (found->second->dtype != tensor.dtype) {
      differences.add("'{}' is {}, but {} in the checkpoint", tensor.name, to_text(found->second->dtype),
                      to_text(tensor.dtype));
    } else if (found->second->shape != tensor.shape) {
      differences.add("'{}' has shape {}, but {} in the checkpoint", tensor.name,
                      shape_text(found->second->shape), shape_text(tensor.shape));
    }
  }
  for (const auto& [name, view] : views) {
    if (names.contains(name) || may_be_missing(name)) continue;
    differences.add("'{}' is not in the checkpoint", printable(name));
  }
}

// Destination for one tensor.
struct LoadTarget {
  const MutableTensorView* rows;
  std::int64_t first_row;
};
using TargetsByPart = std::array<std::map<std::string_view, LoadTarget>, 2>;  // by Part

// Destination of the rows of a piece that are also in the target.
Destination place_of(const Piece& piece, const LoadTarget& target) {
  if (piece.shape.empty()) return {target.rows->data.data(), 0, piece.end - piece.begin};
  const std::int64_t from = std::max(piece.first_row, target.first_row);
  const std::int64_t until =
      std::min(piece.first_row + piece.shape[0], target.first_row + target.rows->shape[0]);
  if (from >= until) return {};
  const std::uint64_t row_bytes = (piece.end - piece.begin) / static_cast<std::uint64_t>(piece.shape[0]);
  return {target.rows->data.data() + static_cast<std::uint64_t>(from - target.first_row) * row_bytes,
          static_cast<std::uint64_t>(from - piece.first_row) * row_bytes,
          static_cast<std::uint64_t>(until - piece.first_row) * row_bytes};
}

Destinations places_of(const StepManifest& manifest, const TargetsByPart& wanted) {
  Destinations all;
  for (const TensorFile& file : manifest.files) {
    std::vector<Destination>& places = all.emplace_back();
    const auto& part = wanted[static_cast<std::size_t>(part_of_path(file.path).value_or(StepPart::model))];
    for (const Piece& piece : file.pieces) {
      const auto found = part.find(piece.name);
      places.push_back(found == part.end() ? Destination{} : place_of(piece, found->second));
    }
  }
  return all;
}

Status read_wanted(const Path& folder, const StepManifest& manifest, const TargetsByPart& wanted,
                   Progress& progress) {
  const std::vector<StepDamage> damages = read_files(folder, manifest, places_of(manifest, wanted), progress);
  if (progress.stop_requested())
    return cancelled("{}: interrupted while reading", printable(folder.string()));
  return damages.empty() ? Status() : damage_error(folder, damages);
}

// Whether the tensor is in the step and contains the target's rows.
Status check_target(const Path& folder, const std::map<std::string_view, const TensorInfo*>& stored,
                    const RowTarget& target) {
  const auto entry = stored.find(target.rows.name);
  const std::string where =
      format("{}: tensor '{}'", printable(folder.string()), printable(target.rows.name));
  if (entry == stored.end()) return invalid("{}: is not in the checkpoint", where);
  const TensorInfo* found = entry->second;
  const Shape& has = target.rows.shape;
  const Shape& whole = found->shape;
  const bool is_alike =
      found->dtype == target.rows.dtype && has.size() == whole.size() &&
      std::equal(has.begin() + (has.empty() ? 0 : 1), has.end(), whole.begin() + (whole.empty() ? 0 : 1));
  const std::int64_t rows = has.empty() ? 0 : has[0];
  const std::int64_t most = whole.empty() ? 0 : whole[0];
  const bool is_inside = target.first_row >= 0 && target.first_row <= most && rows <= most - target.first_row;
  const auto bytes = archive::tensor_bytes(target.rows.dtype, has);
  if (is_alike && is_inside && bytes == target.rows.data.size()) return {};
  return invalid("{}: is {} {} in the checkpoint, not {} {} from row {}", where, to_text(found->dtype),
                 shape_text(whole), to_text(target.rows.dtype), shape_text(has), target.first_row);
}

Loaded describe(const Path& folder, const LoadingRank& loader, StepManifest& manifest) {
  Loaded loaded{folder,
                manifest.step,
                manifest.world_size,
                std::move(manifest.state),
                std::nullopt,
                std::move(manifest.hyper_parameters),
                {},
                {}};
  if (loader.world_size == manifest.world_size && loader.rank.value >= 0 &&
      loader.rank.value < loader.world_size.value) {
    loaded.rank_state = std::move(manifest.rank_states[static_cast<std::size_t>(loader.rank.value)]);
  }
  return loaded;
}

// Targets without a tensor in the step.
std::vector<std::string> missing_targets(const StepManifest& manifest, TargetsByPart wanted) {
  std::vector<std::string> names;
  for (const StepPart part : kParts) {
    auto& targets = wanted[static_cast<std::size_t>(part)];
    for (const TensorInfo& tensor : manifest.tensors_of(part)) targets.erase(tensor.name);
    for (const auto& [name, target] : targets) names.emplace_back(name);
  }
  return names;
}

}  // namespace

Result<Loaded> load(const Path& folder, const LoadingRank& loader, const Targets& targets) {
  STOKER_ASSIGN_OR_RETURN(manifest, read_step_manifest(folder));
  STOKER_ASSIGN_OR_RETURN(model, by_name(targets.model));
  STOKER_ASSIGN_OR_RETURN(optimizer, by_name(targets.optimizer));
  const std::array<Views, 2> views = {std::move(model), std::move(optimizer)};
  const PartFilter parts{.model = true, .optimizer = targets.with_optimizer};
  Differences differences;
  for (const StepPart part : kParts) {
    if (!parts.includes(part)) continue;
    const bool is_optimizer = part == StepPart::optimizer;
    compare(manifest.tensors_of(part), views[static_cast<std::size_t>(part)],
            is_optimizer ? targets.optional_prefixes : std::vector<std::string>(), differences);
  }
  STOKER_RETURN_IF_ERROR(differences.status(folder));
  // From here on every piece has a destination of the right size.
  TargetsByPart wanted;
  for (const StepPart part : kParts) {
    if (!parts.includes(part)) continue;
    const std::size_t p = static_cast<std::size_t>(part);
    for (const auto& [name, view] : views[p]) wanted[p].emplace(name, LoadTarget{view, 0});
  }
  NoProgress progress;
  STOKER_RETURN_IF_ERROR(read_wanted(folder, manifest, wanted, progress));
  Loaded loaded = describe(folder, loader, manifest);
  loaded.missing = missing_targets(manifest, wanted);
  return loaded;
}

Status read_rows(const Path& folder, const std::vector<RowTarget>& targets, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(manifest, read_step_manifest(folder));
  std::array<std::map<std::string_view, const TensorInfo*>, 2> stored;
  for (const StepPart part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    for (const TensorInfo& tensor : manifest.tensors_of(part)) stored[p].emplace(tensor.name, &tensor);
  }
  TargetsByPart wanted;
  for (const RowTarget& target : targets) {
    const std::size_t p =
        static_cast<std::size_t>(target.is_optimizer ? StepPart::optimizer : StepPart::model);
    STOKER_RETURN_IF_ERROR(check_target(folder, stored[p], target));
    if (!wanted[p].emplace(target.rows.name, LoadTarget{&target.rows, target.first_row}).second) {
      return invalid("checkpoint: tensor '{}' appears twice", printable(target.rows.name));
    }
  }
  return read_wanted(folder, manifest, wanted, progress);
}

Result<Loaded> load_latest(const Path& directory, const LoadingRank& loader, const Targets& targets) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(directory));
  std::vector<SkippedStep> skipped;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Path folder = directory / step_folder_name(*step);
    auto loaded = load(folder, loader, targets);
    if (loaded.ok()) {
      loaded->skipped = std::move(skipped);
      return loaded;
    }
    const Code code = loaded.error().code();
    if (code != Code::corrupt && code != Code::not_found) return std::move(loaded).error();
    skipped.push_back({folder, std::string(loaded.error().message())});
  }
  return no_valid_step(directory, skipped);
}

}  // namespace stoker::checkpoint
