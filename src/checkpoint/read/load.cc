#include <algorithm>
#include <array>
#include <map>

#include "archive/safetensors.h"
#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/read/row_reader.h"
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
std::vector<std::string> missing_targets(const StepManifest& manifest, std::array<Views, 2> views) {
  std::vector<std::string> names;
  for (const StepPart part : kParts) {
    Views& targets = views[static_cast<std::size_t>(part)];
    for (const TensorInfo& tensor : manifest.tensors_of(part)) targets.erase(tensor.name);
    for (const auto& [name, target] : targets) names.emplace_back(name);
  }
  return names;
}

// The targets with a tensor in the step.
std::vector<RowTarget> rows_of(const StepManifest& manifest, const std::array<Views, 2>& views) {
  std::vector<RowTarget> rows;
  for (const StepPart part : kParts) {
    const Views& targets = views[static_cast<std::size_t>(part)];
    for (const TensorInfo& tensor : manifest.tensors_of(part)) {
      const auto target = targets.find(tensor.name);
      if (target == targets.end()) continue;
      rows.push_back({.is_optimizer = part == StepPart::optimizer, .rows = *target->second});
    }
  }
  return rows;
}

Status read_twice(const Path& folder, StepManifest manifest, std::vector<RowTarget> rows,
                  Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(reader, RowReader::create(folder, std::move(manifest), std::move(rows)));
  STOKER_RETURN_IF_ERROR(reader.verify(progress));
  return reader.fill(progress);
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
  // From here on every target has the right size.
  std::array<Views, 2> wanted;
  for (const StepPart part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    if (parts.includes(part)) wanted[p] = views[p];
  }
  NoProgress progress;
  STOKER_RETURN_IF_ERROR(read_twice(folder, manifest, rows_of(manifest, wanted), progress));
  Loaded loaded = describe(folder, loader, manifest);
  loaded.missing = missing_targets(manifest, wanted);
  return loaded;
}

Status read_rows(const Path& folder, const std::vector<RowTarget>& targets, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(manifest, read_step_manifest(folder));
  return read_twice(folder, std::move(manifest), targets, progress);
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
