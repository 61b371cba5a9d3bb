// `stoker logs RUN`: docs/commands/logs.md
#include <memory>

#include <re2/re2.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/life/task_logs.h"
#include "cli/remote/host.h"
#include "launch/script/resume_script.h"
#include "launch/state/live_tasks.h"
#include "launch/status/control.h"
#include "observe/log_reader.h"
#include "observe/text_follower.h"
#include "record/state.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

struct LogsOptions {
  RunChoice choice;
  HostChoice host;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> task;
  std::int64_t attempt = 0;
  bool is_following = false;
  std::string pattern;
};

Result<std::unique_ptr<RE2>> compile(const std::string& pattern) {
  if (pattern.empty()) return std::unique_ptr<RE2>();
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<RE2>(pattern, options);
  if (!regex->ok()) return invalid("logs: --grep '{}': {}", printable(pattern), regex->error());
  return regex;
}

// The attempt to follow: waits, with notes, until the run has started or cannot start.
Result<record::Attempt> wait_for_attempt(const record::RunFolder& run, std::int64_t number, Output& out) {
  auto scheduler = make_scheduler();
  launch::WaitOptions options;
  bool has_begun = false;
  options.on_change = [&](const launch::RunLife& life) {
    has_begun = life.life == launch::Life::running && life.records.state == record::State::running;
    if (life.life == launch::Life::queued)
      out.note("job {} is queued{}", life.scheduler_job, life.note.empty() ? "" : " (" + life.note + ")");
  };
  options.should_stop = [&] { return has_begun || stop_requested(); };
  const auto over = launch::wait_for(run, scheduler, options);
  if (!over.ok() && !has_begun) return over.error();
  return find_attempt(run, number);
}

// Prints to the end of the logs, or with --follow until the run has ended.
Status print(const record::RunFolder& run, observe::LogReader& reader, const observe::LineSink& sink,
             bool is_following) {
  for (;;) {
    const bool is_over = !is_following || record::derive_state(run).state != record::State::running;
    STOKER_RETURN_IF_ERROR(reader.read_new(sink));
    if (is_over) {
      reader.finish(sink);
      return reader.check();
    }
    std::fflush(stdout);
    RealClock().sleep(std::chrono::milliseconds(200));
    if (stop_requested()) return cancelled("logs: interrupted");
  }
}

// Prints the batch log of an attempt whose ranks printed nothing.
void show_batch_log(const record::Attempt& attempt, Output& out) {
  const auto ranks = observe::ranks_with_logs(attempt);
  const auto log = read_file(attempt.batch_log(), 1_MiB);
  if (!ranks.ok() || !ranks->empty() || !log.ok() || log->empty()) return;
  out.note("no rank has started; output of {}:", display_path(attempt.batch_log()));
  out.raw(*log);
}

// Follows the log of a job until the job ends.
Status follow_job(const std::string& job, observe::TextFollower& follower,
                  const observe::TextFollower::Sink& sink) {
  auto scheduler = make_scheduler();
  launch::WaitOptions options;
  Status problem;
  options.should_stop = [&] {
    problem = follower.read_new(sink);
    std::fflush(stdout);
    return !problem.ok() || stop_requested();
  };
  const auto ended = launch::wait_for_job(job, scheduler, options, {});
  STOKER_RETURN_IF_ERROR(problem);
  return ended.status();
}

// A job without a run has one log, that of its batch script.
Status show_job(const Target& target, const LogsOptions& o, const RE2* regex, Output& out) {
  if (o.rank) return invalid("logs: --rank: job {} has no ranks, only one log", target.job);
  if (o.task) {
    Target task = target;
    task.job = format("{}_{}", target.job, *o.task);
    LogsOptions of_task = o;
    of_task.task.reset();
    return show_job(task, of_task, regex, out);
  }
  auto scheduler = make_scheduler();
  STOKER_ASSIGN_OR_RETURN(jobs, query_jobs(target, scheduler));
  if (jobs.size() != 1) {
    return invalid("logs: array {} has {} tasks, each with a log", target.job, jobs.size())
        .cure("stoker logs {}", jobs[0].facts.id);
  }
  const Path log = jobs[0].facts.log;
  if (log.empty()) {
    return not_found("job {}: unknown log path: Slurm's controller has forgotten the job", target.job);
  }
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const observe::TextFollower::Sink sink = [&](std::string_view line) {
    if (regex != nullptr && !RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex)) return;
    if (out.is_json()) lines.push_back({{"rank", nullptr}, {"text", std::string(line)}});
    out.raw(format("{}\n", line));
  };
  observe::TextFollower follower(log);
  STOKER_RETURN_IF_ERROR(follower.read_new(sink));
  if (o.is_following && !is_over(jobs[0].life))
    STOKER_RETURN_IF_ERROR(follow_job(target.job, follower, sink));
  STOKER_RETURN_IF_ERROR(follower.read_new(sink));
  follower.finish(sink);
  out.json(json_text(nlohmann::ordered_json{{"job", target.job}, {"log", log.string()}, {"lines", lines}}));
  return {};
}

// Rejects options that arrays do not support, or only with --task.
Status check_options_for_tasks(const LogsOptions& o, const record::RunFolder& run) {
  if (o.attempt > 0) return invalid("logs: --attempt: a task log of run {} contains all attempts", run.id());
  if (o.rank)
    return invalid("logs: --rank: run {} is an array with one log per task", run.id())
        .cure("stoker logs {} --task 1", run_reference(run));
  return {};
}

Status show_run(const record::RunFolder& run, const LogsOptions& o, const RE2* regex, Output& out) {
  const bool is_queued = record::derive_state(run).state == record::State::queued;
  STOKER_ASSIGN_OR_RETURN(attempt, is_queued && o.is_following ? wait_for_attempt(run, o.attempt, out)
                                                               : find_attempt(run, o.attempt));
  observe::LogReader reader(attempt, static_cast<int>(o.rank.value_or(-1)));
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const bool has_prefix = !o.rank.has_value();
  const observe::LineSink sink = [&](int rank, std::string_view line) {
    if (regex != nullptr && !RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex)) return;
    if (out.is_json()) {
      lines.push_back({{"rank", rank}, {"text", std::string(line)}});
    } else if (has_prefix) {
      out.raw(format("[{}] {}\n", rank, line));
    } else {
      out.raw(format("{}\n", line));
    }
  };
  STOKER_RETURN_IF_ERROR(print(run, reader, sink, o.is_following));
  show_batch_log(attempt, out);
  const nlohmann::ordered_json value = {{"run", run.id()}, {"attempt", attempt.number()}, {"lines", lines}};
  if (out.is_json()) out.json(json_text(value));
  return {};
}

// Shows the logs of all array tasks or of one; a task that is itself a run has ranks.
Status show_tasks(const record::RunFolder& run, const record::Attempt& last, const LogsOptions& o,
                  const RE2* regex, Output& out) {
  if (o.task) {
    STOKER_ASSIGN_OR_RETURN(task, launch::find_task(run, last, *o.task));
    if (const auto own = launch::run_of_task(run, task)) return show_run(*own, o, regex, out);
  }
  STOKER_RETURN_IF_ERROR(check_options_for_tasks(o, run));
  const auto wants = [regex](std::string_view line) {
    return regex == nullptr || RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex);
  };
  return show_task_logs({run, last, o.task, o.is_following, wants}, out);
}

Status show(const LogsOptions& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(regex, compile(o.pattern));
  STOKER_ASSIGN_OR_RETURN(target, find_target(o.choice));
  if (!target.run) return show_job(target, o, regex.get(), out);
  const auto last = target.run->last_attempt();
  if (last.ok() && launch::is_array(*last)) return show_tasks(*target.run, *last, o, regex.get(), out);
  if (!o.task) return show_run(*target.run, o, regex.get(), out);
  // Tasks of a user script's array are recorded like ranks.
  const auto script = launch::attempt_with_script(*target.run);
  if (!script) return invalid("logs: --task: run {} is not an array", target.run->id());
  LogsOptions of_task = o;
  of_task.rank = o.task;
  return show_run(*target.run, of_task, regex.get(), out);
}

}  // namespace

int logs(std::span<const std::string> words, Output& out) {
  LogsOptions o;
  Arguments arguments("logs", "Show the output of the ranks of a run.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--rank", &o.rank, "N", "Show only this rank, without prefix");
  arguments.option("--task", &o.task, "N", "Show only this task of an array, without prefix");
  arguments.option("--attempt", &o.attempt, "N", "Show this attempt; 0 is the last");
  arguments.flag("-f,--follow", &o.is_following, "Follow the output until the run ends");
  arguments.option("--grep", &o.pattern, "PATTERN",
                   "Show only lines that match this regular expression (RE2)");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker logs last --rank 0");
  arguments.example("stoker logs last --task 7");
  arguments.example("stoker logs last --grep 'loss [0-9.]+'");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "logs", words, "", out);
  if (o.rank && *o.rank < 0) return out.fail(invalid("logs: --rank {}: ranks are counted from 0", *o.rank));
  if (o.attempt < 0) return out.fail(invalid("logs: --attempt {}: attempts are counted from 1", o.attempt));
  install_stop_signals();
  const Status status = show(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
