#include "trials/driver.h"

#include <algorithm>
#include <cmath>

#include "base/language/counted.h"
#include "launch/status/control.h"
#include "record/state.h"
#include "sweep/results/spread.h"
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
      created_(wall_seconds()),
      query_pause_(kFirstQueryPause) {
  set_plan(options_.plan);
}

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

void Driver::set_plan(sweep::TrialPlan plan) {
  options_.plan = std::move(plan);
  if (options_.most_at_once > 0)
    options_.plan.at_once = std::min(options_.plan.at_once, options_.most_at_once);
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
    if (!has_seeds()) {
      const TrialAttempt key{trial.number, trial.attempt};
      own.push_back({key, runs_.find(key), {}, false});
    }
    for (const std::uint64_t seed : study_.definition().seeds) {
      TrialAttempt key = runs_.last_attempt(trial.number, seed);
      const auto started = seed_attempts_.find({trial.number, seed});
      if (started != seed_attempts_.end()) key.attempt = std::max(key.attempt, started->second);
      own.push_back({key, runs_.find(key), {}, false});
    }
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
  if (has_seeds()) {
    is_seed_waiting_ = false;
    open_runs_ = static_cast<std::size_t>(
        std::ranges::count_if(trials, [&](const OwnTrial& seed) { return is_open(seed); }));
    const std::size_t count = study_.definition().seeds.size();
    for (std::span<const OwnTrial> rest = trials; !rest.empty(); rest = rest.subspan(count))
      STOKER_RETURN_IF_ERROR(follow_seeds(rest.first(count)));
  } else {
    for (const OwnTrial& trial : trials)
      STOKER_RETURN_IF_ERROR(trial.run == nullptr ? follow_missing(trial) : follow(trial));
  }
  STOKER_RETURN_IF_ERROR(start_more());
  return running() > 0 || !(is_exhausted_ || has_enough() || is_budget_spent());
}

// A trial without a run: its start was put off, or the driver was killed before it.
Status Driver::follow_missing(const OwnTrial& trial) {
  if (starter_->is_starting(trial.key)) return {};
  if (const auto failure = starter_->failure(trial.key)) {
    STOKER_RETURN_IF_ERROR(runs_.refresh());
    if (runs_.find(trial.key) != nullptr) return {};
    return fail(trial.key, *failure);
  }
  const Followed& followed = followed_[trial.key];
  if (!followed.retry_at.passed()) return {};
  const sweep::StudyTrial& known = *study_.find(trial.key.number);
  const bool was_asked_here = followed.problems > 0;
  if (trial.key.seed && (is_too_early(known.number) || !may_start_seed())) {
    is_seed_waiting_ = true;
    return {};
  }
  if (!trial.key.seed && !was_asked_here && wall_seconds() - known.started < kStartingSeconds) return {};
  return start(trial.key,
               {known.number, known.attempt, known.point, study_.definition().space.decode(known.point)});
}

bool Driver::is_too_early(sweep::TrialNumber number) const {
  return !asked_.contains(number) && wall_seconds() - created_ < kStartingSeconds;
}

bool Driver::is_open(const OwnTrial& seed) const {
  if (starter_->is_starting(seed.key)) return true;
  const Life life = seed.life.life;
  return seed.run != nullptr && (!launch::is_over(life) || can_continue(life));
}

// The runs of one trial.
Status Driver::follow_seeds(std::span<const OwnTrial> seeds) {
  const sweep::TrialNumber number = seeds.front().key.number;
  const sweep::StudyTrial* const trial = study_.find(number);
  if (is_pruned({number, trial->attempt})) {
    STOKER_RETURN_IF_ERROR(stop_seeds(seeds));
    const auto is_left = [&](const OwnTrial& seed) {
      return starter_->is_starting(seed.key) || (seed.run != nullptr && !launch::is_over(seed.life.life));
    };
    if (std::ranges::any_of(seeds, is_left)) return {};
    return end(number, {TrialState::pruned, {}, ""});
  }
  for (const OwnTrial& seed : seeds) {
    if (seed_values_[number].contains(*seed.key.seed)) continue;
    STOKER_RETURN_IF_ERROR(seed.run == nullptr ? follow_missing(seed) : follow(seed));
    if (study_.find(number)->state != TrialState::running) return {};
  }
  return report_mean(seeds);
}

Status Driver::stop_seeds(std::span<const OwnTrial> seeds) {
  Status problem;
  for (const OwnTrial& seed : seeds) {
    const bool is_over = seed.run != nullptr && launch::is_over(seed.life.life);
    if (is_over || (seed.run == nullptr && !starter_->is_starting(seed.key))) continue;
    if (starter_->stop(seed.key) || seed.run == nullptr) continue;
    const Status stopped = cancel(*seed.run);
    if (!stopped.ok()) problem = stopped;
  }
  return problem.ok() || postpone({seeds.front().key.number}, problem) ? Status() : problem;
}

Status Driver::follow(const OwnTrial& trial) {
  if (launch::is_over(trial.life.life) && trial.is_certain) return settle(trial);
  if (trial.life.life == Life::created && !starter_->is_starting(trial.key)) {
    // The driver was killed between creating the run and submitting it.
    if (wall_seconds() - trial.run->description().created < kStartingSeconds) return {};
    runs_.discard(trial.key);
    return {};
  }
  return trial.life.life == Life::running && !trial.key.seed ? report(trial) : Status();
}

Status Driver::report(const OwnTrial& trial) {
  if (followed_[trial.key].is_pruned || study_.definition().objectives.size() > 1) return {};
  STOKER_RETURN_IF_ERROR(
      report(trial.key, read_curve(*trial.run, study_.definition().objectives[0].metric, CurveExtent::end)));
  if (!followed_[trial.key].is_pruned || starter_->stop(trial.key)) return {};
  const Status stopped = cancel(*trial.run);
  return stopped.ok() || postpone(trial.key, stopped) ? Status() : stopped;
}

// The mean at each step that all seeds so far have reached. The next round stops a trial that is pruned.
Status Driver::report_mean(std::span<const OwnTrial> seeds) {
  if (study_.definition().objectives.size() > 1) return {};
  std::map<std::int64_t, std::pair<double, std::size_t>> sums;
  std::size_t count = 0;
  for (const OwnTrial& seed : seeds) {
    if (seed.run == nullptr || seed.life.records.started == 0) continue;
    ++count;
    for (const auto& [step, value] :
         read_curve(*seed.run, study_.definition().objectives[0].metric, CurveExtent::end)) {
      sums[step].first += value;
      sums[step].second += 1;
    }
  }
  std::map<std::int64_t, double> curve;
  for (const auto& [step, sum] : sums) {
    if (sum.second == count) curve[step] = sum.first / static_cast<double>(count);
  }
  return report({seeds.front().key.number, study_.find(seeds.front().key.number)->attempt}, curve);
}

Status Driver::report(TrialAttempt trial, const std::map<std::int64_t, double>& curve) {
  Followed& followed = followed_[trial];
  const sweep::StudyTrial* const known = study_.find(trial.number);
  if (!followed.last_step && !known->reports.empty()) followed.last_step = known->reports.rbegin()->first;
  for (auto point = followed.last_step ? curve.upper_bound(*followed.last_step) : curve.begin();
       point != curve.end(); ++point) {
    followed.last_step = point->first;
    STOKER_ASSIGN_OR_RETURN(should_stop, study_.report(trial.number, point->first, point->second));
    if (!should_stop) continue;
    // The mark first: the next driver distinguishes a pruned trial from one that its user cancelled.
    STOKER_RETURN_IF_ERROR(write_file(pruned_mark(trial), ""));
    followed.is_pruned = true;
    event(format("trial {}: pruned at step {}", trial.number, point->first));
    break;
  }
  return {};
}

Status Driver::cancel(const record::RunFolder& run) {
  const Deadline deadline = Deadline::after(launch::kAnswerLimit);
  STOKER_ASSIGN_OR_RETURN(plan, launch::plan_cancel(run, *scheduler_, deadline));
  return launch::cancel(run, plan, *scheduler_, deadline);
}

Path Driver::pruned_mark(TrialAttempt trial) const {
  return runs_folder(study_) / format("{}.pruned", run_name(study_.definition().name, trial));
}

bool Driver::is_pruned(TrialAttempt trial) const { return path_exists(pruned_mark(trial)); }

Status Driver::settle(const OwnTrial& trial) {
  if (starter_->is_starting(trial.key)) return {};
  const Life life = trial.life.life;
  if (!trial.key.seed && is_pruned(trial.key)) return end(trial.key.number, {TrialState::pruned, {}, ""});
  if (life == Life::done) {
    auto values = read_values(*trial.run, study_.definition());
    if (!values) return fail(trial.key, std::string(values.error().message()));
    return complete(trial.key, *std::move(values));
  }
  if (can_continue(life)) return continue_or_fail(trial);
  const bool has_reason = life == Life::failed && !trial.life.note.empty();
  return fail(trial.key, has_reason ? trial.life.note : launch::to_text(trial.life));
}

Status Driver::continue_or_fail(const OwnTrial& trial) {
  Followed& followed = followed_[trial.key];
  if (!followed.retry_at.passed()) return {};
  const auto resumed = static_cast<std::uint32_t>(std::max(0, trial.life.records.last_attempt - 1));
  const std::string what = launch::to_text(trial.life);
  if (resumed >= options_.plan.resumes)
    return fail(trial.key, format("{}, after {}", what, counted(resumed, "resume")));
  const Status done = starter_->resume(trial.key, *trial.run, trial.life);
  if (done.ok()) {
    followed.problems = 0;
    followed.last_step.reset();
    query_pause_ = kFirstQueryPause;
    event(format("trial {}: {}; resumed", trial.key.number, what));
    return {};
  }
  if (postpone(trial.key, done)) return {};
  return fail(trial.key, format("{}; {}", what, done.message()));
}

Status Driver::complete(TrialAttempt key, std::vector<double> values) {
  if (!key.seed) return end(key.number, {TrialState::complete, std::move(values), ""});
  const sweep::Definition& definition = study_.definition();
  sweep::StudyTrial shown;
  shown.values = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      return fail(key, format("{} is {}", definition.objectives[i].metric, values[i]));
  }
  event(format("trial {}: seed {}: {}", key.number, *key.seed, sweep::values_text(definition, shown)));
  sweep::SeedValues& seeds = seed_values_[key.number];
  seeds[*key.seed] = std::move(values);
  if (seeds.size() < definition.seeds.size()) return {};
  return end(key.number,
             {TrialState::complete, sweep::average_of(seeds, definition.seed_average), "", seeds});
}

// A seed is retried alone. The trial fails with the first seed that has no attempt left.
Status Driver::fail(TrialAttempt key, const std::string& message) {
  if (!key.seed) return end(key.number, {TrialState::failed, {}, message});
  if (key.attempt < options_.plan.retries) {
    is_seed_waiting_ = true;
    if (is_too_early(key.number)) return {};
    event(format("trial {}: seed {}: failed, {}; retried", key.number, *key.seed, printable(message)));
    seed_attempts_[{key.number, *key.seed}] = key.attempt + 1;
    return {};
  }
  std::vector<OwnTrial> seeds = own_trials();
  std::erase_if(seeds, [&](const OwnTrial& seed) { return seed.key.number != key.number; });
  query_lives(seeds);
  STOKER_RETURN_IF_ERROR(stop_seeds(seeds));
  return end(key.number, {TrialState::failed, {}, format("seed {}: {}", *key.seed, message)});
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

Status Driver::end(sweep::TrialNumber number, TrialEnding ending) {
  const bool is_failed = ending.state == TrialState::failed;
  const std::string text = result_text(study_.definition(), ending);
  const bool is_pruned = ending.state == TrialState::pruned;
  const Status saved = study_.tell(number, std::move(ending));
  if (!saved.ok()) {
    // Its user, or the request of a driver that was killed, may have ended it at the same time.
    STOKER_RETURN_IF_ERROR(study_.refresh());
    const sweep::StudyTrial* const known = study_.find(number);
    if (known == nullptr || known->state == TrialState::running) return saved;
  }
  event(format("trial {}: {}", number, text));
  followed_.erase(followed_.lower_bound({number}), followed_.lower_bound({number + 1}));
  seed_attempts_.erase(seed_attempts_.lower_bound({number, 0}), seed_attempts_.lower_bound({number + 1, 0}));
  seed_values_.erase(number);
  (is_failed ? failed_ : ended_) += 1;
  if (!is_pruned) failed_in_turn_ = is_failed ? failed_in_turn_ + 1 : 0;
  is_exhausted_ = false;  // a failed trial frees its place
  if (options_.most_failed > 0 && failed_in_turn_ >= options_.most_failed)
    return invalid("{}: the last {} failed (--max-failed)", study_.definition().name,
                   counted(failed_in_turn_, "trial"))
        .cure("stoker sweep show {}", shell_quote(sweep::shown_url(study_.location())));
  return {};
}

Status Driver::start_seeds(const sweep::Proposal& proposal) {
  asked_.insert(proposal.number);
  for (const std::uint64_t seed : study_.definition().seeds) {
    if (!may_start_seed()) {
      is_seed_waiting_ = true;
      return {};
    }
    STOKER_RETURN_IF_ERROR(start({proposal.number, 0, seed}, proposal));
    if (study_.find(proposal.number)->state != TrialState::running) return {};
  }
  return {};
}

Status Driver::start(TrialAttempt key, const sweep::Proposal& proposal) {
  auto run = starter_->start(key, proposal);
  if (!run) {
    if (postpone(key, run.error())) return {};
    return fail(key, std::string(run.error().message()));
  }
  ++open_runs_;
  Followed& followed = followed_[key];
  followed.problems = 0;
  query_pause_ = kFirstQueryPause;
  if (*run) runs_.add(key, **run);
  return {};
}

// The retry of a failed trial comes before a new one.
Result<std::optional<sweep::Proposal>> Driver::next_proposal() {
  for (const sweep::StudyTrial& trial : study_.trials()) {
    if (has_seeds()) break;  // each seed was retried
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
  const auto may_ask = [&] {
    return has_seeds() ? !is_seed_waiting_ && may_start_seed()
                       : running() < options_.plan.at_once && next_start_.passed();
  };
  while (!is_exhausted_ && !has_enough() && may_ask()) {
    if (is_budget_spent()) return {};
    STOKER_ASSIGN_OR_RETURN(proposal, next_proposal());
    if (!proposal) {
      is_exhausted_ = !study_.is_undecided();
      if (!is_exhausted_) next_start_ = Deadline::after(kShortestRetry);
      return {};
    }
    event(format("trial {}: {}", proposal->number, sweep::to_text(proposal->values)));
    STOKER_RETURN_IF_ERROR(has_seeds() ? start_seeds(*proposal)
                                       : start({proposal->number, proposal->attempt}, *proposal));
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
