#include "checkpoint/read/row_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "archive/safetensors.h"
#include "checkpoint/read/step_reader.h"

namespace stoker::checkpoint {

namespace {

std::string rows_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

using StoredTensors = std::map<std::string_view, const TensorInfo*>;
using TargetsByName = std::map<std::string_view, const RowTarget*>;

// Whether the tensor is in the step and contains the target's rows.
Status check_target(const Path& folder, const StoredTensors& stored, const RowTarget& target) {
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
                 rows_text(whole), to_text(target.rows.dtype), rows_text(has), target.first_row);
}

// Destination of the rows of a piece that are also in the target.
Destination place_of(const Piece& piece, const RowTarget& target, std::byte* to) {
  if (piece.shape.empty()) return {to, 0, piece.end - piece.begin};
  const std::int64_t from = std::max(piece.first_row, target.first_row);
  const std::int64_t until =
      std::min(piece.first_row + piece.shape[0], target.first_row + target.rows.shape[0]);
  if (from >= until) return {};
  const std::uint64_t row_bytes = (piece.end - piece.begin) / static_cast<std::uint64_t>(piece.shape[0]);
  const std::uint64_t skip = static_cast<std::uint64_t>(from - target.first_row) * row_bytes;
  return {to == nullptr ? nullptr : to + skip, static_cast<std::uint64_t>(from - piece.first_row) * row_bytes,
          static_cast<std::uint64_t>(until - piece.first_row) * row_bytes};
}

enum class Pass { verify, fill };

// Pass::verify includes all targets, but writes only to targets with `is_scratch`.
Destinations places_of(const StepManifest& manifest, const std::array<TargetsByName, 2>& wanted, Pass pass) {
  Destinations all;
  for (const TensorFile& file : manifest.files) {
    std::vector<Destination>& places = all.emplace_back();
    const auto& part = wanted[static_cast<std::size_t>(part_of_path(file.path).value_or(StepPart::model))];
    for (const Piece& piece : file.pieces) {
      Destination& place = places.emplace_back();
      const auto found = part.find(piece.name);
      if (found == part.end()) continue;
      const RowTarget& target = *found->second;
      std::byte* data = target.rows.data.data();
      if (pass == Pass::verify) place = place_of(piece, target, target.is_scratch ? data : nullptr);
      if (pass == Pass::fill && !target.is_scratch) place = place_of(piece, target, data);
    }
  }
  return all;
}

}  // namespace

struct RowReader::Reading {
  Path folder;
  StepManifest manifest;
  std::vector<RowTarget> targets;
  std::array<TargetsByName, 2> wanted;  // by Part: into `targets`
  std::vector<File> files;              // opened by verify()

  Status check() {
    std::array<StoredTensors, 2> stored;
    for (const StepPart part : kParts) {
      const std::size_t p = static_cast<std::size_t>(part);
      for (const TensorInfo& tensor : manifest.tensors_of(part)) stored[p].emplace(tensor.name, &tensor);
    }
    for (const RowTarget& target : targets) {
      const std::size_t p =
          static_cast<std::size_t>(target.is_optimizer ? StepPart::optimizer : StepPart::model);
      STOKER_RETURN_IF_ERROR(check_target(folder, stored[p], target));
      if (!wanted[p].emplace(target.rows.name, &target).second) {
        return invalid("checkpoint: tensor '{}' appears twice", printable(target.rows.name));
      }
    }
    return {};
  }

  Status result(const std::vector<StepDamage>& damages, const Progress& progress) const {
    if (progress.stop_requested())
      return cancelled("{}: interrupted while reading", printable(folder.string()));
    return damages.empty() ? Status() : damage_error(folder, damages);
  }
};

RowReader::RowReader(std::unique_ptr<Reading> reading) : reading_(std::move(reading)) {}
RowReader::RowReader(RowReader&&) noexcept = default;
RowReader& RowReader::operator=(RowReader&&) noexcept = default;
RowReader::~RowReader() = default;

Result<RowReader> RowReader::create(const Path& folder, StepManifest manifest,
                                    std::vector<RowTarget> targets) {
  auto reading = std::make_unique<Reading>();
  reading->folder = folder;
  reading->manifest = std::move(manifest);
  reading->targets = std::move(targets);
  STOKER_RETURN_IF_ERROR(reading->check());
  return RowReader(std::move(reading));
}

Status RowReader::verify(Progress& progress) {
  Reading& r = *reading_;
  const Destinations places = places_of(r.manifest, r.wanted, Pass::verify);
  return r.result(read_files(r.folder, r.manifest, places, progress, r.files), progress);
}

Status RowReader::fill(Progress& progress) {
  Reading& r = *reading_;
  const Destinations places = places_of(r.manifest, r.wanted, Pass::fill);
  Status status =
      r.result(fill_files(r.folder, r.manifest, places, progress, std::exchange(r.files, {})), progress);
  if (status.ok()) return status;
  return std::move(status).with_context(
      "changed while it was loaded, and the targets are partly overwritten");
}

}  // namespace stoker::checkpoint
