// `stoker data verify DATASET [--full]`: docs/commands/data-verify.md
#include "data/pack/verify.h"

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

void print(const Path& dataset, const data::VerifyReport& report, bool is_full, Output& out) {
  const formats::Manifest& manifest = report.manifest;
  if (report.damages == 0) {
    out.line("{}: {} in {}, {}", printable(dataset.string()), counted(manifest.samples(), "sample"),
             counted(manifest.shard_count(), "shard"),
             is_full ? "every byte as packed" : "index and sizes as packed (--full compares every byte)");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const data::Damage& damage : report.damaged) {
    rows.push_back({damage.shard, damage.sample, damage.expected, damage.found});
  }
  out.table({"SHARD", "SAMPLE", "EXPECTED", "FOUND"}, rows);
  if (report.damages > rows.size()) out.line("... and {} more", grouped(report.damages - rows.size()));
}

void print(const Path& dataset, const DvcState& dvc, bool is_full, Output& out) {
  if (!dvc.version) return;
  const std::string text = version_text(*dvc.version);
  if (!dvc.compared.ignored_by.empty()) {
    out.line("  {}: not compared: {} leaves files out, only dvc can tell which", text,
             dvc.compared.ignored_by);
  } else if (dvc.compared.difference.empty()) {
    out.line("  {}: {} as it says", text, is_full ? "every byte" : "number and size of files");
  } else {
    out.note("{}: {}\n  try: {}", printable(dataset.string()), dvc.compared.difference, dvc.cure);
  }
}

std::string to_json(const Path& dataset, const data::VerifyReport& report, const DvcState& dvc,
                    bool is_full) {
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array();
  for (const data::Damage& damage : report.damaged) {
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
  Threads threads;
  Arguments arguments("data verify", "Compares a dataset with what was packed, and names what differs.");
  arguments.positional("DATASET", &dataset, "a folder that stoker data pack made");
  arguments.flag("--full", &is_full, "compare every byte, not only index and sizes");
  threads.declare(arguments);
  arguments.example("stoker data verify photos-s --full");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto thread_count = threads.count("data verify");
  if (!thread_count.ok()) return out.fail(thread_count.error());

  install_stop_signals();
  auto progress = out.progress("");
  const auto depth = is_full ? data::VerifyDepth::bytes : data::VerifyDepth::index;
  const Result<data::VerifyReport> report = data::verify_dataset(dataset, depth, *thread_count, *progress);
  if (!report.ok()) return out.fail(report.error());
  const auto dvc_depth = is_full ? data::DvcDepth::bytes : data::DvcDepth::sizes;
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
