#include "trials/driver.h"

#include <algorithm>
#include <cmath>

#include "base/language/counted.h"
#include "launch/status/control.h"
#include "record/state.h"
#include "sweep/results/trial_table.h"
#include "sweep/storage/storage_url.h"
#include "trials/run_values.h"

namespace stoker::trials {

namespace {

using launch::Life;
using sweep::TrialEnding;
using sweep::TrialState;

constexpr Duration kRenewInterval = std::chrono::seconds(10);
constexpr Duration kFirstQueryPause = std::chrono::seconds(2);
constexpr Duration kShortestRetry = std::chrono::seconds(2);
constexpr Duration kLongestRetry = std::chrono::minutes(1);
// A driver that was killed may have left a process that is about to create its run.
constexpr double kStartingSeconds = 15;

double wall_seconds() { return unix_seconds(RealClock().wall()); }

// The scheduler may accept the job later, and somebody may free the disk.
bool may_pass(const Status& problem) {
  return problem.code() == Code::unavailable || problem.code() == Code::timeout ||
         problem.code() == Code::no_space ||
         to_lower(problem.message()).find("submit limit") != std::string::npos;
}

bool can_continue(Life life) {
  return life == Life::preempted || life == Life::node_failed || life == Life::lost ||
         life == Life::timeout || life == Life::stopped;
}

std::string result_text(const sweep::Definition& definition, const TrialEnding& ending) {
  std::string text(stoker::to_text(ending.state));
  if (!ending.message.empty()) text += format(", {}", printable(ending.message));
  for (std::size_t i = 0; i < ending.values.size(); ++i)
    text += format(", {} {:.4g}", definition.objectives[i].metric, ending.values[i]);
  return text;
}

}  // namespace

Driver::Driver(sweep::Study study, DriverOptions options, TrialStarter& starter, slurm::Scheduler& scheduler,
               record::WorkLease lease)
    : study_(std::move(study)),
      options_(std::move(options)),
      starter_(&starter),
      scheduler_(&scheduler),
      lease_(std::move(lease)),
      runs_(study_),
      query_pause_(kFirstQueryPause) {}

Result<Driver> Driver::create(sweep::Study study, DriverOptions options, TrialStarter& starter,
                              slurm::Scheduler& scheduler) {
  STOKER_RETURN_IF_ERROR(study.bind_folder());
  auto lease =
      record::WorkLease::take(study.folder() / format("{}.json", options.worker), "drives its trials");
  if (!lease)
    return std::move(lease)
        .error()
        .with_context(study.folder().string())
        .cure("stoker sweep show {}", shell_quote(sweep::shown_url(study.location())));
  STOKER_RETURN_IF_ERROR(study.set_worker(options.worker));
  STOKER_RETURN_IF_ERROR(study.refresh());
  return Driver(std::move(study), std::move(options), starter, scheduler, *std::move(lease));
}

void Driver::event(const std::string& text) {
  if (options_.on_event) options_.on_event(text);
}

std::size_t Driver::running() const {
  return static_cast<std::size_t>(std::ranges::count_if(study_.trials(), [&](const sweep::StudyTrial& trial) {
    return trial.state == TrialState::running && trial.worker == options_.worker;
  }));
}

std::vector<Driver::OwnTrial> Driver::own_trials() const {
  std::vector<OwnTrial> own;
  for (const sweep::StudyTrial& trial : study_.trials()) {
    if (trial.state != TrialState::running || trial.worker != options_.worker) continue;
    const TrialAttempt key{trial.number, trial.attempt};
    own.push_back({key, runs_.find(key), {}, false});
  }
  return own;
}

// The records often suffice. All other runs share a query, with growing pauses.
void Driver::query_lives(std::vector<OwnTrial>& trials) {
  const double now = wall_seconds();
  std::vector<OwnTrial*> open;
  std::vector<record::RunFolder> runs;
  for (OwnTrial& trial : trials) {
    if (trial.run == nullptr) continue;
    const launch::RecordedStatus own = launch::read_recorded_status(*trial.run, now);
    trial.life = launch::judge_life(own, {}, now);
    trial.is_certain = !launch::needs_scheduler(own);
    if (trial.is_certain) continue;
    open.push_back(&trial);
    runs.push_back(*trial.run);
  }
  if (open.empty() || !next_query_.passed()) return;
  const auto lives = launch::query_life(runs, *scheduler_, Deadline::after(launch::kAnswerLimit));
  next_query_ = Deadline::after(query_pause_);
  query_pause_ = std::min(launch::kLongestPollInterval, query_pause_ * 3 / 2);
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i]->life = lives[i];
    open[i]->is_certain = lives[i].life != Life::unknown;
  }
}

// A database may be restarted, and a disk freed: the next round finds out what was written.
Result<bool> Driver::step() {
  if (!next_round_.passed()) return true;
  auto is_open = round();
  const bool is_away = study_.is_stored() && !is_open.ok() && may_pass(is_open.status());
  if (is_away && !is_storage_away_) event(format("{} (retrying)", is_open.error().message()));
  is_storage_away_ = is_away;
  if (!is_away) return is_open;
  next_round_ = Deadline::after(kShortestRetry);
  return true;
}

Result<bool> Driver::round() {
  if (next_renewal_.passed()) {
    STOKER_RETURN_IF_ERROR(lease_->refresh());
    next_renewal_ = Deadline::after(kRenewInterval);
  }
  STOKER_RETURN_IF_ERROR(study_.refresh());
  STOKER_RETURN_IF_ERROR(runs_.refresh());
  std::vector<OwnTrial> trials = own_trials();
  query_lives(trials);
  for (const OwnTrial& trial : trials)
    STOKER_RETURN_IF_ERROR(trial.run == nullptr ? follow_missing(trial) : follow(trial));
  STOKER_RETURN_IF_ERROR(start_more());
  return running() > 0 || !(is_exhausted_ || has_enough() || is_budget_spent());
}

// A trial without a run: its start was put off, or the driver was killed before it.
Status Driver::follow_missing(const OwnTrial& trial) {
  if (starter_->is_starting(trial.key)) return {};
  if (const auto failure = starter_->failure(trial.key)) {
    STOKER_RETURN_IF_ERROR(runs_.refresh());
    if (runs_.find(trial.key) != nullptr) return {};
    return end(trial.key, {TrialState::failed, {}, *failure});
  }
  const Followed& followed = followed_[trial.key];
  if (!followed.retry_at.passed()) return {};
  const sweep::StudyTrial& known = *study_.find(trial.key.number);
  const bool was_asked_here = followed.problems > 0;
  if (!was_asked_here && wall_seconds() - known.started < kStartingSeconds) return {};
  return start({known.number, known.attempt, known.point, study_.definition().space.decode(known.point)});
}

Status Driver::follow(const OwnTrial& trial) {
  if (launch::is_over(trial.life.life) && trial.is_certain) return settle(trial);
  if (trial.life.life == Life::created && !starter_->is_starting(trial.key)) {
    // The driver was killed between creating the run and submitting it.
    if (wall_seconds() - trial.run->description().created < kStartingSeconds) return {};
    runs_.discard(trial.key);
    return {};
  }
  return trial.life.life == Life::running ? report(trial) : Status();
}

Status Driver::report(const OwnTrial& trial) {
  Followed& followed = followed_[trial.key];
  if (followed.is_pruned || study_.definition().objectives.size() > 1) return {};
  const auto curve = read_curve(*trial.run, study_.definition().objectives[0].metric, CurveExtent::end);
  const sweep::StudyTrial* const known = study_.find(trial.key.number);
  if (!followed.last_step && !known->reports.empty()) followed.last_step = known->reports.rbegin()->first;
  for (auto point = followed.last_step ? curve.upper_bound(*followed.last_step) : curve.begin();
       point != curve.end(); ++point) {
    followed.last_step = point->first;
    STOKER_ASSIGN_OR_RETURN(should_stop, study_.report(trial.key.number, point->first, point->second));
    if (!should_stop) continue;
    // The mark first: the next driver distinguishes a pruned trial from one that its user cancelled.
    STOKER_RETURN_IF_ERROR(write_file(pruned_mark(trial.key), ""));
    followed.is_pruned = true;
    event(format("trial {}: pruned at step {}", trial.key.number, point->first));
    break;
  }
  if (!followed.is_pruned) return {};
  if (starter_->stop(trial.key)) return {};
  const Status stopped = cancel(*trial.run);
  return stopped.ok() || postpone(trial.key, stopped) ? Status() : stopped;
}

Status Driver::cancel(const record::RunFolder& run) {
  const Deadline deadline = Deadline::after(launch::kAnswerLimit);
  STOKER_ASSIGN_OR_RETURN(plan, launch::plan_cancel(run, *scheduler_, deadline));
  return launch::cancel(run, plan, *scheduler_, deadline);
}

Path Driver::pruned_mark(TrialAttempt key) const {
  return runs_folder(study_) / format("{}.pruned", run_name(study_.definition().name, key));
}

bool Driver::is_pruned(TrialAttempt key) const { return path_exists(pruned_mark(key)); }

Status Driver::settle(const OwnTrial& trial) {
  if (starter_->is_starting(trial.key)) return {};
  const Life life = trial.life.life;
  if (is_pruned(trial.key)) return end(trial.key, {TrialState::pruned, {}, ""});
  if (life == Life::done) {
    auto values = read_values(*trial.run, study_.definition());
    if (!values) return end(trial.key, {TrialState::failed, {}, std::string(values.error().message())});
    return end(trial.key, {TrialState::complete, *std::move(values), ""});
  }
  if (can_continue(life)) return continue_or_fail(trial);
  const bool has_reason = life == Life::failed && !trial.life.note.empty();
  return end(trial.key, {TrialState::failed, {}, has_reason ? trial.life.note : launch::to_text(trial.life)});
}

Status Driver::continue_or_fail(const OwnTrial& trial) {
  Followed& followed = followed_[trial.key];
  if (!followed.retry_at.passed()) return {};
  const auto resumed = static_cast<std::uint32_t>(std::max(0, trial.life.records.last_attempt - 1));
  const std::string what = launch::to_text(trial.life);
  if (resumed >= options_.plan.resumes)
    return end(trial.key, {TrialState::failed, {}, format("{}, after {}", what, counted(resumed, "resume"))});
  const Status done = starter_->resume(trial.key, *trial.run, trial.life);
  if (done.ok()) {
    followed.problems = 0;
    followed.last_step.reset();
    query_pause_ = kFirstQueryPause;
    event(format("trial {}: {}; resumed", trial.key.number, what));
    return {};
  }
  if (postpone(trial.key, done)) return {};
  return end(trial.key, {TrialState::failed, {}, format("{}; {}", what, done.message())});
}

bool Driver::postpone(TrialAttempt key, const Status& problem) {
  if (!may_pass(problem)) return false;
  Followed& followed = followed_[key];
  if (followed.problems == 0) event(format("trial {}: {} (retrying)", key.number, problem.message()));
  const Duration pause = std::min(kLongestRetry, kShortestRetry * (1 << std::min(followed.problems, 5U)));
  followed.problems += 1;
  followed.retry_at = Deadline::after(pause);
  next_start_ = Deadline::after(pause);
  return true;
}

Status Driver::end(TrialAttempt key, TrialEnding ending) {
  const bool is_failed = ending.state == TrialState::failed;
  const std::string text = result_text(study_.definition(), ending);
  const bool is_pruned = ending.state == TrialState::pruned;
  const Status saved = study_.tell(key.number, std::move(ending));
  if (!saved.ok()) {
    // Its user, or the request of a driver that was killed, may have ended it at the same time.
    STOKER_RETURN_IF_ERROR(study_.refresh());
    const sweep::StudyTrial* const known = study_.find(key.number);
    if (known == nullptr || known->state == TrialState::running) return saved;
  }
  event(format("trial {}: {}", key.number, text));
  followed_.erase(key);
  (is_failed ? failed_ : ended_) += 1;
  if (!is_pruned) failed_in_turn_ = is_failed ? failed_in_turn_ + 1 : 0;
  is_exhausted_ = false;  // a failed trial frees its place
  if (options_.most_failed > 0 && failed_in_turn_ >= options_.most_failed)
    return invalid("{}: the last {} failed (--max-failed)", study_.definition().name,
                   counted(failed_in_turn_, "trial"))
        .cure("stoker sweep show {}", shell_quote(sweep::shown_url(study_.location())));
  return {};
}

Status Driver::start(const sweep::Proposal& proposal) {
  const TrialAttempt key{proposal.number, proposal.attempt};
  auto run = starter_->start(key, proposal);
  if (!run) {
    if (postpone(key, run.error())) return {};
    return end(key, {TrialState::failed, {}, std::string(run.error().message())});
  }
  Followed& followed = followed_[key];
  followed.problems = 0;
  query_pause_ = kFirstQueryPause;
  if (*run) runs_.add(key, **run);
  return {};
}

// The retry of a failed trial comes before a new one.
Result<std::optional<sweep::Proposal>> Driver::next_proposal() {
  for (const sweep::StudyTrial& trial : study_.trials()) {
    const bool is_retried = trial.state == TrialState::failed && trial.worker == options_.worker &&
                            trial.attempt < options_.plan.retries && !study_.was_retried(trial.number);
    if (!is_retried) continue;
    auto proposal = study_.retry(trial.number);
    // A driver that was killed while it began the attempt: the claim expires.
    if (!proposal && proposal.error().code() == Code::exists) continue;
    if (!proposal) return std::move(proposal).error();
    return std::optional(*std::move(proposal));
  }
  return study_.ask();
}

Status Driver::start_more() {
  while (!is_exhausted_ && !has_enough() && running() < options_.plan.at_once && next_start_.passed()) {
    if (is_budget_spent()) return {};
    STOKER_ASSIGN_OR_RETURN(proposal, next_proposal());
    if (!proposal) {
      is_exhausted_ = !study_.is_undecided();
      if (!is_exhausted_) next_start_ = Deadline::after(kShortestRetry);
      return {};
    }
    event(format("trial {}: {}", proposal->number, sweep::to_text(proposal->values)));
    STOKER_RETURN_IF_ERROR(start(*proposal));
  }
  return {};
}

double Driver::used_gpu_hours() {
  double seconds = 0;
  for (const auto& [key, run] : runs_.all()) {
    if (const auto known = ended_seconds_.find(key); known != ended_seconds_.end()) {
      seconds += known->second;
      continue;
    }
    const record::RunState state = record::derive_state(run);
    if (state.started == 0) continue;
    const double own = std::max(0.0, (state.ended > 0 ? state.ended : wall_seconds()) - state.started);
    const sweep::StudyTrial* const trial = study_.find(key.number);
    if (trial != nullptr && trial->state != TrialState::running) ended_seconds_[key] = own;
    seconds += own;
  }
  return seconds * options_.gpus_per_trial / 3600;
}

bool Driver::is_budget_spent() {
  const sweep::TrialPlan& plan = options_.plan;
  std::string why;
  if (plan.time && !study_.trials().empty()) {
    double first = study_.trials().front().started;
    for (const sweep::StudyTrial& trial : study_.trials()) first = std::min(first, trial.started);
    if (wall_seconds() - first > std::chrono::duration<double>(*plan.time).count())
      why = format("budget.time, {}", duration_text(*plan.time));
  }
  if (why.empty() && plan.gpu_hours && used_gpu_hours() >= *plan.gpu_hours)
    why = format("budget.gpu_hours, {:.4g}", *plan.gpu_hours);
  if (!why.empty() && !is_budget_noted_)
    event(format("the budget is spent ({}): no trial starts any more", why));
  is_budget_noted_ = !why.empty();
  return is_budget_noted_;
}

void Driver::shut_down(Duration grace) {
  starter_->shut_down(grace);
  lease_.reset();
}

}  // namespace stoker::trials
