// `stoker checkpoint list RUN|DIR`: docs/commands/checkpoint-list.md
#include "base/json/json.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/read/catalog.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

std::string duration_or_dash(double seconds) {
  if (seconds <= 0) return "-";
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

std::string state_text(const checkpoint::StepInfo& step) {
  if (step.why.empty()) return std::string(to_text(step.state));
  return format("{}: {}; not used", to_text(step.state), step.why);
}

void print(const std::vector<checkpoint::StepInfo>& steps, double now, Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const checkpoint::StepInfo& step : steps) {
    rows.push_back({std::to_string(step.step.value), duration_or_dash(now - step.written),
                    rounded({step.bytes}), duration_or_dash(step.stall_s), duration_or_dash(step.write_s),
                    state_text(step)});
  }
  out.table({"STEP", "AGE", "SIZE", "STALL", "WRITE", "STATE"}, rows);
}

std::string to_json(const Path& directory, const std::vector<checkpoint::StepInfo>& steps) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const checkpoint::StepInfo& step : steps) {
    nlohmann::ordered_json entry = {{"step", step.step.value},      {"folder", step.folder.string()},
                                    {"state", to_text(step.state)}, {"why", step.why},
                                    {"bytes", step.bytes},          {"written", step.written}};
    if (step.world_size.value > 0) {
      entry["run"] = step.run;
      entry["world_size"] = step.world_size.value;
      entry["stall_s"] = step.stall_s;
      entry["write_s"] = step.write_s;
    }
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json json = {{"directory", directory.string()}, {"steps", std::move(list)}};
  return json_text(json);
}

void print(const std::vector<checkpoint::ForeignCheckpoint>& all, double now, Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const checkpoint::ForeignCheckpoint& each : all) {
    rows.push_back({printable(each.path.filename().string()), each.step ? std::to_string(*each.step) : "-",
                    duration_or_dash(now - each.written), rounded({each.bytes}), each.kind,
                    each.why.empty() ? "complete" : format("torn: {}; not used", each.why)});
  }
  out.table({"NAME", "STEP", "AGE", "SIZE", "KIND", "STATE"}, rows);
}

std::string to_json(const Path& directory, const std::vector<checkpoint::ForeignCheckpoint>& all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const checkpoint::ForeignCheckpoint& each : all) {
    list.push_back({{"path", each.path.string()},
                    {"kind", each.kind},
                    {"step", nullptr},
                    {"state", each.why.empty() ? "complete" : "torn"},
                    {"why", each.why},
                    {"bytes", each.bytes},
                    {"written", each.written}});
    if (each.step) list.back()["step"] = *each.step;
  }
  const nlohmann::ordered_json json = {{"directory", directory.string()},
                                       {"steps", nlohmann::ordered_json::array()},
                                       {"others", std::move(list)}};
  return json_text(json);
}

Status show(const RunChoice& choice, Output& out) {
  STOKER_ASSIGN_OR_RETURN(directory, find_checkpoint_directory(choice));
  const WallTime now = RealClock().wall();
  STOKER_ASSIGN_OR_RETURN(steps, checkpoint::list_steps(directory, checkpoint::Depth::structure, now));
  if (steps.empty()) {
    STOKER_ASSIGN_OR_RETURN(others, checkpoint::list_foreign(directory));
    if (others.empty()) return not_found("{}: no checkpoint", printable(directory.string()));
    print(others, unix_seconds(now), out);
    out.json(to_json(directory, others));
    return {};
  }
  print(steps, unix_seconds(now), out);
  out.json(to_json(directory, steps));
  return {};
}

}  // namespace

int checkpoint_list(std::span<const std::string> words, Output& out) {
  RunChoice choice;
  Arguments arguments("checkpoint list", "List the checkpoints of a run or directory and their state.");
  arguments.optional_positional("RUN|DIR", &choice.run,
                                "Run (id, prefix, folder, 'last') or checkpoint directory [last]");
  arguments.option("--runs", &choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.example("stoker checkpoint list last");
  if (const auto code = arguments.parse(words, out)) return *code;
  const Status status = show(choice, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
