// `stoker logs RUN`: docs/commands/logs.md
#include <memory>

#include <re2/re2.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/life/task_logs.h"
#include "cli/remote/host.h"
#include "launch/array/live_tasks.h"
#include "launch/control.h"
#include "launch/script/script_again.h"
#include "observe/log_reader.h"
#include "observe/text_follower.h"
#include "record/state.h"

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

// The attempt to follow: waits, saying for what, until the run has begun or will never begin.
Result<record::Attempt> begun_attempt(const record::RunFolder& run, std::int64_t number, Output& out) {
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

// Prints until the end of the logs, or with --follow until the run has ended and all is printed.
Status print(const record::RunFolder& run, observe::LogReader& reader, const observe::LineSink& sink,
             bool is_following) {
  for (;;) {
    const bool is_over = !is_following || record::derive_state(run).state != record::State::running;
    RETURN_IF_ERROR(reader.read_new(sink));
    if (is_over) {
      reader.finish(sink);
      return reader.check();
    }
    std::fflush(stdout);
    RealClock().sleep(std::chrono::milliseconds(200));
    if (stop_requested()) return cancelled("logs: interrupted");
  }
}

// A submitted attempt whose ranks never printed: what its batch script said is all there is.
void show_batch_log(const record::Attempt& attempt, Output& out) {
  const auto ranks = observe::ranks_with_logs(attempt);
  const auto log = read_file(attempt.batch_log(), 1_MiB);
  if (!ranks.ok() || !ranks->empty() || !log.ok() || log->empty()) return;
  out.note("no rank has begun; {} says:", near(attempt.batch_log()));
  out.raw(*log);
}

// What comes of the log of a job until the job is over.
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
  RETURN_IF_ERROR(problem);
  return ended.status();
}

// A job that is no run of ours has one log: that of its batch script.
Status show_job(const Target& target, const LogsOptions& o, const RE2* regex, Output& out) {
  if (o.rank) return invalid("logs: --rank: job {} is no run, it has one log", target.job);
  if (o.task) {
    Target task = target;
    task.job = format("{}_{}", target.job, *o.task);
    LogsOptions of_task = o;
    of_task.task.reset();
    return show_job(task, of_task, regex, out);
  }
  auto scheduler = make_scheduler();
  OK_OR_RETURN(jobs, look_at(target, scheduler));
  if (jobs.size() != 1) {
    return invalid("logs: array {} has {} tasks, each with a log", target.job, jobs.size())
        .cure("stoker logs {}", jobs[0].facts.id);
  }
  const Path log = jobs[0].facts.log;
  if (log.empty()) {
    return not_found("job {}: where its log is only Slurm's controller knows, and it has forgotten the job",
                     target.job);
  }
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const observe::TextFollower::Sink sink = [&](std::string_view line) {
    if (regex != nullptr && !RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex)) return;
    if (out.is_json()) lines.push_back({{"rank", nullptr}, {"text", std::string(line)}});
    out.raw(format("{}\n", line));
  };
  observe::TextFollower follower(log);
  RETURN_IF_ERROR(follower.read_new(sink));
  if (o.is_following && !is_over(jobs[0].life)) RETURN_IF_ERROR(follow_job(target.job, follower, sink));
  RETURN_IF_ERROR(follower.read_new(sink));
  follower.finish(sink);
  out.json(json_text(nlohmann::ordered_json{{"job", target.job}, {"log", log.string()}, {"lines", lines}}));
  return {};
}

// What of an array has no meaning, or not without a task.
Status check_options_for_tasks(const LogsOptions& o, const record::RunFolder& run) {
  if (o.attempt > 0)
    return invalid("logs: --attempt: the log of a task of run {} holds what all of its attempts printed",
                   run.id());
  if (o.rank)
    return invalid("logs: --rank: run {} is an array, its tasks have logs", run.id())
        .cure("stoker logs {} --task 1", name_to_type(run));
  return {};
}

Status show_run(const record::RunFolder& run, const LogsOptions& o, const RE2* regex, Output& out) {
  const bool is_queued = record::derive_state(run).state == record::State::queued;
  OK_OR_RETURN(attempt, is_queued && o.is_following ? begun_attempt(run, o.attempt, out)
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
  RETURN_IF_ERROR(print(run, reader, sink, o.is_following));
  show_batch_log(attempt, out);
  const nlohmann::ordered_json value = {{"run", run.id()}, {"attempt", attempt.number()}, {"lines", lines}};
  if (out.is_json()) out.json(json_text(value));
  return {};
}

// Of an array: the logs of all tasks, or that of one; a task that is a run of its own has ranks.
Status show_tasks(const record::RunFolder& run, const record::Attempt& last, const LogsOptions& o,
                  const RE2* regex, Output& out) {
  if (o.task) {
    OK_OR_RETURN(task, launch::find_task(run, last, *o.task));
    if (const auto own = launch::run_of_task(run, task)) return show_run(*own, o, regex, out);
  }
  RETURN_IF_ERROR(check_options_for_tasks(o, run));
  const auto wants = [regex](std::string_view line) {
    return regex == nullptr || RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex);
  };
  return show_task_logs({run, last, o.task, o.is_following, wants}, out);
}

Status show(const LogsOptions& o, Output& out) {
  OK_OR_RETURN(regex, compile(o.pattern));
  OK_OR_RETURN(target, find_target(o.choice));
  if (!target.run) return show_job(target, o, regex.get(), out);
  const auto last = target.run->last_attempt();
  if (last.ok() && launch::is_array(*last)) return show_tasks(*target.run, *last, o, regex.get(), out);
  if (!o.task) return show_run(*target.run, o, regex.get(), out);
  // The tasks of a script's own array record as ranks do.
  const auto script = launch::attempt_with_script(*target.run);
  if (!script) return invalid("logs: --task: run {} is no array", target.run->id());
  LogsOptions of_task = o;
  of_task.rank = o.task;
  return show_run(*target.run, of_task, regex.get(), out);
}

}  // namespace

int logs(std::span<const std::string> words, Output& out) {
  LogsOptions o;
  Arguments arguments("logs", "Shows what the ranks of a run printed.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--rank", &o.rank, "N", "only this rank, its lines without a prefix");
  arguments.option("--task", &o.task, "N", "of an array: only this task, its lines without a prefix");
  arguments.option("--attempt", &o.attempt, "N", "which attempt; 0 is the last");
  arguments.flag("-f,--follow", &o.is_following, "go on until the run ends");
  arguments.option("--grep", &o.pattern, "PATTERN", "only lines that match this regular expression (RE2)");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker logs last --rank 0");
  arguments.example("stoker logs last --task 7");
  arguments.example("stoker logs last --grep 'loss [0-9.]+'");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_elsewhere()) return run_elsewhere(o.host, "logs", words, "", out);
  if (o.rank && *o.rank < 0) return out.fail(invalid("logs: --rank {}: ranks are counted from 0", *o.rank));
  if (o.attempt < 0) return out.fail(invalid("logs: --attempt {}: attempts are counted from 1", o.attempt));
  install_stop_signals();
  const Status status = show(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
