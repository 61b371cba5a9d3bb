// `stoker data index FOLDER`: docs/commands/data-index.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/table_words.h"
#include "cli/data/threads.h"
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

// What the options about windows were given as.
struct WindowWords {
  std::vector<std::string> windows;
  std::vector<std::string> variables;
  std::vector<std::string> targets;
  std::optional<std::int64_t> lead;
  std::optional<std::int64_t> lead_size;
  bool stacks = false;

  void declare(Arguments& arguments) {
    arguments.option("--window", &windows, "AXIS:SIZE[:STEP]",
                     "samples are windows over arrays of HDF5, Zarr or .npy, along so many axes");
    arguments.option("--variable", &variables, "NAME",
                     "of these arrays; else of all of the largest one's shape");
    arguments.option("--lead", &lead, "N",
                     "a sample has a target, N behind its window's last element along the first --window");
    arguments.option("--lead-size", &lead_size, "N",
                     "elements of the target along that axis; 1 unless given");
    arguments.option("--target", &targets, "NAME", "of these arrays; else of the window's");
    arguments.flag("--stack", &stacks, "variables as one array, the first axis of which counts them");
  }

  Result<std::optional<data::WindowOptions>> options() const {
    if (windows.empty()) {
      const bool has_others = !variables.empty() || !targets.empty() || lead || lead_size || stacks;
      if (has_others)
        return invalid("data index: --variable, --lead, --lead-size, --target and --stack are for --window");
      return std::optional<data::WindowOptions>();
    }
    if ((lead && *lead < 1) || (lead_size && *lead_size < 1))
      return invalid("data index: --lead and --lead-size: at least 1");
    if (!lead && (lead_size || !targets.empty()))
      return invalid("data index: --lead-size and --target are for --lead");
    data::WindowOptions options{.variables = variables, .targets = targets};
    options.lead = static_cast<std::uint64_t>(lead.value_or(0));
    options.lead_size = static_cast<std::uint64_t>(lead_size.value_or(1));
    if (stacks) options.layout = data::WindowOptions::Variables::stacked;
    for (const std::string& text : windows) {
      OK_OR_RETURN(axis, data::parse_window_axis(text));
      options.axes.push_back(axis);
    }
    return std::optional(std::move(options));
  }
};

void print_index(const std::string& folder, const formats::Manifest& manifest,
                 const std::vector<std::string>& written, const std::vector<std::string>& notes,
                 Output& out) {
  out.line("{}: {}, {}, {}, version {}", printable(folder), counted(manifest.samples(), "sample"),
           counted(manifest.shard_count(), "shard"), rounded({manifest.bytes()}), manifest.short_version());
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
  out.json(json_text(json));
}

}  // namespace

int data_index(std::span<const std::string> words, Output& out) {
  std::string folder;
  std::string others;
  Threads threads;
  Arguments arguments("data index",
                      "Makes a dataset of a folder of shards, or an index that other readers want.");
  arguments.positional("FOLDER", &folder,
                       "with shards (tar, TFRecord, Parquet, HDF5, Zarr, NumPy), by whatever tool");
  arguments.option("--export", &others, "KIND,...",
                   "wids, dali, energon, hdf5: also the index files that these read");
  WindowWords window_words;
  window_words.declare(arguments);
  TableWords table_words;
  table_words.declare(arguments);
  threads.declare(arguments);
  arguments.example("stoker data index shards/ --export wids,dali");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = no_empty_words("data index", words); !status.ok()) return out.fail(status);

  const auto wanted = exports(others);
  if (!wanted.ok()) return out.fail(wanted.error());
  const auto thread_count = threads.count("data index");
  if (!thread_count.ok()) return out.fail(thread_count.error());
  auto windows = window_words.options();
  if (!windows.ok()) return out.fail(windows.error());
  const auto table = table_words.options("data index");
  if (!table.ok()) return out.fail(table.error());
  if (table->is_set() && *windows)
    return out.fail(
        invalid("data index: --window is for arrays, --where, --columns, --tensor, --label, --key and "
                "--missing are for tables"));
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
    built = data::build_index(path, {*thread_count, std::move(*windows), *table}, *progress);
  }
  if (!built.ok()) return out.fail(built.error());
  std::vector<std::string> written;
  std::vector<std::string> notes = built->notes;
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
  if (built->table) print_table(*built->table, *table, out);
  return exit_code::kOk;
}

}  // namespace stoker::cli
