#include <algorithm>
#include <cstring>
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

void compare(const std::vector<TensorInfo>& stored, const Views& views, Differences& differences) {
  std::map<std::string_view, const TensorInfo*> names;
  for (const TensorInfo& tensor : stored) {
    names.emplace(tensor.name, &tensor);
    const auto found = views.find(tensor.name);
    if (found == views.end()) {
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
    if (!names.contains(name)) differences.add("'{}' is not in the checkpoint", printable(name));
  }
}

// Where each piece of each file goes: the first byte of its rows in the target.
std::vector<std::vector<std::byte*>> destinations(const Manifest& manifest,
                                                  const std::array<Views, 2>& views) {
  std::vector<std::vector<std::byte*>> all;
  for (const ShardFile& file : manifest.files) {
    std::vector<std::byte*>& pieces = all.emplace_back();
    const Views& part = views[static_cast<std::size_t>(part_of_path(file.path).value_or(Part::model))];
    for (const Piece& piece : file.pieces) {
      const auto found = part.find(piece.name);
      if (found == part.end()) {
        pieces.push_back(nullptr);  // part `optimizer` that was not asked for
        continue;
      }
      const MutableTensorView& view = *found->second;
      const std::uint64_t rows = view.shape.empty() ? 1 : static_cast<std::uint64_t>(view.shape[0]);
      const std::uint64_t row_bytes = rows == 0 ? 0 : view.data.size() / rows;
      pieces.push_back(view.data.data() + static_cast<std::uint64_t>(piece.first_row) * row_bytes);
    }
  }
  return all;
}

Loaded describe(const Path& folder, const Loader& loader, Manifest& manifest) {
  Loaded loaded{folder,
                manifest.step,
                manifest.world_size,
                std::move(manifest.state),
                std::nullopt,
                std::move(manifest.hyper_parameters),
                {}};
  if (loader.world_size == manifest.world_size && loader.rank.value >= 0 &&
      loader.rank.value < loader.world_size.value) {
    loaded.rank_state = std::move(manifest.rank_states[static_cast<std::size_t>(loader.rank.value)]);
  }
  return loaded;
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
    if (parts.includes(part)) compare(manifest.of(part), views[static_cast<std::size_t>(part)], differences);
  }
  RETURN_IF_ERROR(differences.status(folder));
  // After this point every piece has a place of the right size.
  const std::vector<std::vector<std::byte*>> places = destinations(manifest, views);
  const PieceSink copy = [&](std::size_t file, std::size_t piece, std::uint64_t offset,
                             std::span<const std::byte> bytes) {
    std::memcpy(places[file][piece] + offset, bytes.data(), bytes.size());
  };
  const std::vector<Damage> damages = read_files(folder, manifest, parts, copy);
  if (!damages.empty()) return damage_error(folder, damages);
  return describe(folder, loader, manifest);
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
