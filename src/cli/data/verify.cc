// `stoker data verify DATASET [--full]`: docs/commands/data-verify.md
#include "pack/verify.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/report/dvc_report.h"
#include "cli/data/threads.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

void print(const Path& dataset, const pack::VerifyReport& report, bool is_full, Output& out) {
  const dataset::Manifest& manifest = report.manifest;
  if (report.damages == 0) {
    out.line("{}: {} in {}, {}", printable(dataset.string()), counted(manifest.samples(), "sample"),
             counted(manifest.shard_count(), "shard"),
             is_full ? "every byte verified" : "index and sizes verified (--full verifies every byte)");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const pack::Damage& damage : report.damaged) {
    rows.push_back({damage.shard, damage.sample, damage.expected, damage.found});
  }
  out.table({"SHARD", "SAMPLE", "EXPECTED", "FOUND"}, rows);
  if (report.damages > rows.size()) out.line("... and {} more", grouped(report.damages - rows.size()));
}

void print(const Path& dataset, const DvcState& dvc, bool is_full, Output& out) {
  if (!dvc.version) return;
  const std::string text = version_text(*dvc.version);
  if (!dvc.compared.ignored_by.empty()) {
    out.line("  {}: not compared: {} excludes files that only dvc can resolve", text,
             dvc.compared.ignored_by);
  } else if (dvc.compared.difference.empty()) {
    out.line("  {}: {}", text, is_full ? "every byte matches" : "number and size of files match");
  } else {
    out.note("{}: {}\n  try: {}", printable(dataset.string()), dvc.compared.difference, dvc.cure);
  }
}

std::string to_json(const Path& dataset, const pack::VerifyReport& report, const DvcState& dvc,
                    bool is_full) {
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array();
  for (const pack::Damage& damage : report.damaged) {
    damaged.push_back({{"shard", damage.shard},
                       {"sample", damage.sample},
                       {"expected", damage.expected},
                       {"found", damage.found}});
  }
  const nlohmann::ordered_json json = {{"dataset", printable(dataset.string())},
                                       {"version", report.manifest.version},
                                       {"compared", is_full ? "bytes" : "index and sizes"},
                                       {"samples", report.manifest.samples()},
                                       {"shards", report.manifest.shard_count()},
                                       {"damages", report.damages},
                                       {"damaged", damaged},
                                       {"dvc", to_json(dvc)}};
  return json_text(json);
}

}  // namespace

int data_verify(std::span<const std::string> words, Output& out) {
  std::string dataset;
  bool is_full = false;
  ThreadsOption threads;
  Arguments arguments("data verify", "Verify a dataset against its index and checksums.");
  arguments.positional("DATASET", &dataset, "Dataset folder");
  arguments.flag("--full", &is_full, "Compare every byte, not only index and sizes");
  threads.declare(arguments);
  arguments.example("stoker data verify photos-s --full");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto thread_count = threads.count("data verify");
  if (!thread_count.ok()) return out.fail(thread_count.error());

  install_stop_signals();
  auto progress = out.progress("");
  const auto depth = is_full ? pack::VerifyDepth::bytes : pack::VerifyDepth::index;
  const Result<pack::VerifyReport> report = pack::verify_dataset(dataset, depth, *thread_count, *progress);
  if (!report.ok()) return out.fail(report.error());
  const auto dvc_depth = is_full ? pack::DvcDepth::bytes : pack::DvcDepth::sizes;
  const Result<DvcState> dvc = dvc_state(dataset, dvc_depth, *thread_count, *progress);
  progress.reset();
  if (!dvc.ok()) return out.fail(dvc.error());
  print(dataset, *report, is_full, out);
  print(dataset, *dvc, is_full, out);
  out.json(to_json(dataset, *report, *dvc, is_full));
  if (report->damages == 0) return dvc->compared.difference.empty() ? exit_code::kOk : exit_code::kFailed;
  out.note("{}: {} damaged (version {})", printable(dataset), grouped(report->damages),
           report->manifest.short_version());
  return exit_code::kFailed;
}

}  // namespace stoker::cli
