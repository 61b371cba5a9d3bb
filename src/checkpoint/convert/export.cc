// Write protocol of the result.
//   1. every byte of the part is verified against its CRC-32C
//   2. everything is written to <target>.part (a file or a folder); each file is synced, then the folder
//   3. <target>.part is renamed to <target>, and its parent folder is synced
// A crash before 3 leaves <target>.part, which is not a valid result. The next attempt replaces it.
#include "checkpoint/convert/export.h"

#include <algorithm>
#include <cstring>
#include <fnmatch.h>
#include <map>
#include <set>

#include "archive/safetensors.h"
#include "base/file.h"
#include "base/json/json.h"
#include "checkpoint/manifest.h"
#include "checkpoint/read/step_reader.h"
#include "checkpoint/read/tensor_reader.h"

namespace stoker::checkpoint {

namespace {

// A tensor and its name in the output.
struct Chosen {
  const TensorInfo* tensor;
  std::string name;
  std::uint64_t bytes;
};

Result<std::vector<Chosen>> choose(const Path& step, const StepManifest& manifest,
                                   const ExportOptions& options) {
  std::vector<Chosen> chosen;
  std::set<std::string> names;
  for (const TensorInfo& tensor : manifest.tensors_of(options.part)) {
    if (!is_named(tensor.name, options.only)) continue;
    const bool has_prefix =
        tensor.name.starts_with(options.strip) && tensor.name.size() > options.strip.size();
    std::string name = has_prefix ? tensor.name.substr(options.strip.size()) : tensor.name;
    if (!names.insert(name).second) {
      return invalid("{}: two tensors would be named '{}' (--strip)", printable(step.string()),
                     printable(name));
    }
    chosen.push_back(
        {&tensor, std::move(name), archive::tensor_bytes(tensor.dtype, tensor.shape).value_or(0)});
  }
  if (!chosen.empty()) return chosen;
  return invalid("{}: {} has no tensor with a matching name (--only)", printable(step.string()),
                 to_text(options.part));
}

// Assigns consecutive tensors to files of at most `limit` bytes. A larger tensor gets its own file.
std::vector<std::span<const Chosen>> divide(std::span<const Chosen> all, ByteCount limit) {
  std::vector<std::span<const Chosen>> files;
  std::size_t begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (limit.value != 0 && i > begin && bytes + all[i].bytes > limit.value) {
      files.push_back(all.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += all[i].bytes;
  }
  files.push_back(all.subspan(begin));
  return files;
}

Result<archive::SafetensorsPlan> plan_file(std::span<const Chosen> tensors) {
  std::vector<archive::SafetensorsEntry> entries;
  std::vector<Piece> pieces;
  for (const Chosen& chosen : tensors) {
    entries.push_back({chosen.name, chosen.tensor->dtype, chosen.tensor->shape, 0, 0});
    pieces.push_back({chosen.name, chosen.tensor->dtype, chosen.tensor->shape, 0, 0, 0});
  }
  return archive::plan_safetensors(
      std::move(entries),
      {{"DCP_SHARDING_INFO", sharding_info(pieces)}, {"DCP_VERSION", "1.0"}, {"format", "pt"}});
}

// Writes the step's tensors to files.
class Exporter {
 public:
  Exporter(const TensorReader& reader, StepPart part, Progress& progress)
      : reader_(reader), part_(part), progress_(progress) {}

  Status write(const Path& path, std::span<const Chosen> tensors, Exported& exported) {
    STOKER_ASSIGN_OR_RETURN(plan, plan_file(tensors));
    std::map<std::string_view, const Chosen*> by_name;
    for (const Chosen& chosen : tensors) by_name.emplace(chosen.name, &chosen);
    STOKER_ASSIGN_OR_RETURN(file, File::create(path));
    STOKER_RETURN_IF_ERROR(file.reserve(plan.header.file_bytes));
    STOKER_RETURN_IF_ERROR(file.write(plan.bytes));
    for (const archive::SafetensorsEntry& entry : plan.header.entries) {
      STOKER_RETURN_IF_ERROR(copy(by_name.at(entry.name)->tensor->name, entry.end - entry.begin, file));
    }
    STOKER_RETURN_IF_ERROR(file.sync());
    exported.tensors += tensors.size();
    exported.bytes += plan.header.file_bytes;
    ++exported.files;
    return file.close();
  }

 private:
  Status copy(const std::string& name, std::uint64_t bytes, File& file) {
    for (std::uint64_t at = 0; at < bytes;) {
      if (progress_.stop_requested()) return cancelled("checkpoint: conversion stopped");
      const std::span out = std::span(buffer_).first(std::min<std::uint64_t>(buffer_.size(), bytes - at));
      STOKER_RETURN_IF_ERROR(reader_.read(part_, name, at, out));
      STOKER_RETURN_IF_ERROR(file.write(std::span<const std::byte>(out)));
      at += out.size();
    }
    return {};
  }

  const TensorReader& reader_;
  const StepPart part_;
  Progress& progress_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBlockBytes);
};

std::string index_text(const std::map<std::string, std::string>& places, std::uint64_t bytes) {
  const nlohmann::ordered_json json = {{"metadata", {{"total_size", bytes}}}, {"weight_map", places}};
  return json_text(json, 2) + "\n";
}

// "model-00001-of-00002.safetensors", or "model.safetensors" if there is only one.
std::string file_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

Status write_folder(const Path& folder, std::span<const Chosen> chosen, const ExportOptions& options,
                    Exporter& exporter, Exported& exported) {
  STOKER_RETURN_IF_ERROR(make_directory(folder));
  const std::vector<std::span<const Chosen>> files = divide(chosen, options.file_bytes);
  std::map<std::string, std::string> places;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = file_name(i, files.size());
    STOKER_RETURN_IF_ERROR(exporter.write(folder / name, files[i], exported));
    for (const Chosen& tensor : files[i]) {
      places.emplace(tensor.name, name);
      bytes += tensor.bytes;
    }
  }
  const Path index = folder / "model.safetensors.index.json";
  if (files.size() > 1)
    STOKER_RETURN_IF_ERROR(write_file(index, index_text(places, bytes), Durability::synced));
  return sync_directory(folder);
}

Path parent_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

}  // namespace

bool is_named(const std::string& tensor, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return tensor == pattern || tensor.starts_with(pattern + ".") ||
                  ::fnmatch(pattern.c_str(), tensor.c_str(), 0) == 0;
         });
}

Result<Exported> export_step(const Path& step, const Path& target, const ExportOptions& options,
                             Progress& progress) {
  if (path_exists(target)) return exists("{}: already exists", printable(target.string()));
  STOKER_ASSIGN_OR_RETURN(manifest, read_step_manifest(step));
  STOKER_ASSIGN_OR_RETURN(chosen, choose(step, manifest, options));
  const PartFilter parts{.model = options.part == StepPart::model,
                         .optimizer = options.part == StepPart::optimizer};
  const std::vector<StepDamage> damages = verify_files(step, manifest, parts, progress);
  if (progress.stop_requested()) return cancelled("checkpoint: conversion stopped");
  if (!damages.empty()) return damage_error(step, damages);
  STOKER_ASSIGN_OR_RETURN(reader, TensorReader::open(step, manifest));
  Exporter exporter(reader, options.part, progress);
  Exported exported;
  const Path part = target.string() + ".part";
  STOKER_RETURN_IF_ERROR(remove_tree(part));
  const bool is_file = target.extension() == kTensorSuffix;
  Status status = is_file ? exporter.write(part, chosen, exported)
                          : write_folder(part, chosen, options, exporter, exported);
  if (status.ok()) status = rename_path(part, target);
  if (!status.ok()) {
    (void)remove_tree(part);
    return status;
  }
  STOKER_RETURN_IF_ERROR(sync_directory(parent_of(target)));
  return exported;
}

}  // namespace stoker::checkpoint
