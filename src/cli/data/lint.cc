// `stoker data lint SOURCE`: docs/commands/data-lint.md
#include "inspect/lint.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/readers.h"
#include "cli/data/threads.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

std::string some(const std::vector<inspect::Count>& counts, std::size_t most) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size() && i < most; ++i)
    parts.push_back(format("{} {}", printable(counts[i].name), grouped(counts[i].files)));
  return join(parts, ", ") + (counts.size() > most ? ", ..." : "");
}

void print(const std::string& where, const inspect::LintReport& report, Output& out) {
  const inspect::Census& census = report.census;
  out.line("{}: {}, {}", printable(where), counted(census.files, "file"), rounded({census.bytes}));
  for (const std::string& note : census.notes) out.line("  {}", note);
  if (census.splits.size() > 1) out.line("  splits   {}", some(census.splits, 8));
  if (!census.classes.empty())
    out.line("  classes  {}: {}", grouped(census.classes.size()), some(census.classes, 5));
  std::uint64_t most = 1;
  for (const inspect::Count& size : census.sizes) most = std::max(most, size.files);
  for (std::size_t i = 0; i < census.sizes.size(); ++i) {
    const inspect::Count& size = census.sizes[i];
    constexpr std::uint64_t kWidest = 30;
    std::string bar;
    for (std::uint64_t n = (size.files * kWidest + most - 1) / most; n > 0; --n) bar += "█";
    out.line("  {}  {:<18} {:>10}  {}", i == 0 ? "sizes  " : "       ", size.name, grouped(size.files), bar);
  }
  out.line("  {}  {}", census.is_dataset ? "shards " : "folders", some(census.folders, 5));
  if (census.disk_bytes > 0) {
    out.line("  disk     {} of {} free{}", rounded({census.disk_free}), rounded({census.disk_bytes}),
             census.disk_files == 0
                 ? ""
                 : format(", {} of {} inodes", grouped(census.disk_files_free), grouped(census.disk_files)));
  }
  for (const Finding& finding : report.findings) out.finding(finding);
}

ordered_json to_json(const std::vector<inspect::Count>& counts) {
  ordered_json json = ordered_json::array();
  for (const inspect::Count& count : counts)
    json.push_back({{"name", printable(count.name)}, {"files", count.files}, {"bytes", count.bytes}});
  return json;
}

std::string to_json(const std::string& where, const inspect::LintReport& report) {
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : report.findings) {
    ordered_json evidence = ordered_json::array();
    for (const Evidence& e : finding.evidence)
      evidence.push_back({{"where", e.where}, {"text", e.text.english()}});
    findings.push_back({{"rule", finding.rule},
                        {"level", std::string(to_text(finding.level))},
                        {"what", finding.what.english()},
                        {"evidence", evidence},
                        {"cure", finding.cure.english()}});
  }
  const inspect::Census& census = report.census;
  const ordered_json json = {{"source", printable(where)},
                             {"is_dataset", census.is_dataset},
                             {"files", census.files},
                             {"bytes", census.bytes},
                             {"splits", to_json(census.splits)},
                             {"classes", to_json(census.classes)},
                             {"sizes", to_json(census.sizes)},
                             {"folders", to_json(census.folders)},
                             {"disk_free", census.disk_free},
                             {"inodes_free", census.disk_files_free},
                             {"notes", census.notes},
                             {"findings", findings}};
  return json_text(json);
}

}  // namespace

int data_lint(std::span<const std::string> words, Output& out) {
  std::string where;
  std::string readers;
  constexpr std::string_view kLayouts[] = {"images", "files"};  // as sources::SourceLayout
  std::string layout = "images";
  ThreadsOption threads;
  bool decodes = false;
  Arguments arguments("data lint",
                      "Find broken, duplicated, leaked and mislabeled samples in a source or a dataset.");
  arguments.positional("SOURCE", &where, "Dataset, or any source of stoker data pack");
  arguments.flag("--decode", &decodes, "Decode every pixel, not only each image's structure");
  arguments.option("--for", &readers, "ranks=N,workers=N", "Check the shards for a job of this size");
  arguments.option("--layout", &layout, "KIND", "Set the layout: images or files, as in data pack");
  arguments.choices(kLayouts);
  threads.declare(arguments);
  arguments.example("stoker data lint photos/");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check_no_empty_arguments("data lint", words); !status.ok())
    return out.fail(status);

  const auto layout_at = parse_choice("data lint", "--layout", layout, kLayouts);
  if (!layout_at.ok()) return out.fail(layout_at.error());
  const auto thread_count = threads.count("data lint");
  if (!thread_count.ok()) return out.fail(thread_count.error());
  const auto wanted = parse_readers("data lint", readers);
  if (!wanted.ok()) return out.fail(wanted.error());
  install_stop_signals();
  auto progress = out.progress("");
  const inspect::LintOptions options{.source = {.where = where,
                                                .layout = static_cast<sources::SourceLayout>(*layout_at),
                                                .threads = *thread_count},
                                     .decodes = decodes,
                                     .readers = *wanted};
  const Result<inspect::LintReport> report = inspect::lint(options, *progress);
  progress.reset();
  if (!report.ok()) return out.fail(report.error());
  print(where, *report, out);
  out.json(to_json(where, *report));
  std::size_t fatal = 0;
  for (const Finding& finding : report->findings) fatal += finding.level == Level::job ? 1 : 0;
  out.line("{}{}", counted(report->findings.size(), "finding"),
           fatal == 0 ? "" : format(", {} would break a training", fatal));
  return fatal == 0 ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
