// `stoker data index FOLDER`: docs/commands/data-index.md
#include <algorithm>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/threads.h"
#include "cli/json.h"
#include "cli/output.h"
#include "data/look/export_index.h"
#include "data/look/index_build.h"

namespace stoker::cli {
namespace {

Result<std::vector<data::IndexExport>> exports(std::string_view text) {
  constexpr std::string_view kNames[] = {"wids", "dali", "energon", "hdf5"};
  std::vector<data::IndexExport> wanted;
  if (text.empty()) return wanted;
  for (std::string_view name : split(text, ',')) {
    OK_OR_RETURN(found, choice("data index", "--export", trim(name), kNames));
    wanted.push_back(static_cast<data::IndexExport>(found));
  }
  return wanted;
}

void print_index(const std::string& folder, const formats::Manifest& manifest,
                 const std::vector<std::string>& written, const std::vector<std::string>& notes,
                 Output& out) {
  out.line("{}: {} samples, {} shards, {}, version {}", printable(folder), grouped(manifest.samples()),
           grouped(manifest.shard_count()), rounded({manifest.bytes()}), manifest.short_version());
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(
      written.begin(), written.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, written.size())));
  out.line("  wrote {}{}", join(shown, ", "),
           written.size() > kShown ? format(" and {} more", written.size() - kShown) : "");
  for (const std::string& note : notes) out.line("  {}", note);
  const nlohmann::ordered_json json = {{"dataset", printable(folder)},
                                       {"version", manifest.version},
                                       {"samples", manifest.samples()},
                                       {"shards", manifest.shard_count()},
                                       {"has_labels", manifest.schema.has_labels},
                                       {"written", written},
                                       {"notes", notes}};
  out.json(dump(json));
}

}  // namespace

int data_index(std::span<const std::string> words, Output& out) {
  std::string folder;
  std::string others;
  Threads threads;
  Arguments arguments("data index",
                      "Makes a dataset of a folder of shards, or an index that other readers want.");
  arguments.positional("FOLDER", &folder,
                       "with shards (tar, TFRecord, Parquet, HDF5, Zarr), by whatever tool");
  arguments.option("--export", &others, "KIND,...",
                   "wids, dali, energon, hdf5: also the index files that these read");
  threads.declare(arguments);
  arguments.example("stoker data index shards/ --export wids,dali");
  if (const auto code = arguments.parse(words, out)) return *code;

  const auto wanted = exports(others);
  if (!wanted.ok()) return out.fail(wanted.error());
  const auto thread_count = threads.count("data index");
  if (!thread_count.ok()) return out.fail(thread_count.error());
  install_stop_signals();
  auto progress = out.progress("");
  // An export of a dataset that is whole needs no new index.
  const Path path(folder);
  const bool is_whole = !wanted->empty() && path_exists(path / formats::kManifestFile) &&
                        path_exists(path / formats::kIndexFile);
  Result<data::IndexBuild> built = data::IndexBuild{};
  if (is_whole) {
    Result<formats::Manifest> manifest = formats::read_manifest(path);
    if (!manifest.ok()) return out.fail(manifest.error());
    built->manifest = std::move(*manifest);
  } else {
    built = data::build_index(path, *thread_count, *progress);
  }
  if (!built.ok()) return out.fail(built.error());
  std::vector<std::string> written;
  std::vector<std::string> notes;
  if (!is_whole) written.push_back(std::string(formats::kIndexFile));
  if (!is_whole && !built->had_manifest) written.push_back(std::string(formats::kManifestFile));
  for (const data::IndexExport what : *wanted) {
    const auto files = data::export_index(path, built->manifest, what, *progress);
    if (!files.ok()) return out.fail(files.error());
    written.insert(written.end(), files->written.begin(), files->written.end());
    notes.insert(notes.end(), files->notes.begin(), files->notes.end());
  }
  progress.reset();
  print_index(folder, built->manifest, written, notes, out);
  return exit_code::kOk;
}

}  // namespace stoker::cli
