// `stoker data info DATASET`, or a file: docs/commands/data-info.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/report/dvc_report.h"
#include "cli/output.h"
#include "dataset/manifest.h"
#include "inspect/contents_text.h"
#include "inspect/file_contents.h"
#include "pack/pack.h"
#include "sources/shard_scan.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

std::uint64_t bytes_of(const dataset::SplitInfo& split) {
  std::uint64_t bytes = 0;
  for (const dataset::ShardInfo& shard : split.shards) bytes += shard.bytes;
  return bytes;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  return names.size() > kShown ? text + ", ..." : text;
}

std::string images_text(const dataset::ImageStatistics& images) {
  std::string text = grouped(images.images);
  if (images.width_min == images.width_max && images.height_min == images.height_max) {
    text += format(", {}x{}", images.width_max, images.height_max);
  } else {
    text += format(", {} to {} wide, {} to {} high", images.width_min, images.width_max, images.height_min,
                   images.height_max);
  }
  if (images.progressive > 0) text += format(", {} progressive", grouped(images.progressive));
  if (images.grayscale > 0) text += format(", {} grey", grouped(images.grayscale));
  if (images.cmyk > 0) text += format(", {} CMYK", grouped(images.cmyk));
  return text;
}

// Empty without a DVC file.
std::string dvc_text(const Result<DvcState>& dvc) {
  if (!dvc.ok()) return std::string(dvc.status().message());
  if (!dvc->version) return {};
  const std::string text = version_text(*dvc->version);
  if (!dvc->compared.ignored_by.empty())
    return format("{}: not compared ({})", text, dvc->compared.ignored_by);
  return dvc->compared.difference.empty() ? text + ": number and size of files match"
                                          : format("{}: differs: {}", text, dvc->compared.difference);
}

void print(const Path& dataset, const dataset::Manifest& manifest, const Result<DvcState>& dvc, Output& out) {
  out.line("{}: {}, {}, {}, version {}", printable(dataset.string()), counted(manifest.samples(), "sample"),
           counted(manifest.shard_count(), "shard"), rounded({manifest.bytes()}), manifest.version);
  std::vector<std::vector<std::string>> rows;
  for (const dataset::SplitInfo& split : manifest.splits) {
    rows.push_back(
        {split.name, grouped(split.samples), grouped(split.shards.size()), rounded({bytes_of(split)})});
  }
  out.table({"SPLIT", "SAMPLES", "SHARDS", "SIZE"}, rows);
  const dataset::DatasetSchema& schema = manifest.schema;
  std::vector<std::string> files;
  for (const dataset::ComponentInfo& component : schema.components) files.push_back(component.name);
  out.line("files    {} in {}", first_few(files), schema.container);
  if (!schema.classes.empty()) {
    out.line("classes  {}: {}", grouped(schema.classes.size()), first_few(schema.classes));
  } else {
    out.line("classes  {}", schema.has_labels ? "numbers without names" : "none");
  }
  if (manifest.images.images > 0) out.line("images   {}", images_text(manifest.images));
  if (manifest.source) out.line("source   {}", version_text(*manifest.source));
  if (const std::string text = dvc_text(dvc); !text.empty()) out.line("dvc      {}", text);
}

std::string to_json(const Path& dataset, const dataset::Manifest& manifest, const Result<DvcState>& dvc) {
  ordered_json splits = ordered_json::array();
  for (const dataset::SplitInfo& split : manifest.splits) {
    splits.push_back({{"name", split.name},
                      {"samples", split.samples},
                      {"shards", split.shards.size()},
                      {"bytes", bytes_of(split)},
                      {"class_samples", split.class_samples}});
  }
  ordered_json components = ordered_json::array();
  for (const dataset::ComponentInfo& component : manifest.schema.components) {
    components.push_back({{"name", component.name}, {"is_image", component.is_image}});
  }
  const dataset::ImageStatistics& images = manifest.images;
  const ordered_json json = {{"dataset", printable(dataset.string())},
                             {"version", manifest.version},
                             {"samples", manifest.samples()},
                             {"shards", manifest.shard_count()},
                             {"bytes", manifest.bytes()},
                             {"splits", splits},
                             {"format", manifest.schema.container},
                             {"components", components},
                             {"has_labels", manifest.schema.has_labels},
                             {"classes", manifest.schema.classes},
                             {"images",
                              {{"count", images.images},
                               {"progressive", images.progressive},
                               {"grayscale", images.grayscale},
                               {"cmyk", images.cmyk},
                               {"width_min", images.width_min},
                               {"width_max", images.width_max},
                               {"height_min", images.height_min},
                               {"height_max", images.height_max}}},
                             {"left_out", manifest.left_out},
                             {"source_version", version_json(manifest.source)},
                             {"dvc", dvc.ok() ? to_json(*dvc) : ordered_json(dvc.status().message())}};
  return json_text(json);
}

// A data file of a different tool, or a Zarr folder.
bool is_foreign_file(const Path& path) {
  if (!folder_exists(path)) return path_exists(path);
  return !path_exists(path / dataset::kManifestFile) && sources::is_zarr(path.filename().string());
}

int print_file_info(const Path& file, Output& out) {
  install_stop_signals();
  auto progress = out.progress("");
  const Result<inspect::FileContents> contents = inspect::file_contents(file, *progress);
  progress.reset();
  if (!contents.ok()) return out.fail(contents.error());
  out.raw(inspect::contents_text(file, *contents));
  out.json(inspect::contents_json(file, *contents));
  return exit_code::kOk;
}

Status missing_dataset_error(const Path& folder, Status why) {
  if (!pack::is_ready_to_merge(folder)) return why;
  return not_found("{}: unfinished: all shards are packed but not merged", printable(folder.string()))
      .cure("stoker data merge {}", shell_quote(folder.string()));
}

}  // namespace

int data_info(std::span<const std::string> words, Output& out) {
  std::string dataset;
  Arguments arguments("data info", "Show the contents of a dataset, or of a file that could become one.");
  arguments.positional("DATASET", &dataset, "Dataset folder, or a file that could become a dataset");
  arguments.example("stoker data info photos-s");
  arguments.example("stoker data info events.h5");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (is_foreign_file(dataset)) return print_file_info(dataset, out);

  const Result<dataset::Manifest> manifest = dataset::read_manifest(dataset);
  if (!manifest.ok()) return out.fail(missing_dataset_error(dataset, manifest.status()));
  NoProgress quiet;
  const Result<DvcState> dvc = dvc_state(dataset, pack::DvcDepth::sizes, 1, quiet);
  print(dataset, *manifest, dvc, out);
  out.json(to_json(dataset, *manifest, dvc));
  return exit_code::kOk;
}

}  // namespace stoker::cli
