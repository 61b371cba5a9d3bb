// Drives the trials of a study: asks for points, starts their runs, follows, stops, resumes and ends them.
// Belongs to one thread. All that it knows is on disk: after kill -9 a new driver continues the same trials
// (docs/commands/sweep.md).
//
// The driver is a worker of the study, which distinguishes its trials from trials of other processes. A trial
// that it asked for has a run, found by its name, or its run was not started yet. With Definition::seeds, a
// trial has a run for each seed: each is retried alone, and the trial ends when all seeds have values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "launch/status/life.h"
#include "record/work_lease.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "sweep/study/study.h"
#include "trials/starter.h"
#include "trials/trial_runs.h"

namespace stoker::trials {

/// StudyTrial::worker of the trials that `stoker sweep FILE` drives.
inline constexpr std::string_view kDriver = "driver";

struct DriverOptions {
  std::string worker = std::string(kDriver);  ///< of its trials; <worker>.json in the study is its lease
  sweep::TrialPlan plan;
  double gpus_per_trial = 0;                         ///< for TrialPlan::gpu_hours
  std::uint32_t most_failed = 3;                     ///< it stops after this number in a row; 0: never
  std::uint32_t most_at_once = 0;                    ///< trials, below TrialPlan::at_once; 0: any number
  std::uint64_t most_ended = 0;                      ///< trials, failed ones not counted; 0: any number
  std::function<void(const std::string&)> on_event;  ///< receives one line for each event
};

class Driver {
 public:
  /// Exists while another process is this worker of the study. The starter and the scheduler must outlive the
  /// driver.
  static Result<Driver> create(sweep::Study study, DriverOptions options, TrialStarter& starter,
                               slurm::Scheduler& scheduler);

  /// One round: takes little time unless the scheduler is slow. Returns whether anything is left to do.
  /// Errors end the sweep: of the study, or when too many trials failed in a row.
  Result<bool> step();
  /// Replaces the limits, when the sweep file was changed.
  void set_plan(sweep::TrialPlan plan);
  /// Ends what does not live on without this process, and gives up the lease.
  void shut_down(Duration grace);

  const sweep::Study& study() const { return study_; }
  /// Trials that ended in this process: complete or pruned, and failed.
  std::uint64_t ended() const { return ended_; }
  std::uint64_t failed() const { return failed_; }
  /// Trials of this driver that have not ended.
  std::size_t running() const;

 private:
  // What this process knows beyond the records.
  struct Followed {
    std::optional<std::int64_t> last_step;
    bool is_pruned = false;
    std::uint32_t problems = 0;  // in a row
    Deadline retry_at = Deadline::after(Duration::zero());
  };
  struct OwnTrial {
    TrialAttempt key;
    const record::RunFolder* run = nullptr;
    launch::RunLife life;
    bool is_certain = false;
  };

  Driver(sweep::Study study, DriverOptions options, TrialStarter& starter, slurm::Scheduler& scheduler,
         record::WorkLease lease);

  Result<bool> round();
  bool has_seeds() const { return !study_.definition().seeds.empty(); }
  // One for each seed of each trial, in this order.
  std::vector<OwnTrial> own_trials() const;
  void query_lives(std::vector<OwnTrial>& trials);
  Status follow(const OwnTrial& trial);
  Status follow_missing(const OwnTrial& trial);
  Status follow_seeds(std::span<const OwnTrial> seeds);
  Status report(const OwnTrial& trial);
  Status report_mean(std::span<const OwnTrial> seeds);
  // Passes new steps of the curve to the pruner.
  Status report(TrialAttempt trial, const std::map<std::int64_t, double>& curve);
  // Whether the run of a seed waits, runs or will be resumed.
  bool is_open(const OwnTrial& seed) const;
  bool may_start_seed() const { return open_runs_ < options_.plan.at_once && next_start_.passed(); }
  Status stop_seeds(std::span<const OwnTrial> seeds);
  Status cancel(const record::RunFolder& run);
  Status settle(const OwnTrial& trial);
  Status continue_or_fail(const OwnTrial& trial);
  Status complete(TrialAttempt key, std::vector<double> values);
  Status fail(TrialAttempt key, const std::string& message);
  Status end(sweep::TrialNumber number, sweep::TrialEnding ending);
  Status start(TrialAttempt key, const sweep::Proposal& proposal);
  Status start_seeds(const sweep::Proposal& proposal);
  Status start_more();
  Result<std::optional<sweep::Proposal>> next_proposal();
  bool is_budget_spent();
  bool has_enough() const { return options_.most_ended > 0 && ended_ >= options_.most_ended; }
  double used_gpu_hours();
  bool is_pruned(TrialAttempt trial) const;
  Path pruned_mark(TrialAttempt trial) const;
  // A driver that was killed may have left a process that is about to create the run of a seed.
  bool is_too_early(sweep::TrialNumber number) const;
  void event(const std::string& text);
  // Whether the problem may pass; it is then retried later.
  bool postpone(TrialAttempt key, const Status& problem);

  sweep::Study study_;
  DriverOptions options_;
  TrialStarter* starter_;
  slurm::Scheduler* scheduler_;
  std::optional<record::WorkLease> lease_;
  Deadline next_renewal_ = Deadline::after(Duration::zero());
  TrialRuns runs_;
  std::map<TrialAttempt, Followed> followed_;
  std::map<TrialAttempt, double> ended_seconds_;  // of runs that are over
  double created_;                                // when this driver began; Unix time in seconds
  std::set<sweep::TrialNumber> asked_;            // trials that it began
  std::map<std::pair<sweep::TrialNumber, std::uint64_t>, std::uint32_t> seed_attempts_;
  std::map<sweep::TrialNumber, sweep::SeedValues> seed_values_;
  std::size_t open_runs_ = 0;     // of seeds
  bool is_seed_waiting_ = false;  // to be started, before a further trial
  Deadline next_query_ = Deadline::after(Duration::zero());
  Duration query_pause_;
  Deadline next_start_ = Deadline::after(Duration::zero());
  Deadline next_round_ = Deadline::after(Duration::zero());
  bool is_storage_away_ = false;
  std::uint32_t failed_in_turn_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t failed_ = 0;
  bool is_exhausted_ = false;
  bool is_budget_noted_ = false;
};

}  // namespace stoker::trials
