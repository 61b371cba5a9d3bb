#include "farm/run/worker.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/language/counted.h"
#include "farm/ledger/membership.h"
#include "farm/run/output_file.h"
#include "farm/run/steps.h"
#include "farm/run/task_choice.h"
#include "farm/run/task_process.h"
#include "rank/process/process_tree.h"

namespace stoker::farm {

namespace {

constexpr Duration kTaskGrace = std::chrono::seconds(10);  // between SIGTERM and SIGKILL
constexpr Duration kKillBeforeEnd = std::chrono::seconds(10);
constexpr Duration kHeartbeat = std::chrono::seconds(5);
constexpr Duration kOtherPoll = std::chrono::seconds(1);           // of other workers and progress
constexpr Duration kFirstMeasure = std::chrono::milliseconds(50);  // of memory, later at twice the age
constexpr Duration kLongestMeasure = std::chrono::seconds(1);
constexpr double kShortestClaim = 30;    // seconds of work
constexpr double kLongestClaim = 0.125;  // of the time that the worker runs
constexpr std::uint64_t kMeasured = 5;   // run times before they count
constexpr double kEstimate = 0.9;        // share of tasks that end within the estimate
constexpr std::size_t kLookAhead = 64;   // queued tasks tried in place of one that must wait
constexpr Duration kSignalsTogether = std::chrono::seconds(1);  // Slurm's, to the processes of a job
constexpr Duration kLongestBypass = std::chrono::seconds(60);

// Why a running task was stopped.
enum class TaskStop { none, request, end_of_time, own_time, memory };

struct RunningTask {
  TaskIndex task = 0;
  pid_t pid = -1;
  Grant grant;
  TaskNeeds needs;
  double start = 0;  // Unix seconds
  MonoTime started;
  OutputSpool spool;
  TaskStop cause = TaskStop::none;
  std::optional<MonoTime> kill_at;
  std::uint64_t kernel_kills = 0;  // of the cgroup when it started
  std::uint64_t peak_bytes = 0;    // of all its processes together, as measured while it runs
  MonoTime next_measure;
};

// A task that a signal ended. Slurm signals all processes of a job, and this one may receive its own later.
struct HeldEnd {
  RunningTask task;
  int status = 0;
  rusage usage{};
  MonoTime until;
};

// Ended by a signal that Slurm sends, also inside of a shell.
bool may_be_stopped(int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

// SIGCHLD and what ends the worker, blocked for its lifetime and received by wait().
class WorkerSignals {
 public:
  WorkerSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
      struct sigaction action{};
      ::sigaction(signal, nullptr, &action);
      // Ignored ones stay ignored, as under nohup.
      if (signal == SIGCHLD || action.sa_handler != SIG_IGN) ::sigaddset(&set_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~WorkerSignals() {
    // A repeated Ctrl-C must not end the process before it has printed its result.
    while (wait(Duration(0))) {
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  WorkerSignals(const WorkerSignals&) = delete;
  WorkerSignals& operator=(const WorkerSignals&) = delete;

  // The next signal other than SIGCHLD. Returns after `longest`, or as soon as a child has ended.
  std::optional<int> wait(Duration longest) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    const timespec limit{seconds.count(), (longest - seconds).count()};
    const int signal = ::sigtimedwait(&set_, nullptr, &limit);
    return signal > 0 && signal != SIGCHLD ? std::optional(signal) : std::nullopt;
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

// Null if it is not set.
const std::string* value_in(const Environment& environment, std::string_view name) {
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == environment.end() ? nullptr : &found->second;
}

class Worker {
 public:
  Worker(FarmState& state, const WorkerOptions& options)
      : state_(state),
        options_(options),
        resources_(options.machine, options.at_once, state.list().needs(0)) {}

  Result<WorkerResult> run();

 private:
  MonoTime now() const { return clock_.mono(); }
  double seconds_left() const;
  double estimate(TaskIndex task) const;
  bool can_end_in_time(TaskIndex task) const { return estimate(task) <= seconds_left(); }

  enum class Readiness { ready, waiting, too_late, blocked, lost };
  Readiness readiness(TaskIndex task) const;

  Status begin();
  Status check_that_tasks_fit() const;
  Status step();
  Status claim_more();
  std::size_t claim_size() const;
  Status start_ready();
  Status start(TaskIndex task, Grant grant, const TaskNeeds& needs);
  std::vector<std::string> variables_of(const RunningTask& task) const;
  Status record_up_to_date(TaskIndex task);
  Status reap();
  Status finish_held();
  Status finish(RunningTask& task, int status, const rusage& usage);
  std::uint64_t peak_of(const rusage& usage);
  void measure(RunningTask& task, MonoTime time);
  TaskOutcome outcome_of(const RunningTask& task, const Exit& exit, std::string* why) const;
  bool may_retry(TaskIndex task, TaskOutcome outcome);
  void receive(int signal);
  void check_limits();
  void stop(RunningTask& task, TaskStop cause, int signal);
  void stop_all(TaskStop cause, int signal);
  bool waits_for_others() const;
  Status poll_others();
  Duration next_wait() const;

  FarmState& state_;
  const WorkerOptions& options_;
  NodeResources resources_;
  RealClock clock_;
  WorkerSignals signals_;
  std::optional<TaskChoice> choice_;
  std::optional<Membership> member_;
  std::optional<TaskStarter> starter_;
  std::optional<OutputFile> output_;
  std::deque<TaskIndex> queue_;
  std::vector<RunningTask> running_;
  std::vector<HeldEnd> held_;
  std::map<TaskIndex, std::uint32_t> tries_;  // failures of tasks that are retried
  std::optional<MonoTime> head_waits_since_;  // the first task of the queue does not fit
  MonoTime began_;
  MonoTime last_heartbeat_;
  MonoTime last_poll_;
  std::uint64_t own_peak_bytes_ = 0;
  WorkerResult result_;
  Status problem_;             // ends the worker
  bool is_stopping_ = false;   // no task is started any more
  bool is_exhausted_ = false;  // nothing was claimable
};

double Worker::seconds_left() const {
  if (!options_.end_time) return 1e18;
  return *options_.end_time - Seconds(options_.signal_before).count() - unix_seconds(clock_.wall());
}

double Worker::estimate(TaskIndex task) const {
  if (const auto time = state_.list().needs(task).time) return Seconds(*time).count();
  const RunTimes& times = state_.run_times();
  return times.count() < kMeasured ? 0 : times.quantile(kEstimate);
}

Status Worker::begin() {
  STOKER_ASSIGN_OR_RETURN(starter,
                          TaskStarter::create(options_.environment,
                                              {"STOKER_TASK", "STOKER_DEADLINE", "CUDA_VISIBLE_DEVICES",
                                               std::string(kWorkerVariable), std::string(kStepVariable)},
                                              options_.wrapper));
  starter_ = std::move(starter);
  STOKER_ASSIGN_OR_RETURN(member, Membership::join(state_, options_.job));
  member_ = std::move(member);
  std::vector<std::string> dead;
  STOKER_RETURN_IF_ERROR(state_.find_lost_workers(member_->filesystem_time(), options_.job_is_over));
  for (const KnownWorker& worker : state_.workers()) {
    if (worker.is_over && !worker.has_exited && worker.who.host == record::this_process().host)
      dead.push_back(worker.id);
  }
  end_orphans(dead);
  STOKER_ASSIGN_OR_RETURN(output, OutputFile::open(state_.folder(), member_->file()));
  output_ = std::move(output);
  choice_.emplace(state_, options_.machine, options_.retries_failed);
  began_ = last_heartbeat_ = last_poll_ = now();
  return check_that_tasks_fit();
}

// Refuses a farm none of whose tasks this machine can run.
Status Worker::check_that_tasks_fit() const {
  Status first;
  for (TaskIndex task = 0; task < state_.list().size(); ++task) {
    if (!choice_->is_open(task)) continue;
    Status fits = check_needs(state_.list().needs(task), options_.machine);
    if (fits.ok()) return {};
    if (first.ok()) first = std::move(fits).with_context(format("task {}", state_.list().name(task)));
  }
  return first;
}

Result<WorkerResult> Worker::run() {
  STOKER_RETURN_IF_ERROR(begin());
  for (;;) {
    if (const Status status = step(); !status.ok() && problem_.ok()) {
      problem_ = status;
      stop_all(TaskStop::request, SIGTERM);
    }
    if (running_.empty() && held_.empty() && (is_stopping_ || queue_.empty()) &&
        (is_stopping_ || is_exhausted_)) {
      if (is_stopping_ || !waits_for_others()) break;
    }
    if (const auto signal = signals_.wait(next_wait())) receive(*signal);
    check_limits();
  }
  const Status left = member_->leave();
  if (!problem_.ok()) return problem_;
  if (!left.ok()) return left;
  return result_;
}

Status Worker::step() {
  STOKER_RETURN_IF_ERROR(reap());
  STOKER_RETURN_IF_ERROR(finish_held());
  if (now() - last_heartbeat_ >= kHeartbeat) {
    // After a long pause others may have taken this worker for lost, and its tasks.
    if (now() - last_heartbeat_ > kWorkerLease / 2) STOKER_RETURN_IF_ERROR(state_.refresh());
    STOKER_RETURN_IF_ERROR(member_->heartbeat());
    last_heartbeat_ = now();
  }
  if (now() - last_poll_ >= kOtherPoll) STOKER_RETURN_IF_ERROR(poll_others());
  if (is_stopping_) return {};
  STOKER_RETURN_IF_ERROR(start_ready());
  if (queue_.empty() && !is_exhausted_ && !is_stopping_) {
    STOKER_RETURN_IF_ERROR(claim_more());
    STOKER_RETURN_IF_ERROR(start_ready());
  }
  return {};
}

Status Worker::poll_others() {
  last_poll_ = now();
  if (waits_for_others() || choice_->has_order()) {
    STOKER_RETURN_IF_ERROR(state_.find_lost_workers(member_->filesystem_time(), options_.job_is_over));
    STOKER_RETURN_IF_ERROR(state_.refresh());
    is_exhausted_ = false;
  }
  if (options_.on_progress) options_.on_progress(state_.counts(), running_.size());
  return {};
}

// Other workers have tasks that come before tasks without an owner.
bool Worker::waits_for_others() const {
  if (!choice_->has_order() || !is_exhausted_) return false;
  for (TaskIndex task = 0; task < state_.list().size(); ++task) {
    const auto owner = state_.owner(task);
    if (owner && *owner != member_->worker() && !state_.workers()[*owner].is_over) return true;
  }
  return false;
}

// Few claims, although run times are unknown at first: at first a few tasks, then work for half a minute,
// later for an eighth of the time so far; at most a share of the open tasks, so that all workers end
// together.
std::size_t Worker::claim_size() const {
  const auto slots = static_cast<double>(resources_.slots());
  const RunTimes& times = state_.run_times();
  double size = 4 * slots;
  if (times.count() >= kMeasured) {
    const double elapsed = Seconds(now() - began_).count();
    const double seconds = std::min(std::max(kShortestClaim, kLongestClaim * elapsed), seconds_left());
    size = slots * std::max(seconds, 0.0) / std::max(times.mean(), 1e-4);
  }
  std::size_t workers = 0;
  for (const KnownWorker& worker : state_.workers()) workers += worker.is_over ? 0 : 1;
  std::size_t open = 0;
  for (TaskIndex task = 0; task < state_.list().size(); ++task)
    open += choice_->is_open(task) && !state_.owner(task) ? 1 : 0;
  const double share = static_cast<double>(open) / static_cast<double>(workers > 1 ? 2 * workers : 1);
  return static_cast<std::size_t>(std::max(std::min(size, share), slots));
}

// Tasks that come one after the other are claimed together.
Status Worker::claim_more() {
  bool is_too_late = false;
  std::vector<TaskIndex> chosen;
  const auto is_mine = [&](TaskIndex task) {
    const auto owner = state_.owner(task);
    return (owner && *owner == member_->worker()) || std::binary_search(chosen.begin(), chosen.end(), task);
  };
  STOKER_ASSIGN_OR_RETURN(claimed, member_->claim(claim_size(), [&](TaskIndex task) {
    if (task == 0) chosen.clear();  // another try
    if (!choice_->is_claimable(task, is_mine)) return false;
    if (!can_end_in_time(task)) {
      is_too_late = true;
      return false;
    }
    if (choice_->has_order()) chosen.push_back(task);
    return true;
  }));
  queue_.insert(queue_.end(), claimed.begin(), claimed.end());
  is_exhausted_ = claimed.empty();
  result_.is_out_of_time = result_.is_out_of_time || (is_exhausted_ && is_too_late);
  return {};
}

// Whether the queued task may start, has to wait, or has to be left to others.
Worker::Readiness Worker::readiness(TaskIndex task) const {
  const auto is_mine = [&](TaskIndex each) {
    const auto owner = state_.owner(each);
    return owner && *owner == member_->worker();
  };
  if (!is_mine(task)) return Readiness::lost;  // taken over after a pause
  if (!can_end_in_time(task)) return Readiness::too_late;
  const TaskExtras* const extras = state_.list().extras(task);
  if (extras == nullptr) return Readiness::ready;
  for (const TaskIndex before : extras->after) {
    if (choice_->is_satisfied(before)) continue;
    return is_mine(before) ? Readiness::waiting : Readiness::blocked;
  }
  return Readiness::ready;
}

// In order; tasks that fit now go before one that has to wait, but not for long.
Status Worker::start_ready() {
  std::vector<TaskIndex> left;
  std::size_t passed = 0;
  std::size_t i = 0;
  for (; i < queue_.size() && passed < kLookAhead; ++i) {
    const TaskIndex task = queue_[i];
    const Readiness ready = readiness(task);
    if (ready == Readiness::lost) continue;
    if (ready == Readiness::too_late || ready == Readiness::blocked) {
      result_.is_out_of_time = result_.is_out_of_time || ready == Readiness::too_late;
      STOKER_RETURN_IF_ERROR(member_->append(TasksFreed{{task}}));
      continue;
    }
    if (ready == Readiness::ready) {
      const TaskNeeds needs = choice_->next_needs(task);
      auto grant = resources_.take(needs);
      const bool is_started = grant.has_value();
      if (is_started) {
        STOKER_RETURN_IF_ERROR(start(task, *std::move(grant), needs));
        if (passed == 0) head_waits_since_.reset();
        continue;
      }
      if (passed == 0 && !head_waits_since_) head_waits_since_ = now();
      ++passed;
    }
    left.push_back(task);
    const bool is_full = state_.list().extras(0) == nullptr && running_.size() >= resources_.slots();
    if (passed > 0 && (is_full || now() - *head_waits_since_ > kLongestBypass)) {
      ++i;
      break;
    }
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(i));
  queue_.insert(queue_.begin(), left.begin(), left.end());
  return {};
}

std::vector<std::string> Worker::variables_of(const RunningTask& task) const {
  std::vector<std::string> variables = {"STOKER_TASK=" + state_.list().name(task.task),
                                        format("{}={}", kWorkerVariable, member_->id())};
  const std::string* const inherited = value_in(options_.environment, "CUDA_VISIBLE_DEVICES");
  if (task.needs.gpus > 0) {
    std::string ids;
    for (const std::uint32_t gpu : task.grant.gpus)
      ids += (ids.empty() ? "" : ",") + resources_.machine().gpus[gpu];
    variables.push_back("CUDA_VISIBLE_DEVICES=" + ids);
  } else if (inherited != nullptr) {
    variables.push_back("CUDA_VISIBLE_DEVICES=" + *inherited);
  }
  if (value_in(options_.environment, "OMP_NUM_THREADS") == nullptr)
    variables.push_back(format("OMP_NUM_THREADS={}", task.needs.cores));
  if (options_.end_time)
    variables.push_back(
        format("STOKER_DEADLINE={:.0f}", *options_.end_time - Seconds(options_.signal_before).count()));
  return variables;
}

Status Worker::start(TaskIndex task, Grant grant, const TaskNeeds& needs) {
  const TaskExtras* const extras = state_.list().extras(task);
  if (extras != nullptr && state_.attempts(task) > 0 && is_success(state_.outcome(task)) &&
      is_current(*extras)) {
    resources_.give_back(grant);
    return record_up_to_date(task);
  }
  RunningTask running{.task = task, .grant = std::move(grant), .needs = needs};
  STOKER_ASSIGN_OR_RETURN(spool, output_->take_spool());
  running.spool = std::move(spool);
  TaskCall call{.command = state_.list().command(task),
                .variables = variables_of(running),
                .output_fd = running.spool.fd(),
                .cores = {}};
  if (options_.is_pinned) {
    for (const int core : running.grant.cores)
      call.cores.push_back(
          resources_.machine().cores[static_cast<std::size_t>(core) % resources_.machine().cores.size()]);
  }
  running.start = unix_seconds(clock_.wall());
  running.started = now();
  running.next_measure = running.started + kFirstMeasure;
  if (needs.memory) running.kernel_kills = rank::memory_kills().count;
  auto pid = starter_->start(call);
  if (!pid && pid.error().code() == Code::unavailable && !running_.empty()) {
    // No process is left for this user at the moment.
    resources_.give_back(running.grant);
    output_->give_back(std::move(running.spool));
    queue_.push_back(task);
    return {};
  }
  if (!pid) return std::move(pid).error();
  running.pid = *pid;
  running_.push_back(std::move(running));
  return {};
}

Status Worker::record_up_to_date(TaskIndex task) {
  is_exhausted_ = false;
  return member_->append(TaskEnd{.task = task,
                                 .key = state_.list().key(task),
                                 .attempt = state_.attempts(task) + 1,
                                 .outcome = TaskOutcome::up_to_date,
                                 .start = unix_seconds(clock_.wall())});
}

Status Worker::reap() {
  Status first;
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0;) {
    const auto found =
        std::find_if(running_.begin(), running_.end(), [&](const RunningTask& r) { return r.pid == pid; });
    if (found == running_.end()) continue;
    RunningTask task = std::move(*found);
    if (found != running_.end() - 1) *found = std::move(running_.back());
    running_.pop_back();
    // What it left behind would use the cores of the next task.
    signal_group(pid, SIGKILL);
    if (may_be_stopped(status) && task.cause == TaskStop::none && !is_stopping_) {
      held_.push_back({std::move(task), status, usage, now() + kSignalsTogether});
      continue;
    }
    Status finished = finish(task, status, usage);
    if (first.ok()) first = std::move(finished);
  }
  return first;
}

// Until a signal came to this process too, or did not.
Status Worker::finish_held() {
  Status first;
  const MonoTime time = now();
  for (std::size_t i = 0; i < held_.size();) {
    if (!is_stopping_ && time < held_[i].until) {
      ++i;
      continue;
    }
    HeldEnd end = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    if (is_stopping_) end.task.cause = TaskStop::request;
    Status finished = finish(end.task, end.status, end.usage);
    if (first.ok()) first = std::move(finished);
  }
  return first;
}

TaskOutcome Worker::outcome_of(const RunningTask& task, const Exit& exit, std::string* why) const {
  *why = to_text(exit);
  if (exit.ok()) {
    const TaskExtras* const extras = state_.list().extras(task.task);
    if (extras == nullptr) return TaskOutcome::done;
    const auto missing = std::find_if(extras->makes.begin(), extras->makes.end(),
                                      [](const Path& file) { return !path_exists(file); });
    if (missing == extras->makes.end()) return TaskOutcome::done;
    *why = format("did not make {}", missing->string());
    return TaskOutcome::failed;
  }
  switch (task.cause) {
    case TaskStop::request:
    case TaskStop::end_of_time:
      return TaskOutcome::stopped;
    case TaskStop::own_time:
      *why = format("longer than {}", duration_text(*task.needs.time));
      return TaskOutcome::timeout;
    case TaskStop::memory:
      *why = format("more than {} of memory", to_text(*task.needs.memory));
      return TaskOutcome::out_of_memory;
    case TaskStop::none:
      break;
  }
  const bool is_killed = exit.shell_code() == 128 + SIGKILL;
  if (is_killed && task.needs.memory && rank::memory_kills().count > task.kernel_kills) {
    *why = "killed for lack of memory";
    return TaskOutcome::out_of_memory;
  }
  if (task.needs.memory && task.peak_bytes > task.needs.memory->value) {
    *why = format("{}, after it used {} of memory", *why, rounded(ByteCount{task.peak_bytes}));
    return TaskOutcome::out_of_memory;
  }
  return TaskOutcome::failed;
}

bool Worker::may_retry(TaskIndex task, TaskOutcome outcome) {
  if (!is_failure(outcome) || is_stopping_ || options_.retries == 0) return false;
  const auto memory = state_.list().needs(task).memory;
  const bool is_all_memory =
      memory && choice_->next_needs(task).memory->value >= options_.machine.memory.value;
  if (outcome == TaskOutcome::out_of_memory && is_all_memory) return false;
  return ++tries_[task] <= options_.retries;
}

// Of the largest process of an ended task. A process begins with the memory of its parent in this counter: 0
// if it is not larger.
std::uint64_t Worker::peak_of(const rusage& usage) {
  const auto peak = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
  if (peak > own_peak_bytes_) {
    own_peak_bytes_ = own_peak().value;
  }
  return peak > own_peak_bytes_ ? peak : 0;
}

Status Worker::finish(RunningTask& task, int status, const rusage& usage) {
  resources_.give_back(task.grant);
  const Exit exit = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  task.peak_bytes = std::max(task.peak_bytes, peak_of(usage));
  std::string why;
  TaskEnd end{
      .task = task.task, .key = state_.list().key(task.task), .attempt = state_.attempts(task.task) + 1};
  end.outcome = outcome_of(task, exit, &why);
  end.code = exit.code;
  end.signal = exit.signal;
  end.start = task.start;
  end.seconds = Seconds(now() - task.started).count();
  end.is_kept = may_retry(task.task, end.outcome);
  end.peak_bytes = task.peak_bytes;
  STOKER_ASSIGN_OR_RETURN(place, output_->keep(std::move(task.spool)));
  end.offset = place.offset;
  end.length = place.length;
  STOKER_RETURN_IF_ERROR(member_->append(end));
  ++result_.ended;
  if (end.is_kept) {
    queue_.push_back(task.task);
  } else if (is_failure(end.outcome)) {
    ++result_.failed;
    if (options_.on_failure) options_.on_failure({task.task, std::move(why)});
  }
  // What comes after it may be ready now.
  if (choice_->has_order()) is_exhausted_ = false;
  return {};
}

void Worker::stop(RunningTask& task, TaskStop cause, int signal) {
  if (task.cause == TaskStop::none) task.cause = cause;
  signal_group(task.pid, signal);
  if (!task.kill_at) task.kill_at = now() + kTaskGrace;
}

void Worker::stop_all(TaskStop cause, int signal) {
  is_stopping_ = true;
  for (RunningTask& task : running_) stop(task, cause, signal);
}

void Worker::receive(int signal) {
  if (signal == SIGUSR1) {  // from Slurm, before the time limit
    if (is_stopping_) return;
    result_.is_out_of_time = true;
    return stop_all(TaskStop::end_of_time, options_.end_signal);
  }
  const bool is_second = result_.signal.has_value();
  if (!is_second) result_.signal = signal;
  stop_all(TaskStop::request, is_second ? SIGKILL : SIGTERM);
}

void Worker::check_limits() {
  const MonoTime time = now();
  if (!is_stopping_ && options_.end_time && seconds_left() <= 0) {
    result_.is_out_of_time = true;
    stop_all(TaskStop::end_of_time, options_.end_signal);
    // Tasks may use the time until the end.
    const Duration rest = options_.signal_before - kKillBeforeEnd;
    for (RunningTask& task : running_) task.kill_at = time + std::max(rest, Duration(0));
  }
  for (RunningTask& task : running_) {
    if (task.kill_at && time >= *task.kill_at) signal_group(task.pid, SIGKILL);
    if (task.cause != TaskStop::none) continue;
    if (task.needs.time && time - task.started > *task.needs.time) stop(task, TaskStop::own_time, SIGTERM);
    if (task.needs.memory && time >= task.next_measure) measure(task, time);
  }
}

// Often at first: short tasks are measured too.
void Worker::measure(RunningTask& task, MonoTime time) {
  const ByteCount used = memory_of(task.pid, *task.needs.memory);
  task.peak_bytes = std::max(task.peak_bytes, used.value);
  task.next_measure = time + std::clamp<Duration>(time - task.started, kFirstMeasure, kLongestMeasure);
  if (used > *task.needs.memory) stop(task, TaskStop::memory, SIGKILL);
}

Duration Worker::next_wait() const {
  Duration wait = std::chrono::milliseconds(held_.empty() ? 500 : 100);
  const MonoTime time = now();
  for (const RunningTask& task : running_) {
    if (task.kill_at || task.needs.time) wait = std::min<Duration>(wait, std::chrono::milliseconds(100));
    if (task.needs.memory)
      wait = std::min(wait, std::max<Duration>(task.next_measure - time, std::chrono::milliseconds(1)));
  }
  return wait;
}

}  // namespace

Result<WorkerResult> run_worker(FarmState& state, const WorkerOptions& options) {
  return Worker(state, options).run();
}

}  // namespace stoker::farm
