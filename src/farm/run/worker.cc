#include "farm/run/worker.h"

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>

#include "farm/ledger/membership.h"
#include "farm/run/output_file.h"
#include "farm/run/running_tasks.h"
#include "farm/run/steps.h"
#include "farm/run/task_choice.h"
#include "farm/run/task_process.h"
#include "farm/run/worker_signals.h"
#include "rank/process/process_tree.h"

namespace stoker::farm {

namespace {

constexpr Duration kKillBeforeEnd = std::chrono::seconds(10);
constexpr Duration kHeartbeat = std::chrono::seconds(5);
constexpr Duration kOtherPoll = std::chrono::seconds(1);  // of other workers and progress
constexpr double kShortestClaim = 30;                     // seconds of work
constexpr double kLongestClaim = 0.125;                   // of the time that the worker runs
constexpr std::uint64_t kMeasured = 5;                    // run times before they count
constexpr double kEstimate = 0.9;                         // share of tasks that end within the estimate
constexpr std::size_t kLookAhead = 64;                    // queued tasks tried in place of one that must wait
constexpr Duration kLongestBypass = std::chrono::seconds(60);

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
        resources_(options.machine, options.at_once, state.list().needs(0)),
        running_(state.list(), clock_) {}

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
  Status finish(EndedTask ended);
  bool may_retry(TaskIndex task, TaskOutcome outcome);
  void receive(int signal);
  void check_end_of_time();
  bool waits_for_others() const;
  Status poll_others();

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
  RunningTasks running_;
  std::map<TaskIndex, std::uint32_t> tries_;  // failures of tasks that are retried
  std::optional<MonoTime> head_waits_since_;  // the first task of the queue does not fit
  MonoTime began_;
  MonoTime last_heartbeat_;
  MonoTime last_poll_;
  WorkerResult result_;
  Status problem_;             // ends the worker
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
      running_.stop_all(TaskStop::request, SIGTERM);
    }
    const bool is_stopping = running_.is_stopping();
    if (running_.is_idle() && (is_stopping || (queue_.empty() && is_exhausted_ && !waits_for_others())))
      break;
    if (const auto signal = signals_.wait(running_.next_wait())) receive(*signal);
    check_end_of_time();
    running_.check_limits();
  }
  const Status left = member_->leave();
  if (!problem_.ok()) return problem_;
  if (!left.ok()) return left;
  return result_;
}

Status Worker::step() {
  STOKER_RETURN_IF_ERROR(reap());
  if (now() - last_heartbeat_ >= kHeartbeat) {
    // After a long pause others may have taken this worker for lost, and its tasks.
    if (now() - last_heartbeat_ > kWorkerLease / 2) STOKER_RETURN_IF_ERROR(state_.refresh());
    STOKER_RETURN_IF_ERROR(member_->heartbeat());
    last_heartbeat_ = now();
  }
  if (now() - last_poll_ >= kOtherPoll) STOKER_RETURN_IF_ERROR(poll_others());
  if (running_.is_stopping()) return {};
  STOKER_RETURN_IF_ERROR(start_ready());
  if (queue_.empty() && !is_exhausted_) {
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
  if (needs.memory) running.kernel_kills = rank::memory_kills().count;
  auto pid = starter_->start(call);
  if (!pid && pid.error().code() == Code::unavailable && running_.size() > 0) {
    // No process is left for this user at the moment.
    resources_.give_back(running.grant);
    output_->give_back(std::move(running.spool));
    queue_.push_back(task);
    return {};
  }
  if (!pid) return std::move(pid).error();
  running.pid = *pid;
  running_.add(std::move(running));
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
  while (auto ended = running_.next_ended()) {
    Status finished = finish(*std::move(ended));
    if (first.ok()) first = std::move(finished);
  }
  if (!first.ok()) return first;  // which stops all tasks before held ones are recorded
  while (auto ended = running_.next_held()) {
    Status finished = finish(*std::move(ended));
    if (first.ok()) first = std::move(finished);
  }
  return first;
}

bool Worker::may_retry(TaskIndex task, TaskOutcome outcome) {
  if (!is_failure(outcome) || running_.is_stopping() || options_.retries == 0) return false;
  const auto memory = state_.list().needs(task).memory;
  const bool is_all_memory =
      memory && choice_->next_needs(task).memory->value >= options_.machine.memory.value;
  if (outcome == TaskOutcome::out_of_memory && is_all_memory) return false;
  return ++tries_[task] <= options_.retries;
}

Status Worker::finish(EndedTask ended) {
  const TaskIndex task = ended.task.task;
  resources_.give_back(ended.task.grant);
  TaskEnd end{.task = task, .key = state_.list().key(task), .attempt = state_.attempts(task) + 1};
  end.outcome = ended.outcome;
  end.code = ended.exit.code;
  end.signal = ended.exit.signal;
  end.start = ended.task.start;
  end.seconds = ended.seconds;
  end.is_kept = may_retry(task, end.outcome);
  end.peak_bytes = ended.peak_bytes;
  STOKER_ASSIGN_OR_RETURN(place, output_->keep(std::move(ended.task.spool)));
  end.offset = place.offset;
  end.length = place.length;
  STOKER_RETURN_IF_ERROR(member_->append(end));
  ++result_.ended;
  if (end.is_kept) {
    queue_.push_back(task);
  } else if (is_failure(end.outcome)) {
    ++result_.failed;
    if (options_.on_failure) options_.on_failure({task, std::move(ended.why)});
  }
  // What comes after it may be ready now.
  if (choice_->has_order()) is_exhausted_ = false;
  return {};
}

void Worker::receive(int signal) {
  if (signal == SIGUSR1) {  // from Slurm, before the time limit
    if (running_.is_stopping()) return;
    result_.is_out_of_time = true;
    return running_.stop_all(TaskStop::end_of_time, options_.end_signal);
  }
  const bool is_second = result_.signal.has_value();
  if (!is_second) result_.signal = signal;
  running_.stop_all(TaskStop::request, is_second ? SIGKILL : SIGTERM);
}

void Worker::check_end_of_time() {
  if (running_.is_stopping() || !options_.end_time || seconds_left() > 0) return;
  result_.is_out_of_time = true;
  running_.stop_all(TaskStop::end_of_time, options_.end_signal);
  // Tasks may use the time until the end.
  const Duration rest = options_.signal_before - kKillBeforeEnd;
  running_.kill_all_at(now() + std::max(rest, Duration(0)));
}

}  // namespace

Result<WorkerResult> run_worker(FarmState& state, const WorkerOptions& options) {
  return Worker(state, options).run();
}

}  // namespace stoker::farm
