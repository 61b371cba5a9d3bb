#include "cli/life/run_table.h"

#include <algorithm>

#include "base/json/json.h"
#include "cli/life/jobs.h"
#include "cli/runs.h"
#include "job/job.h"
#include "observe/live_json.h"
#include "report/progress_note.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

RunLine describe(const record::RunFolder& run, const launch::RunLife& life, double now) {
  RunLine line{.id = run.id(), .name = run.description().name, .life = life, .folder = run};
  line.ranks = run.description().world_size;
  const record::RunState& records = life.records;
  if (records.started > 0) {
    const bool is_active = life.life == launch::Life::running || records.ended == 0;
    line.elapsed_s = std::max(0.0, (is_active ? now : records.ended) - records.started);
  }
  const auto attempt = run.last_attempt();
  if (!attempt) return line;
  line.progress = observe::read_progress(*attempt, line.ranks);
  const auto job = job::load(attempt->job());
  if (job && job->train) line.epochs = job->train->epochs;
  return line;
}

nlohmann::ordered_json to_json(const RunLine& line) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  return {{"run", line.id},
          {"name", line.name},
          {"state", state_of(line)},
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
          {"metrics", parse_json<nlohmann::ordered_json>(record::json_of(line.progress.metrics))},
          {"exit_code", or_null(line.life.records.exit_code)},
          {"reason", line.problem.ok() ? line.life.note : std::string(line.problem.message())},
          {"node_use", line.nodes ? parse_json<nlohmann::ordered_json>(json_of(*line.nodes))
                                  : nlohmann::ordered_json(nullptr)},
          {"doubts", parse_json<nlohmann::ordered_json>(json_of(line.doubts))}};
}

}  // namespace

std::vector<RunLine> query_runs(const std::vector<record::ListedRun>& listed, slurm::Scheduler& scheduler) {
  std::vector<record::RunFolder> runs;
  for (const record::ListedRun& each : listed) {
    if (each.run) runs.push_back(*each.run);
  }
  const auto lives = launch::query_life(runs, scheduler, Deadline::after(kSchedulerTimeout));
  const double now = unix_seconds(RealClock().wall());
  std::vector<RunLine> lines;
  std::size_t next = 0;
  for (const record::ListedRun& each : listed) {
    if (each.run) {
      lines.push_back(describe(*each.run, lives[next++], now));
    } else {
      lines.push_back(RunLine{.id = each.id, .problem = each.problem});
    }
  }
  return lines;
}

std::string state_of(const RunLine& line) {
  return line.problem.ok() ? std::string(to_text(line.life.life)) : "damaged";
}

std::string note_of(const RunLine& line) {
  if (!line.problem.ok()) return std::string(line.problem.message());
  std::string text = line.life.note;
  if (text.empty()) text = report::progress_note(line.progress);
  const std::string doubt = doubt_text(line.doubts);
  if (!doubt.empty()) text += (text.empty() ? "" : "; ") + doubt;
  const int attempts = line.life.records.attempts;
  if (attempts > 1) text += format("{}attempt {}", text.empty() ? "" : ", ", attempts);
  return text;
}

void print_runs(const std::vector<RunLine>& lines, Output& out) {
  std::vector<std::string> header = {"RUN", "STATE", "RANKS", "ELAPSED", "PROGRESS", "SPEED", "NOTE"};
  std::vector<std::vector<std::string>> rows;
  for (const RunLine& line : lines) {
    const auto& rate = line.progress.samples_per_s;
    rows.push_back({line.id, state_of(line), line.problem.ok() ? std::to_string(line.ranks) : "-",
                    line.life.records.started > 0 ? clock_text(line.elapsed_s) : "-",
                    report::progress_text(line.progress, line.epochs),
                    rate ? format("{} samples/s", grouped(static_cast<std::uint64_t>(*rate))) : "-",
                    note_of(line)});
  }
  // The JOB column is omitted without Slurm jobs.
  const bool has_jobs = std::any_of(lines.begin(), lines.end(),
                                    [](const RunLine& line) { return !line.life.scheduler_job.empty(); });
  for (std::size_t i = 0; has_jobs && i < lines.size(); ++i) {
    const std::string& job = lines[i].life.scheduler_job;
    rows[i].insert(rows[i].begin() + 1, job.empty() ? "-" : job);
  }
  if (has_jobs) header.insert(header.begin() + 1, "JOB");
  out.table(header, rows);
}

std::string json_of(const std::vector<RunLine>& lines) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RunLine& line : lines) list.push_back(to_json(line));
  return json_text(list);
}

}  // namespace stoker::cli
