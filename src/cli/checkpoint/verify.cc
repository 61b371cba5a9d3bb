// `stoker checkpoint verify DIR`: docs/commands/checkpoint-verify.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

// The named step folder, or all steps of a directory, the newest first.
Result<std::vector<Path>> folders_of(const RunChoice& choice) {
  if (const auto named = explicit_step_folder(choice)) return std::vector<Path>{*named};
  STOKER_ASSIGN_OR_RETURN(directory, find_checkpoint_directory(choice));
  STOKER_ASSIGN_OR_RETURN(steps, checkpoint::step_folders(directory));
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
  for (const checkpoint::StepDamage& damage : report.damages) out.line("{}/{}", folder, damage.text());
  if (!report.damages.empty()) return;
  out.line("{}: step {}, {} in {}, {}, every byte verified", folder, report.info.step,
           counted(report.tensors, "tensor"), counted(report.files, "file"), rounded({report.info.bytes}));
}

nlohmann::ordered_json to_json(const checkpoint::StepReport& report) {
  nlohmann::ordered_json damages = nlohmann::ordered_json::array();
  for (const checkpoint::StepDamage& damage : report.damages) {
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
  Arguments arguments("checkpoint verify", "Verify every byte of a checkpoint.");
  arguments.positional("DIR", &choice.run, "Step folder, or run or checkpoint directory (all steps)");
  arguments.option("--runs", &choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
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
  out.note("{} of {} checkpoints damaged; resume skips damaged checkpoints", damaged, folders->size());
  return exit_code::kFailed;
}

}  // namespace stoker::cli
