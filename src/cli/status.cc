// `stoker status [RUN]`: docs/commands/status.md
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/time.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "job/job.h"
#include "observe/progress.h"
#include "record/state.h"

namespace stoker::cli {
namespace {

struct Options {
  RunChoice choice{.run = ""};
  std::int64_t count = 20;
};

// One run as the table shows it.
struct Line {
  std::string id;
  std::string name;
  record::RunState state;
  int ranks = 0;
  double elapsed_s = 0;
  std::optional<std::uint32_t> epochs;  // planned
  observe::RunProgress progress;
  Status problem;  // the folder could not be opened
};

Line look_at(const record::ListedRun& listed, double now) {
  Line line{.id = listed.id, .problem = listed.problem};
  if (!listed.run) return line;
  const record::RunFolder& run = *listed.run;
  line.name = run.description().name;
  line.ranks = run.description().world_size;
  line.state = record::derive_state(run, {.now = now});
  if (line.state.started > 0) {
    const double end = line.state.state == record::State::running ? now : line.state.ended;
    line.elapsed_s = std::max(0.0, end - line.state.started);
  }
  const auto attempt = run.last_attempt();
  if (!attempt) return line;
  line.progress = observe::read_progress(*attempt, line.ranks);
  const auto job = job::load(attempt->job());
  if (job && job->train) line.epochs = job->train->epochs;
  return line;
}

std::string progress_text(const Line& line) {
  if (!line.progress.epoch) return "-";
  std::string text = format("epoch {}", *line.progress.epoch + 1);
  if (line.epochs) text += format("/{}", *line.epochs);
  if (line.progress.step) text += format(" step {}", *line.progress.step);
  return text;
}

std::string note(const Line& line) {
  if (!line.problem.ok()) return std::string(line.problem.message());
  std::string text = line.state.reason;
  if (text.empty() && line.progress.validation_top1)
    text = format("top-1 {:.1f} %", 100 * *line.progress.validation_top1);
  if (line.state.attempts > 1) text += format("{}attempt {}", text.empty() ? "" : ", ", line.state.attempts);
  return text;
}

nlohmann::ordered_json to_json(const Line& line) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  return {{"run", line.id},
          {"name", line.name},
          {"state", line.problem.ok() ? std::string(record::to_text(line.state.state)) : "damaged"},
          {"ranks", line.ranks},
          {"attempts", line.state.attempts},
          {"elapsed_s", line.elapsed_s},
          {"epoch", or_null(line.progress.epoch)},
          {"epochs", or_null(line.epochs)},
          {"step", or_null(line.progress.step)},
          {"samples_per_s", or_null(line.progress.samples_per_s)},
          {"validation_top1", or_null(line.progress.validation_top1)},
          {"exit_code", or_null(line.state.exit_code)},
          {"reason", line.problem.ok() ? line.state.reason : std::string(line.problem.message())}};
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void print(const std::vector<Line>& lines, Output& out) {
  if (out.is_json()) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const Line& line : lines) runs.push_back(to_json(line));
    out.json(nlohmann::ordered_json{{"runs", runs}}.dump(-1, ' ', false,
                                                         nlohmann::json::error_handler_t::replace));
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines) {
    const auto& rate = line.progress.samples_per_s;
    rows.push_back({line.id, line.problem.ok() ? std::string(record::to_text(line.state.state)) : "damaged",
                    line.problem.ok() ? std::to_string(line.ranks) : "-",
                    line.state.started > 0 ? clock_text(line.elapsed_s) : "-", progress_text(line),
                    rate ? format("{} samples/s", grouped(static_cast<std::uint64_t>(*rate))) : "-",
                    note(line)});
  }
  out.table({"RUN", "STATE", "RANKS", "ELAPSED", "PROGRESS", "SPEED", "NOTE"}, rows);
}

Result<std::vector<record::ListedRun>> chosen(const Options& o) {
  if (o.choice.run.empty()) {
    OK_OR_RETURN(all, record::list_runs(o.choice.runs));
    const auto count = static_cast<std::size_t>(o.count);
    if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
    return std::move(all);
  }
  OK_OR_RETURN(run, find_run(o.choice));
  return std::vector<record::ListedRun>{{run.id(), run.folder(), run, {}}};
}

}  // namespace

int status(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("status", "Shows runs at a glance, the newest last: state, progress, speed.");
  arguments.optional_positional("RUN", &o.choice.run,
                                "only this one: run id, a unique prefix of one, a folder, or 'last'");
  arguments.option("--runs", &o.choice.runs, "DIR",
                   "folder that holds the runs (the job's record.directory)");
  arguments.option("-n,--count", &o.count, "N", "show the newest N");
  arguments.example("stoker status");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.count < 1) return out.fail(invalid("status: --count {}: must be at least 1", o.count));
  const auto runs = chosen(o);
  if (!runs) return out.fail(runs.error());
  const double now = unix_seconds(RealClock().wall());
  std::vector<Line> lines;
  for (const record::ListedRun& run : *runs) lines.push_back(look_at(run, now));
  if (lines.empty()) out.line("no runs in {}/ (another folder: --runs DIR)", o.choice.runs);
  if (!lines.empty() || out.is_json()) print(lines, out);
  return exit_code::kOk;
}

}  // namespace stoker::cli
