// `stoker data index FOLDER`: docs/commands/data-index.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/table_arguments.h"
#include "cli/data/threads.h"
#include "cli/output.h"
#include "inspect/export/export_index.h"
#include "pack/index/index_build.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kIndexExports[] = {"wids", "dali", "energon", "hdf5"};

Result<std::vector<inspect::IndexExport>> exports(std::string_view text) {
  std::vector<inspect::IndexExport> wanted;
  if (text.empty()) return wanted;
  for (std::string_view name : split(text, ',')) {
    STOKER_ASSIGN_OR_RETURN(found, parse_choice("data index", "--export", trim(name), kIndexExports));
    wanted.push_back(static_cast<inspect::IndexExport>(found));
  }
  return wanted;
}

// The options of --window, unparsed.
struct WindowArguments {
  std::vector<std::string> windows;
  std::vector<std::string> variables;
  std::vector<std::string> targets;
  std::optional<std::int64_t> lead;
  std::optional<std::int64_t> lead_size;
  bool stacks = false;

  void declare(Arguments& arguments) {
    arguments.option("--window", &windows, "AXIS:SIZE[:STEP]",
                     "Sample windows over arrays of HDF5, Zarr or .npy; repeat per axis");
    arguments.option("--variable", &variables, "NAME",
                     "Use these arrays (default: all with the shape of the largest)");
    arguments.option("--lead", &lead, "N",
                     "Add a target N elements after the window along the first --window axis");
    arguments.option("--lead-size", &lead_size, "N", "Set the target's size along that axis (default: 1)");
    arguments.option("--target", &targets, "NAME",
                     "Take the target from these arrays (default: the window's)");
    arguments.flag("--stack", &stacks, "Stack the variables along a new first axis");
  }

  Result<std::optional<sources::WindowOptions>> options() const {
    if (windows.empty()) {
      const bool has_others = !variables.empty() || !targets.empty() || lead || lead_size || stacks;
      if (has_others)
        return invalid("data index: --variable, --lead, --lead-size, --target and --stack need --window");
      return std::optional<sources::WindowOptions>();
    }
    if ((lead && *lead < 1) || (lead_size && *lead_size < 1))
      return invalid("data index: --lead and --lead-size: at least 1");
    if (!lead && (lead_size || !targets.empty()))
      return invalid("data index: --lead-size and --target need --lead");
    sources::WindowOptions options{.variables = variables, .targets = targets};
    options.lead = static_cast<std::uint64_t>(lead.value_or(0));
    options.lead_size = static_cast<std::uint64_t>(lead_size.value_or(1));
    if (stacks) options.layout = sources::WindowOptions::Variables::stacked;
    for (const std::string& text : windows) {
      STOKER_ASSIGN_OR_RETURN(axis, sources::parse_window_axis(text));
      options.axes.push_back(axis);
    }
    return std::optional(std::move(options));
  }
};

void print_index(const std::string& folder, const dataset::Manifest& manifest,
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
  ThreadsOption threads;
  Arguments arguments("data index",
                      "Index a folder of shards as a dataset, or export an index for other readers.");
  arguments.positional("FOLDER", &folder,
                       "Folder with shards (tar, TFRecord, Parquet, HDF5, Zarr, NumPy) of any tool");
  arguments.option("--export", &others, "KIND,...", "Also write index files: wids, dali, energon, hdf5");
  arguments.choices(kIndexExports);
  WindowArguments window_arguments;
  window_arguments.declare(arguments);
  TableArguments table_arguments;
  table_arguments.declare(arguments);
  threads.declare(arguments);
  arguments.example("stoker data index shards/ --export wids,dali");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check_no_empty_arguments("data index", words); !status.ok())
    return out.fail(status);

  const auto wanted = exports(others);
  if (!wanted.ok()) return out.fail(wanted.error());
  const auto thread_count = threads.count("data index");
  if (!thread_count.ok()) return out.fail(thread_count.error());
  auto windows = window_arguments.options();
  if (!windows.ok()) return out.fail(windows.error());
  const auto table = table_arguments.options("data index");
  if (!table.ok()) return out.fail(table.error());
  if (table->is_set() && *windows)
    return out.fail(
        invalid("data index: --window needs arrays; --where, --columns, --tensor, --label, --key and "
                "--missing need tables"));
  install_stop_signals();
  auto progress = out.progress("");
  // Exporting a complete dataset needs no new index.
  const Path path(folder);
  const bool is_whole = !wanted->empty() && path_exists(path / dataset::kManifestFile) &&
                        path_exists(path / dataset::kIndexFile);
  Result<pack::IndexBuild> built = pack::IndexBuild{};
  if (is_whole) {
    Result<dataset::Manifest> manifest = dataset::read_manifest(path);
    if (!manifest.ok()) return out.fail(manifest.error());
    built->manifest = std::move(*manifest);
  } else {
    built = pack::build_index(path, {*thread_count, std::move(*windows), *table}, *progress);
  }
  if (!built.ok()) return out.fail(built.error());
  std::vector<std::string> written;
  std::vector<std::string> notes = built->notes;
  if (!is_whole) written.push_back(std::string(dataset::kIndexFile));
  if (!is_whole && !built->had_manifest) written.push_back(std::string(dataset::kManifestFile));
  for (const inspect::IndexExport what : *wanted) {
    const auto files = inspect::export_index(path, built->manifest, what, *progress);
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
