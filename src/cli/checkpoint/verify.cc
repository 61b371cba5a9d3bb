// `stoker checkpoint verify DIR`: docs/commands/checkpoint-verify.md
#include "base/json/json.h"
#include "checkpoint/catalog.h"
#include "checkpoint/layout.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

// The step folders to look at: the one named, or all of a directory, the newest first.
Result<std::vector<Path>> folders_of(const RunChoice& choice) {
  if (const auto named = step_folder_named(choice)) return std::vector<Path>{*named};
  OK_OR_RETURN(directory, find_checkpoints(choice));
  OK_OR_RETURN(steps, checkpoint::step_folders(directory));
  std::vector<Path> folders;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    folders.push_back(directory / checkpoint::step_folder_name(*step));
  }
  if (folders.empty()) return not_found("{}: no checkpoint", printable(directory.string()));
  return folders;
}

Result<checkpoint::StepReport> read_all(const Path& folder, Output& out) {
  const auto progress = out.progress(printable(folder.filename().string()));
  return checkpoint::verify_step(folder, checkpoint::Depth::bytes, *progress);
}

void print(const checkpoint::StepReport& report, Output& out) {
  const std::string folder = printable(report.info.folder.string());
  for (const checkpoint::Damage& damage : report.damages) out.line("{}/{}", folder, damage.text());
  if (!report.damages.empty()) return;
  out.line("{}: step {}, {} tensors in {} files, {}, every byte as written", folder, report.info.step,
           grouped(report.tensors), grouped(report.files), rounded({report.info.bytes}));
}

nlohmann::ordered_json to_json(const checkpoint::StepReport& report) {
  nlohmann::ordered_json damages = nlohmann::ordered_json::array();
  for (const checkpoint::Damage& damage : report.damages) {
    damages.push_back({{"file", damage.file}, {"what", damage.what}});
  }
  return {{"folder", report.info.folder.string()},
          {"step", report.info.step.value},
          {"state", to_text(report.info.state)},
          {"bytes", report.info.bytes},
          {"files", report.files},
          {"tensors", report.tensors},
          {"damages", std::move(damages)}};
}

}  // namespace

int checkpoint_verify(std::span<const std::string> words, Output& out) {
  RunChoice choice;
  Arguments arguments("checkpoint verify",
                      "Reads every byte of a checkpoint and says what is not as it was written.");
  arguments.positional("DIR", &choice.run,
                       "a step folder, or a checkpoint directory or run, whose steps are all read");
  arguments.option("--runs", &choice.runs, "DIR", "folder that holds the runs (the job's record.directory)");
  arguments.example("stoker checkpoint verify runs/resnet50/checkpoints/step-1200");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto folders = folders_of(choice);
  if (!folders.ok()) return out.fail(folders.error());
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::size_t damaged = 0;
  install_stop_signals();
  for (const Path& folder : *folders) {
    const auto report = read_all(folder, out);
    if (!report.ok()) return out.fail(report.error());
    print(*report, out);
    json.push_back(to_json(*report));
    damaged += report->damages.empty() ? 0 : 1;
  }
  const nlohmann::ordered_json value = {{"steps", std::move(json)}};
  out.json(json_text(value));
  if (damaged == 0) return exit_code::kOk;
  out.note("{} of {} checkpoints damaged; a resume passes over {}", damaged, folders->size(),
           damaged == 1 ? "it" : "them");
  return exit_code::kFailed;
}

}  // namespace stoker::cli
