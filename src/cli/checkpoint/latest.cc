// `stoker checkpoint latest FOLDER`: docs/commands/checkpoint-latest.md
#include "checkpoint/foreign/latest.h"

#include "base/json/json.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

struct Search {
  RunChoice choice;
  std::string match;
  std::optional<Duration> settle;
};

std::string to_json(const Path& folder, const checkpoint::Latest& latest) {
  nlohmann::ordered_json skipped = nlohmann::ordered_json::array();
  for (const checkpoint::SkippedStep& step : latest.skipped) {
    skipped.push_back({{"path", step.folder.string()}, {"why", step.why}});
  }
  nlohmann::ordered_json json = {{"folder", folder.string()},
                                 {"path", nullptr},
                                 {"kind", latest.kind},
                                 {"step", nullptr},
                                 {"skipped", std::move(skipped)}};
  if (latest.path) json["path"] = latest.path->string();
  if (latest.step) json["step"] = *latest.step;
  return json_text(json);
}

Status search(const Search& search, Output& out) {
  STOKER_ASSIGN_OR_RETURN(folder, find_checkpoint_directory(search.choice));
  install_stop_signals();
  RealClock clock;
  checkpoint::LatestOptions options{.match = search.match};
  if (search.settle) options.settle = *search.settle;
  auto progress = out.progress("reading");
  STOKER_ASSIGN_OR_RETURN(latest, checkpoint::find_latest(folder, options, clock, *progress));
  progress.reset();
  note_skipped_steps(latest.skipped, out);
  if (!latest.path) {
    return not_found("{}: {}", printable(folder.string()),
                     latest.skipped.empty() ? "no checkpoint" : "no intact checkpoint");
  }
  out.line("{}", latest.path->string());
  out.json(to_json(folder, latest));
  return {};
}

}  // namespace

int checkpoint_latest(std::span<const std::string> words, Output& out) {
  Search wanted;
  Arguments arguments("checkpoint latest",
                      "Print the newest intact checkpoint of a folder, in any supported format.");
  arguments.positional("FOLDER|RUN", &wanted.choice.run, "Folder with checkpoints, or a run");
  arguments.option("--match", &wanted.match, "PATTERN", "Consider only matching names: 'epoch-*.pt'");
  arguments.option("--settle", &wanted.settle, "TIME",
                   "Watch recently modified files for this time before use [2s]");
  arguments.option("--runs", &wanted.choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.example("stoker checkpoint latest runs/resnet50/checkpoints");
  if (const auto code = arguments.parse(words, out)) return *code;
  const Status status = search(wanted, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
