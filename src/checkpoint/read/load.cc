#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/read/step_reader.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

using Views = std::map<std::string_view, const MutableTensorView*>;

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Collects what differs; shows the first ten.
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
    const auto bytes = formats::tensor_bytes(view.dtype, view.shape);
    if (!bytes || *bytes != view.data.size()) {
      return invalid("checkpoint: tensor '{}': has {} bytes, shape and dtype need {}", printable(view.name),
                     view.data.size(), bytes.value_or(0));
    }
    if (!views.emplace(view.name, &view).second) {
      return invalid("checkpoint: tensor '{}' appears twice", printable(view.name));
    }
  }
  return views;
}

// Names that begin as one of `may_lack` may be on one side only.
void compare(const std::vector<TensorInfo>& stored, const Views& views,
             const std::vector<std::string>& may_lack, Differences& differences) {
  const auto may_be_missing = [&](std::string_view name) {
    return std::ranges::any_of(may_lack, [&](const std::string& begin) { return name.starts_with(begin); });
  };
  std::map<std::string_view, const TensorInfo*> names;
  for (const TensorInfo& tensor : stored) {
    names.emplace(tensor.name, &tensor);
    const auto found = views.find(tensor.name);
    if (found == views.end()) {
      if (may_be_missing(tensor.name)) continue;
      differences.add("'{}' is in the checkpoint only", printable(tensor.name));
    } else if (found->second->dtype != tensor.dtype) {
      differences.add("'{}' is {}, in the checkpoint {}", tensor.name, to_text(found->second->dtype),
                      to_text(tensor.dtype));
    } else if (found->second->shape != tensor.shape) {
      differences.add("'{}' has shape {}, in the checkpoint {}", tensor.name,
                      shape_text(found->second->shape), shape_text(tensor.shape));
    }
  }
  for (const auto& [name, view] : views) {
    if (names.contains(name) || may_be_missing(name)) continue;
    differences.add("'{}' is not in the checkpoint", printable(name));
  }
}

// What is to be filled of one tensor.
struct Target {
  const MutableTensorView* rows;
  std::int64_t first_row;
};
using Wanted = std::array<std::map<std::string_view, Target>, 2>;  // by Part

// Where the rows of a piece go that the target has too.
Destination place_of(const Piece& piece, const Target& target) {
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

Destinations places_of(const Manifest& manifest, const Wanted& wanted) {
  Destinations all;
  for (const ShardFile& file : manifest.files) {
    std::vector<Destination>& places = all.emplace_back();
    const auto& part = wanted[static_cast<std::size_t>(part_of_path(file.path).value_or(Part::model))];
    for (const Piece& piece : file.pieces) {
      const auto found = part.find(piece.name);
      places.push_back(found == part.end() ? Destination{} : place_of(piece, found->second));
    }
  }
  return all;
}

Status read_wanted(const Path& folder, const Manifest& manifest, const Wanted& wanted, Progress& progress) {
  const std::vector<Damage> damages = read_files(folder, manifest, places_of(manifest, wanted), progress);
  if (progress.stop_requested()) return cancelled("{}: stopped while reading", printable(folder.string()));
  return damages.empty() ? Status() : damage_error(folder, damages);
}

// Whether the tensor is in the step and the target's rows are rows of it.
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
  const auto bytes = formats::tensor_bytes(target.rows.dtype, has);
  if (is_alike && is_inside && bytes == target.rows.data.size()) return {};
  return invalid("{}: is {} {} in the checkpoint, not {} {} from row {}", where, to_text(found->dtype),
                 shape_text(whole), to_text(target.rows.dtype), shape_text(has), target.first_row);
}

Loaded describe(const Path& folder, const Loader& loader, Manifest& manifest) {
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

// Targets that no tensor of the step fills.
std::vector<std::string> lacking(const Manifest& manifest, Wanted wanted) {
  std::vector<std::string> names;
  for (const Part part : kParts) {
    auto& targets = wanted[static_cast<std::size_t>(part)];
    for (const TensorInfo& tensor : manifest.of(part)) targets.erase(tensor.name);
    for (const auto& [name, target] : targets) names.emplace_back(name);
  }
  return names;
}

}  // namespace

Result<Loaded> load(const Path& folder, const Loader& loader, const Targets& targets) {
  OK_OR_RETURN(manifest, manifest_of_step(folder));
  OK_OR_RETURN(model, by_name(targets.model));
  OK_OR_RETURN(optimizer, by_name(targets.optimizer));
  const std::array<Views, 2> views = {std::move(model), std::move(optimizer)};
  const PartFilter parts{.model = true, .optimizer = targets.with_optimizer};
  Differences differences;
  for (const Part part : kParts) {
    if (!parts.includes(part)) continue;
    const bool is_optimizer = part == Part::optimizer;
    compare(manifest.of(part), views[static_cast<std::size_t>(part)],
            is_optimizer ? targets.may_lack : std::vector<std::string>(), differences);
  }
  RETURN_IF_ERROR(differences.status(folder));
  // After this point every piece has a place of the right size.
  Wanted wanted;
  for (const Part part : kParts) {
    if (!parts.includes(part)) continue;
    const std::size_t p = static_cast<std::size_t>(part);
    for (const auto& [name, view] : views[p]) wanted[p].emplace(name, Target{view, 0});
  }
  NoProgress progress;
  RETURN_IF_ERROR(read_wanted(folder, manifest, wanted, progress));
  Loaded loaded = describe(folder, loader, manifest);
  loaded.lacked = lacking(manifest, wanted);
  return loaded;
}

Status read_rows(const Path& folder, const std::vector<RowTarget>& targets, Progress& progress) {
  OK_OR_RETURN(manifest, manifest_of_step(folder));
  std::array<std::map<std::string_view, const TensorInfo*>, 2> stored;
  for (const Part part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    for (const TensorInfo& tensor : manifest.of(part)) stored[p].emplace(tensor.name, &tensor);
  }
  Wanted wanted;
  for (const RowTarget& target : targets) {
    const std::size_t p = static_cast<std::size_t>(target.is_optimizer ? Part::optimizer : Part::model);
    RETURN_IF_ERROR(check_target(folder, stored[p], target));
    if (!wanted[p].emplace(target.rows.name, Target{&target.rows, target.first_row}).second) {
      return invalid("checkpoint: tensor '{}' appears twice", printable(target.rows.name));
    }
  }
  return read_wanted(folder, manifest, wanted, progress);
}

Result<Loaded> load_latest(const Path& directory, const Loader& loader, const Targets& targets) {
  OK_OR_RETURN(steps, step_folders(directory));
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
