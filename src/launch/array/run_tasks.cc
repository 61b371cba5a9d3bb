#include "launch/array/run_tasks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "launch/array/submit_array.h"
#include "launch/next/attempt_decision.h"
#include "launch/next/policy.h"
#include "launch/start/environment.h"
#include "launch/start/tracker_process.h"
#include "launch/state/array_file.h"
#include "launch/state/task_record.h"
#include "launch/status/predecessors.h"
#include "rank/folder_presence.h"
#include "rank/single/single.h"
#include "record/state.h"
#include "slurm/allocation.h"
#include "slurm/queue/job_table.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPredecessorTimeout = 60s;
constexpr Duration kSchedulerTimeout = 10s;

std::int64_t number_in(const std::string& variable) {
  const auto text = environment_value(variable);
  std::int64_t number = 0;
  return text && parse_number(*text, &number) && number >= 0 && number < 1 << 30 ? number : 0;
}

Result<Path> newest_checkpoint(const Path& folder, const checkpoint::LatestOptions& options = {}) {
  if (!path_exists(folder)) return Path();
  RealClock clock;
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(latest, checkpoint::find_latest(folder, options, clock, progress));
  return latest.path.value_or(Path());
}

// Runs one job of the array.
class Tasks {
 public:
  Tasks(const Request& request, const TaskArrayFile& array, slurm::Scheduler& scheduler,
        const std::function<void(const std::string&)>& note)
      : request_(request),
        array_(array),
        scheduler_(scheduler),
        note_(note),
        link_(array.links == 0
                  ? 0
                  : std::max(1U, static_cast<std::uint32_t>(number_in(std::string(kArrayLinkVariable))))) {
    const auto here = slurm::current_allocation(slurm::process_environment());
    if (!here.ok() || !*here) return;
    job_ = (*here)->job_id;
    end_time_ = (*here)->end_time;
  }

  int run(const std::vector<std::uint32_t>& numbers) {
    int code = 0;
    rank::FolderPresence folders(request_.prepared->folder());
    for (const std::uint32_t task : numbers) {
      const int task_code = run_one(task);
      if (code == 0) code = task_code;
      if (is_interrupted_) break;
      // Later tasks cannot be recorded.
      if (const auto loss = folders.check_now()) {
        note_(format("task {}: {}", task, describe_loss(*loss)));
        return code == 0 ? 1 : code;
      }
    }
    return code;
  }

 private:
  const record::RunFolder& run_folder() const { return *request_.resumed; }
  int attempt() const { return request_.prepared->number(); }

  int run_one(std::uint32_t task) {
    const TaskRecord before = read_task(run_folder(), task, attempt(), true);
    if (before.state == TaskState::done || is_finished(before)) return 0;
    auto events = record::EventWriter::open(task_events(run_folder(), task));
    if (!events.ok()) return fail(task, nullptr, events.status());
    auto job = array_.job_of(task);
    if (!job.ok()) return fail(task, &*events, job.status());
    const std::uint32_t most = job->restart.preempted + job->restart.node_failed;
    if (before.starts > 0 && static_cast<std::uint32_t>(before.starts) > most) {
      return fail(task, &*events,
                  invalid("was started {} times (restart.preempted, restart.node_failed)", before.starts));
    }
    job->array = {};
    job->after.clear();
    const auto code =
        needs_own_run(*job) ? run_as_run(task, *job, before, *events) : run_as_process(task, *job, *events);
    return code.ok() ? *code : fail(task, &*events, code.status());
  }

  // A later link of a chain may start although its task has ended, or belongs to a newer attempt.
  bool is_finished(const TaskRecord& before) const {
    if (link_ == 0) return false;
    const bool is_over = before.state == TaskState::failed || before.state == TaskState::stopped;
    return before.attempt > attempt() || (before.attempt == attempt() && is_over);
  }

  int fail(std::uint32_t task, record::EventWriter* events, const Status& why) {
    note_(format("task {}: {}", task, why.message()));
    const int code = why.code() == Code::invalid ? 2 : why.code() == Code::unavailable ? 3 : 1;
    if (events != nullptr) (void)end(*events, record::Outcome::failed, code, std::string(why.message()));
    withdraw_later_links();
    return code;
  }

  Status begin(record::EventWriter& events, const std::string& run, const Path& resume) const {
    return write_task_event(
        events, TaskStarted{.attempt = attempt(),
                            .host = record::this_process().host,
                            .scheduler_job = job_,
                            .run = run,
                            .link = link_,
                            .started_from = link_ > 0 ? checkpoint_stamp(resume) : CheckpointStamp()});
  }
  Status end(record::EventWriter& events, record::Outcome outcome, int code, std::string reason,
             bool will_continue = false) const {
    return write_task_event(events, TaskEnded{attempt(), outcome, code, std::move(reason), will_continue});
  }

  // Each task has a separate folder of checkpoints.
  Path checkpoints_of(std::uint32_t task, const job::Job& job) const {
    return checkpoint::directory_of_run(job.checkpoint.directory,
                                        std::filesystem::absolute(run_folder().folder())) /
           format("{:05}", task);
  }

  Result<int> run_as_process(std::uint32_t task, const job::Job& job, record::EventWriter& events) {
    STOKER_RETURN_IF_ERROR(check_paths(job));
    const double now = unix_seconds(RealClock().wall());
    rank::SingleOptions options;
    options.deadline = end_time_;
    options.deadline_text = "the allocation's time limit";
    if (const std::optional<Duration> time = link_ > 0 ? job.chain.time_per_link : job.resources.time) {
      const double own = now + Seconds(*time).count();
      if (!options.deadline || own < *options.deadline) options.deadline = own;
      options.deadline_text = format("time limit {} ({})", duration_text(*time),
                                     link_ > 0 ? "chain.time_per_link" : "resources.time");
      options.notice = slurm::signal_before(job.checkpoint.before_end, time);
    }
    const Path checkpoints = checkpoints_of(task, job);
    STOKER_ASSIGN_OR_RETURN(resume, newest_checkpoint(checkpoints));
    STOKER_RETURN_IF_ERROR(make_directories(checkpoints).with_context("checkpoint.directory"));
    options.environment =
        run_environment(inherited_environment(job, current_environment()), {.job = job,
                                                                            .folder = run_folder(),
                                                                            .attempt = *request_.prepared,
                                                                            .checkpoints = checkpoints,
                                                                            .resume = resume,
                                                                            .deadline = options.deadline});
    unset_variable(options.environment, "STOKER_JOB");  // it is the job of the first task
    // An array that the task submits is unrelated.
    for (const std::string_view name : {kArrayFromVariable, kArrayLinkVariable})
      unset_variable(options.environment, std::string(name));
    set_variable(options.environment, "STOKER_TASK", std::to_string(task));
    set_variable(
        options.environment, "STOKER_TENSORBOARD_DIR",
        (std::filesystem::absolute(run_folder().folder()) / "tensorboard" / format("{:05}", task)).string());
    options.command = job.command->arguments;
    options.directory = job.working_directory;
    options.log = task_log(run_folder(), task);
    options.metrics_from = metrics_from(job);
    options.attempt = request_.prepared->folder();
    options.number = static_cast<int>(task);
    options.cpus = static_cast<int>(job.resources.cpus_per_rank.value_or(0));
    options.grace = job.timeouts.grace;
    STOKER_RETURN_IF_ERROR(begin(events, "", resume));
    std::string problem;
    auto trackers = TrackerProcess::start(
        job, {.run = run_folder(), .attempt = *request_.prepared, .task = task}, request_.stoker, &problem);
    if (!problem.empty()) note_(format("task {}: {}", task, problem));
    if (trackers) options.helper = trackers->pid();
    STOKER_ASSIGN_OR_RETURN(ending, rank::run_single(options));
    // An array may have 100 000 tasks that save nothing.
    (void)::rmdir(checkpoints.c_str());  // only if it is empty
    auto code = conclude({task, job, events, ending}, [&] {
      const auto newest = newest_checkpoint(checkpoints, {.match = "", .settle = Duration::zero()});
      return newest.ok() ? *newest : Path();
    });
    // The trackers also get the end of the task, which is recorded before.
    if (trackers) {
      for (const std::string& line : trackers->finish()) note_(line);
    }
    return code;
  }

  // A task with several ranks, or a training, is a complete run in tasks/.
  Result<int> run_as_run(std::uint32_t task, const job::Job& job, const TaskRecord& before,
                         record::EventWriter& events) {
    Request own{.job = job};
    own.job.record.directory = std::filesystem::absolute(tasks_folder(run_folder()));
    own.job_file = request_.job_file;
    own.typed = run_folder().description().typed;
    own.stoker = request_.stoker;
    own.is_link_of_task = link_ > 0;
    STOKER_ASSIGN_OR_RETURN(log, File::open_append(task_log(run_folder(), task)));
    own.out_fd = own.err_fd = log.fd();
    if (!before.run.empty()) {
      auto earlier = record::RunFolder::open(own.job.record.directory / before.run);
      if (earlier.ok()) own.resumed = std::move(*earlier);
    }
    STOKER_ASSIGN_OR_RETURN(prepared, prepare(own));
    class TaskObserver final : public Observer {
     public:
      using Callback = std::function<void(const std::string& id, const Path& resume)>;
      explicit TaskObserver(Callback callback) : callback_(std::move(callback)) {}
      void on_run_created(const record::RunFolder& folder, const record::Attempt&,
                          const ResumePoint& from) override {
        callback_(folder.id(), from.step);
      }

     private:
      Callback callback_;
    } announcer([&](const std::string& id, const Path& resume) { (void)begin(events, id, resume); });
    STOKER_ASSIGN_OR_RETURN(result, launch::run(own, prepared, announcer));
    const rank::Ending& ended = result.ending;
    const rank::SingleEnding ending{ended.outcome, ended.exit_code, ended.cause, ended.interrupted_by};
    return conclude({task, job, events, ending},
                    [&] { return newest_checkpoint_shallow(own, result.folder); });
  }

  struct Ended {
    std::uint32_t task;
    const job::Job& job;
    record::EventWriter& events;
    const rank::SingleEnding& ending;
  };

  Result<int> conclude(const Ended& it, const std::function<Path()>& newest) {
    const rank::SingleEnding& ending = it.ending;
    is_interrupted_ = ending.interrupted_by != 0;
    // A task that Slurm will requeue has not ended.
    if (is_interrupted_ && !job_.empty() &&
        block_while_preempted(job_, scheduler_, Deadline::after(kSchedulerTimeout)))
      return ending.exit_code;
    std::string reason = ending.cause;
    if (link_ > 0 && ending.outcome != record::Outcome::done && !is_interrupted_) {
      const Verdict verdict = judge_link(it, newest());
      if (verdict.will_continue) {
        STOKER_RETURN_IF_ERROR(end(it.events, record::Outcome::stopped, ending.exit_code, reason, true));
        note_(
            format("task {}: link {} of {} ends here, the next one continues", it.task, link_, array_.links));
        return 0;  // the next link depends on exit code 0
      }
      if (!verdict.why.empty()) reason += format("; {}", verdict.why);
    }
    STOKER_RETURN_IF_ERROR(end(it.events, ending.outcome, ending.exit_code, reason));
    if (ending.outcome == record::Outcome::failed || (link_ > 0 && ending.outcome != record::Outcome::done))
      note_(format("task {}: {}", it.task, reason));
    withdraw_later_links();
    return ending.exit_code;
  }

  Verdict judge_link(const Ended& it, const Path& newest) const {
    const rank::SingleEnding& ending = it.ending;
    std::vector<PastAttempt> history = links_of_task(run_folder(), it.task, attempt());
    const TaskRecord now = read_task(run_folder(), it.task, attempt(), true);
    history.push_back({.number = static_cast<int>(link_),
                       .cause = cause_of(ending.outcome, ending.exit_code, ending.cause),
                       .started_from = now.started_from});
    Verdict verdict = judge_next(it.job, history, checkpoint_stamp(newest));
    if (verdict.will_continue && link_ >= array_.links)
      verdict = Verdict::no(format("link {} of {} was the last (chain.links)", link_, array_.links));
    return verdict;
  }

  // Best effort: a link that is not cancelled finds nothing to do when it starts. The order of the arrays
  // identifies the links only if one array holds all jobs of a link, also during a submission.
  void withdraw_later_links() {
    if (link_ == 0 || link_ >= array_.links || job_.empty()) return;
    const std::vector<std::string> jobs = record::derive_state(run_folder()).jobs;
    const bool is_whole = number_in("SLURM_ARRAY_TASK_COUNT") == array_.jobs() && jobs.size() <= array_.links;
    if (!is_whole || jobs.size() < link_ || jobs[link_ - 1] != slurm::base_job_id(job_)) return;
    const std::int64_t index = number_in("SLURM_ARRAY_TASK_ID");
    for (std::size_t later = link_; later < jobs.size(); ++later)
      (void)scheduler_.cancel(format("{}_{}", jobs[later], index), Deadline::after(kSchedulerTimeout));
  }

  const Request& request_;
  const TaskArrayFile& array_;
  slurm::Scheduler& scheduler_;
  const std::function<void(const std::string&)>& note_;
  const std::uint32_t link_;  // of the tasks' chains, from 1; 0: no chains
  std::string job_;
  std::optional<double> end_time_;
  bool is_interrupted_ = false;
};

}  // namespace

Result<int> run_tasks(const Request& request, slurm::Scheduler& scheduler,
                      const std::function<void(const std::string&)>& note) {
  STOKER_ASSIGN_OR_RETURN(array, read_array_file(*request.prepared));
  const std::int64_t index = number_in("SLURM_ARRAY_TASK_ID") + number_in(std::string(kArrayFromVariable));
  const std::vector<std::uint32_t> numbers = array.tasks_of(static_cast<std::uint32_t>(index));
  if (numbers.empty())
    return invalid("job {} of an array of {}: no such job (SLURM_ARRAY_TASK_ID)", index, array.jobs());
  const Status after = check_predecessors(request.job.after, Deadline::after(kPredecessorTimeout));
  if (!after.ok()) return after;
  return Tasks(request, array, scheduler, note).run(numbers);
}

}  // namespace stoker::launch
