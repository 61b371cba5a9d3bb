// `stoker data merge OUT`: docs/commands/data-merge.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "pack/pack.h"

namespace stoker::cli {

int data_merge(std::span<const std::string> words, Output& out) {
  std::string folder;
  Arguments arguments("data merge", "Merge the parts of `stoker data pack --part I/N` into a dataset.");
  arguments.positional("OUT", &folder, "Output folder of all parts");
  arguments.example("stoker data merge photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<pack::PackSummary> summary = pack::merge_parts(folder);
  if (!summary.ok()) return out.fail(summary.error());
  const dataset::Manifest& manifest = summary->manifest;
  const std::string name = printable(folder);
  out.line("{}: {}, {}, {}, version {}", name, counted(manifest.samples(), "sample"),
           counted(manifest.shard_count(), "shard"), rounded({manifest.bytes()}), manifest.short_version());
  if (summary->left_out > 0) {
    out.line("  {} left out: {} (list: {}/left-out.csv)", counted(summary->left_out, "file"),
             pack::left_out_text(manifest.left_out), name);
  }
  const nlohmann::ordered_json json = {{"dataset", name},
                                       {"version", manifest.version},
                                       {"samples", manifest.samples()},
                                       {"shards", manifest.shard_count()},
                                       {"bytes", manifest.bytes()},
                                       {"files_left_out", summary->left_out},
                                       {"left_out", manifest.left_out}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
