#include "launch/array/run_tasks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "launch/array/array_file.h"
#include "launch/array/submit_array.h"
#include "launch/array/task_record.h"
#include "launch/environment.h"
#include "launch/next/after.h"
#include "launch/next/turn.h"
#include "rank/environment.h"
#include "rank/single/single.h"
#include "record/state.h"
#include "slurm/allocation.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLateRecords = 60s;
constexpr Duration kPatience = 10s;

std::int64_t number_in(const std::string& variable) {
  const auto text = environment_value(variable);
  std::int64_t number = 0;
  return text && parse_number(*text, &number) && number >= 0 && number < 1 << 30 ? number : 0;
}

// One job of the array.
class Tasks {
 public:
  Tasks(const Request& request, const ArrayFile& array, slurm::Scheduler& scheduler,
        const std::function<void(const std::string&)>& note)
      : request_(request), array_(array), scheduler_(scheduler), note_(note) {
    const auto here = slurm::current_allocation(slurm::process_environment());
    if (!here.ok() || !*here) return;
    job_ = (*here)->job_id;
    end_time_ = (*here)->end_time;
  }

  int run(const std::vector<std::uint32_t>& numbers) {
    int code = 0;
    for (const std::uint32_t task : numbers) {
      const int its = run_one(task);
      if (code == 0) code = its;
      if (is_interrupted_) break;
    }
    return code;
  }

 private:
  const record::RunFolder& run_folder() const { return *request_.resumed; }
  int attempt() const { return request_.prepared->number(); }

  int run_one(std::uint32_t task) {
    const TaskRecord before = read_task(run_folder(), task, attempt(), true);
    if (before.state == TaskState::done) return 0;
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
    const auto code = is_run_of_its_own(*job) ? run_as_run(task, *job, before, *events)
                                              : run_as_process(task, *job, *events);
    return code.ok() ? *code : fail(task, &*events, code.status());
  }

  int fail(std::uint32_t task, record::EventWriter* events, const Status& why) {
    note_(format("task {}: {}", task, why.message()));
    const int code = why.code() == Code::invalid ? 2 : why.code() == Code::unavailable ? 3 : 1;
    if (events != nullptr) (void)end(*events, record::Outcome::failed, code, std::string(why.message()));
    return code;
  }

  Status begin(record::EventWriter& events, const std::string& run) const {
    return write_task_event(
        events,
        TaskStarted{
            .attempt = attempt(), .host = record::this_process().host, .scheduler_job = job_, .run = run});
  }
  Status end(record::EventWriter& events, record::Outcome outcome, int code, std::string reason) const {
    return write_task_event(events, TaskEnded{attempt(), outcome, code, std::move(reason)});
  }

  // Where a task's checkpoints are: a folder of its own.
  Path checkpoints_of(std::uint32_t task, const job::Job& job) const {
    return checkpoint::directory_of_run(job.checkpoint.directory,
                                        std::filesystem::absolute(run_folder().folder())) /
           format("{:05}", task);
  }

  static Result<Path> newest_checkpoint(const Path& folder) {
    if (!path_exists(folder)) return Path();
    RealClock clock;
    NoProgress progress;
    OK_OR_RETURN(latest, checkpoint::find_latest(folder, {}, clock, progress));
    return latest.path.value_or(Path());
  }

  Result<int> run_as_process(std::uint32_t task, const job::Job& job, record::EventWriter& events) {
    RETURN_IF_ERROR(check_places(job));
    const double now = unix_seconds(RealClock().wall());
    rank::SingleOptions options;
    options.deadline = end_time_;
    options.deadline_text = "the allocation's time is over";
    if (job.resources.time) {
      const double own = now + Seconds(*job.resources.time).count();
      if (!options.deadline || own < *options.deadline) options.deadline = own;
      options.deadline_text = format("time {} is over (resources.time)", duration_text(*job.resources.time));
      options.notice = slurm::signal_before(job.checkpoint.before_end, job.resources.time);
    }
    const Path checkpoints = checkpoints_of(task, job);
    OK_OR_RETURN(resume, newest_checkpoint(checkpoints));
    options.environment =
        run_environment(inherited_environment(job, current_environment()), {.job = job,
                                                                            .folder = run_folder(),
                                                                            .attempt = *request_.prepared,
                                                                            .checkpoints = checkpoints,
                                                                            .resume = resume,
                                                                            .deadline = options.deadline});
    rank::unset_variable(options.environment, "STOKER_JOB");  // it is that of the first task
    rank::set_variable(options.environment, "STOKER_TASK", std::to_string(task));
    options.command = job.command->arguments;
    options.directory = job.working_directory;
    options.log = task_log(run_folder(), task);
    options.cpus = static_cast<int>(job.resources.cpus_per_rank.value_or(0));
    options.grace = job.timeouts.grace;
    RETURN_IF_ERROR(begin(events, ""));
    OK_OR_RETURN(ending, rank::run_single(options));
    return conclude(task, events, ending);
  }

  // A world of several ranks, or a training: it has all that a run has, in tasks/.
  Result<int> run_as_run(std::uint32_t task, const job::Job& job, const TaskRecord& before,
                         record::EventWriter& events) {
    Request own{.job = job};
    own.job.record.directory = std::filesystem::absolute(tasks_folder(run_folder()));
    own.job_file = request_.job_file;
    own.typed = run_folder().description().typed;
    own.stoker = request_.stoker;
    OK_OR_RETURN(log, File::open_append(task_log(run_folder(), task)));
    own.out_fd = own.err_fd = log.fd();
    if (!before.run.empty()) {
      auto earlier = record::RunFolder::open(own.job.record.directory / before.run);
      if (earlier.ok()) own.resumed = std::move(*earlier);
    }
    OK_OR_RETURN(prepared, prepare(own));
    class Announcer final : public Observer {
     public:
      explicit Announcer(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
      void run_exists(const record::RunFolder& folder, const record::Attempt&, const std::string&) override {
        tell_(folder.id());
      }

     private:
      std::function<void(const std::string&)> tell_;
    } announcer([&](const std::string& id) { (void)begin(events, id); });
    OK_OR_RETURN(result, launch::run(own, prepared, announcer));
    const rank::Ending& ending = result.ending;
    return conclude(task, events, {ending.outcome, ending.exit_code, ending.cause, ending.interrupted_by});
  }

  Result<int> conclude(std::uint32_t task, record::EventWriter& events, const rank::SingleEnding& ending) {
    is_interrupted_ = ending.interrupted_by != 0;
    // A task that Slurm will start again has not ended.
    if (is_interrupted_ && !job_.empty() && stay_if_preempted(job_, scheduler_, Deadline::after(kPatience)))
      return ending.exit_code;
    RETURN_IF_ERROR(end(events, ending.outcome, ending.exit_code, ending.cause));
    if (ending.outcome == record::Outcome::failed) note_(format("task {}: {}", task, ending.cause));
    return ending.exit_code;
  }

  const Request& request_;
  const ArrayFile& array_;
  slurm::Scheduler& scheduler_;
  const std::function<void(const std::string&)>& note_;
  std::string job_;
  std::optional<double> end_time_;
  bool is_interrupted_ = false;
};

}  // namespace

Result<int> run_tasks(const Request& request, slurm::Scheduler& scheduler,
                      const std::function<void(const std::string&)>& note) {
  OK_OR_RETURN(array, read_array_file(*request.prepared));
  const std::int64_t index = number_in("SLURM_ARRAY_TASK_ID") + number_in(std::string(kArrayFromVariable));
  const std::vector<std::uint32_t> numbers = array.tasks_of(static_cast<std::uint32_t>(index));
  if (numbers.empty())
    return invalid("job {} of an array of {}: there is none (SLURM_ARRAY_TASK_ID)", index, array.jobs());
  const Status after = check_predecessors(request.job.after, Deadline::after(kLateRecords));
  if (!after.ok()) return after;
  return Tasks(request, array, scheduler, note).run(numbers);
}

}  // namespace stoker::launch
