// `stoker status [RUN]`: docs/commands/status.md
#include <algorithm>

#include "base/time.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/runs.h"
#include "job/job.h"
#include "launch/life.h"
#include "observe/progress.h"

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
  launch::RunLife life;
  int ranks = 0;
  double elapsed_s = 0;
  std::optional<std::uint32_t> epochs;  // planned
  observe::RunProgress progress;
  Status problem;  // the folder could not be opened
};

Line describe(const record::RunFolder& run, const launch::RunLife& life, double now) {
  Line line{.id = run.id(), .name = run.description().name, .life = life};
  line.ranks = run.description().world_size;
  const record::RunState& records = life.records;
  if (records.started > 0) {
    const bool is_going_on = life.life == launch::Life::running || records.ended == 0;
    line.elapsed_s = std::max(0.0, (is_going_on ? now : records.ended) - records.started);
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

// All runs with one look at the scheduler.
std::vector<Line> look_at_all(const std::vector<record::ListedRun>& listed) {
  std::vector<record::RunFolder> runs;
  for (const record::ListedRun& each : listed) {
    if (each.run) runs.push_back(*each.run);
  }
  auto scheduler = make_scheduler();
  const auto lives = launch::look_at(runs, scheduler, Deadline::after(kSchedulerPatience));
  const double now = unix_seconds(RealClock().wall());
  std::vector<Line> lines;
  std::size_t next = 0;
  for (const record::ListedRun& each : listed) {
    if (each.run) {
      lines.push_back(describe(*each.run, lives[next++], now));
    } else {
      lines.push_back(Line{.id = each.id, .problem = each.problem});
    }
  }
  return lines;
}

std::string state_text(const Line& line) {
  return line.problem.ok() ? std::string(to_text(line.life.life)) : "damaged";
}

std::string note(const Line& line) {
  if (!line.problem.ok()) return std::string(line.problem.message());
  std::string text = line.life.note;
  if (text.empty() && line.progress.validation_top1)
    text = format("top-1 {:.1f} %", 100 * *line.progress.validation_top1);
  const int attempts = line.life.records.attempts;
  if (attempts > 1) text += format("{}attempt {}", text.empty() ? "" : ", ", attempts);
  return text;
}

nlohmann::ordered_json to_json(const Line& line) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  return {{"run", line.id},
          {"name", line.name},
          {"state", state_text(line)},
          {"job", text_or_null(line.life.scheduler_job)},
          {"nodes", text_or_null(line.life.nodes)},
          {"ranks", line.ranks},
          {"attempts", line.life.records.attempts},
          {"elapsed_s", line.elapsed_s},
          {"epoch", or_null(line.progress.epoch)},
          {"epochs", or_null(line.epochs)},
          {"step", or_null(line.progress.step)},
          {"samples_per_s", or_null(line.progress.samples_per_s)},
          {"validation_top1", or_null(line.progress.validation_top1)},
          {"exit_code", or_null(line.life.records.exit_code)},
          {"reason", line.problem.ok() ? line.life.note : std::string(line.problem.message())}};
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void print(const std::vector<Line>& lines, Output& out) {
  if (out.is_json()) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const Line& line : lines) runs.push_back(to_json(line));
    out.json(dump({{"runs", runs}}));
    return;
  }
  std::vector<std::string> header = {"RUN", "STATE", "RANKS", "ELAPSED", "PROGRESS", "SPEED", "NOTE"};
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines) {
    const auto& rate = line.progress.samples_per_s;
    rows.push_back({line.id, state_text(line), line.problem.ok() ? std::to_string(line.ranks) : "-",
                    line.life.records.started > 0 ? clock_text(line.elapsed_s) : "-", progress_text(line),
                    rate ? format("{} samples/s", grouped(static_cast<std::uint64_t>(*rate))) : "-",
                    note(line)});
  }
  // Who has no queue needs no column for it.
  const bool has_jobs = std::any_of(lines.begin(), lines.end(),
                                    [](const Line& line) { return !line.life.scheduler_job.empty(); });
  for (std::size_t i = 0; has_jobs && i < lines.size(); ++i) {
    const std::string& job = lines[i].life.scheduler_job;
    rows[i].insert(rows[i].begin() + 1, job.empty() ? "-" : job);
  }
  if (has_jobs) header.insert(header.begin() + 1, "JOB");
  out.table(header, rows);
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
  arguments.optional_positional(
      "RUN", &o.choice.run, "only this one: run id, a unique prefix of one, a folder, a job id, or 'last'");
  arguments.option("--runs", &o.choice.runs, "DIR",
                   "folder that holds the runs (the job's record.directory)");
  arguments.option("-n,--count", &o.count, "N", "show the newest N");
  arguments.example("stoker status");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.count < 1) return out.fail(invalid("status: --count {}: must be at least 1", o.count));
  const auto runs = chosen(o);
  if (!runs) return out.fail(runs.error());
  const std::vector<Line> lines = look_at_all(*runs);
  if (lines.empty()) out.line("no runs in {}/ (another folder: --runs DIR)", o.choice.runs);
  if (!lines.empty() || out.is_json()) print(lines, out);
  return exit_code::kOk;
}

}  // namespace stoker::cli
