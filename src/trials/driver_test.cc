#include "trials/driver.h"

#include <gmock/gmock.h>

#include "launch/fake_scheduler.h"
#include "record/run_events.h"
#include "record/state.h"
#include "sweep/file/open_study.h"

namespace stoker::trials {
namespace {

using sweep::TrialState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kSweep =
    "space: {lr: [1, 2, 3, 4]}\nobjectives: {loss: minimize}\nsampler: grid\n";
constexpr std::string_view kSeeds =
    "space: {lr: [1, 2, 3, 4]}\nobjectives: {loss: minimize}\nsampler: grid\nseeds: [5, 8, 9]\n";

// Creates runs whose records the test writes.
class FakeStarter final : public TrialStarter {
 public:
  explicit FakeStarter(Path runs) : runs_(std::move(runs)) {}

  Result<std::optional<record::RunFolder>> start(TrialAttempt trial, const sweep::Proposal&) override {
    ++calls;
    if (!problem.ok()) return problem;
    started.push_back(trial);
    record::RunDescription what;
    what.name = run_name("s", trial);
    auto run = record::RunFolder::create(runs_, what, "name: s\nrun: sh\n");
    STOKER_CHECK(run.ok());
    begin(*run);
    runs_of_trials_.emplace(trial, *run);
    return std::optional(*run);
  }
  Status resume(TrialAttempt, const record::RunFolder& run, const launch::RunLife&) override {
    ++resumes;
    begin(run);
    return {};
  }
  bool stop(TrialAttempt trial) override {
    ++stops;
    end(runs_of_trials_.at(trial), {.outcome = record::Outcome::stopped, .exit_code = 130});
    return true;
  }
  bool is_starting(TrialAttempt) override { return false; }
  std::optional<std::string> failure(TrialAttempt) override { return std::nullopt; }
  void shut_down(Duration) override {}

  static void begin(const record::RunFolder& run) {
    const auto attempt = run.start_attempt("name: s\nrun: sh\n");
    STOKER_CHECK(attempt.ok());
    auto events = record::EventWriter::open(attempt->node_events(0));
    STOKER_CHECK(events.ok());
    STOKER_CHECK(write_event(*events, record::AttemptStarted{.supervisor = record::this_process()}).ok());
  }
  static void end(const record::RunFolder& run, const record::AttemptEnded& ended) {
    const auto attempt = run.last_attempt();
    auto events = record::EventWriter::open(attempt->node_events(0));
    STOKER_CHECK(write_event(*events, ended).ok());
  }

  int calls = 0;
  int resumes = 0;
  int stops = 0;
  std::vector<TrialAttempt> started;
  Status problem;

 private:
  Path runs_;
  std::map<TrialAttempt, record::RunFolder> runs_of_trials_;
};

class DriverTest : public ::testing::Test {
 protected:
  sweep::Study open(std::string_view text = kSweep) {
    auto opened = sweep::open_study_text(box_ / "s.study", "s.yaml", text, sweep::MissingStudy::create);
    STOKER_CHECK(opened.ok());
    return std::move(opened->study);
  }
  Driver make(std::string_view text = kSweep) {
    options_.on_event = [this](const std::string& text) { events_ += text + "\n"; };
    auto driver = Driver::create(open(text), options_, starter_, scheduler_);
    STOKER_CHECK(driver.ok());
    return *std::move(driver);
  }
  record::RunFolder run(TrialAttempt trial) {
    const auto study = sweep::Study::open(box_ / "s.study");
    STOKER_CHECK(study.ok());
    TrialRuns runs(*study);
    STOKER_CHECK(runs.refresh().ok());
    return *runs.find(trial);
  }
  void seed_done(TrialAttempt trial, const std::string& output) {
    STOKER_CHECK(write_file(run(trial).last_attempt()->log(0), output).ok());
    FakeStarter::end(run(trial), {});
  }
  void seed_failed(TrialAttempt trial) {
    FakeStarter::end(run(trial),
                     {.outcome = record::Outcome::failed, .exit_code = 7, .reason = "exit code 7"});
  }
  record::RunFolder run(sweep::TrialNumber number, std::uint32_t attempt = 0) {
    const auto study = sweep::Study::open(box_ / "s.study");
    STOKER_CHECK(study.ok());
    TrialRuns runs(*study);
    STOKER_CHECK(runs.refresh().ok());
    return *runs.find({number, attempt});
  }
  void log(sweep::TrialNumber number, const std::string& text) {
    STOKER_CHECK(write_file(run(number).last_attempt()->log(0), text).ok());
  }
  void done(sweep::TrialNumber number, const std::string& output) {
    log(number, output);
    FakeStarter::end(run(number), {});
  }

  TempDirectory box_;
  DriverOptions options_;
  FakeStarter starter_{box_ / "s.study/runs"};
  launch::FakeScheduler scheduler_;
  std::string events_;
};

TEST_F(DriverTest, starts_at_most_at_once_and_reads_results_from_the_runs) {
  options_.plan.at_once = 2;
  Driver driver = make();
  ASSERT_TRUE(*driver.step());
  EXPECT_THAT(starter_.started, ElementsAre(TrialAttempt{0, 0}, TrialAttempt{1, 0}));
  done(1, "loss: 0.25\n");
  ASSERT_TRUE(*driver.step());
  EXPECT_EQ(driver.study().find(1)->state, TrialState::complete);
  EXPECT_THAT(driver.study().find(1)->values, ElementsAre(0.25));
  EXPECT_THAT(starter_.started, SizeIs(3));
  EXPECT_EQ(scheduler_.calls, 0);  // the records suffice
}

TEST_F(DriverTest, starts_no_more_trials_than_fit_also_after_the_file_changed) {
  options_.plan.at_once = 4;
  options_.most_at_once = 2;
  Driver driver = make();
  ASSERT_TRUE(*driver.step());
  EXPECT_THAT(starter_.started, SizeIs(2));
  driver.set_plan(options_.plan);
  ASSERT_TRUE(*driver.step());
  EXPECT_THAT(starter_.started, SizeIs(2));
}

TEST_F(DriverTest, ends_when_no_point_is_left) {
  options_.plan.at_once = 9;
  Driver driver = make();
  ASSERT_TRUE(*driver.step());
  for (sweep::TrialNumber number = 0; number < 4; ++number) done(number, "loss: 1\n");
  ASSERT_TRUE(driver.step().ok());
  EXPECT_FALSE(*driver.step());
  EXPECT_THAT(starter_.started, SizeIs(4));
}

TEST_F(DriverTest, a_new_driver_continues_the_trials_of_a_killed_one) {
  options_.plan.at_once = 2;
  {
    Driver killed = make();
    ASSERT_TRUE(killed.step().ok());
  }
  done(0, "loss: 3\n");
  Driver driver = make();
  ASSERT_TRUE(driver.step().ok());
  EXPECT_THAT(starter_.started, ElementsAre(TrialAttempt{0, 0}, TrialAttempt{1, 0}, TrialAttempt{2, 0}));
  EXPECT_EQ(driver.study().find(0)->state, TrialState::complete);
}

TEST_F(DriverTest, a_trial_waits_while_the_scheduler_is_away) {
  starter_.problem = unavailable("sbatch: Unable to contact slurm controller");
  Driver driver = make();
  ASSERT_TRUE(*driver.step());
  ASSERT_TRUE(*driver.step());
  EXPECT_EQ(starter_.calls, 1);  // not again at once
  EXPECT_EQ(driver.study().find(0)->state, TrialState::running);
  EXPECT_THAT(driver.study().trials(), SizeIs(1));
  EXPECT_THAT(events_, HasSubstr("trial 0: sbatch: Unable to contact slurm controller (retrying)\n"));
}

TEST_F(DriverTest, a_refused_job_fails_its_trial_and_three_in_a_row_end_the_sweep) {
  starter_.problem = invalid("sbatch: Invalid partition specified");
  Driver driver = make();
  const Status ended = driver.step().status();
  EXPECT_EQ(ended.message(), "s: the last 3 trials failed (--max-failed)");
  EXPECT_THAT(driver.study().trials(), SizeIs(3));
  EXPECT_EQ(driver.study().find(2)->message, "sbatch: Invalid partition specified");
}

TEST_F(DriverTest, a_stopped_run_is_resumed_until_the_limit) {
  options_.plan.resumes = 2;
  Driver driver = make();
  ASSERT_TRUE(driver.step().ok());
  for (int i = 0; i < 2; ++i) {
    FakeStarter::end(run(0), {.outcome = record::Outcome::stopped, .exit_code = 75});
    ASSERT_TRUE(driver.step().ok());
    EXPECT_EQ(starter_.resumes, i + 1);
    EXPECT_EQ(driver.study().find(0)->state, TrialState::running);
  }
  FakeStarter::end(run(0), {.outcome = record::Outcome::stopped, .exit_code = 75});
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(starter_.resumes, 2);
  EXPECT_EQ(driver.study().find(0)->state, TrialState::failed);
  EXPECT_THAT(driver.study().find(0)->message, HasSubstr("after 2 resumes"));
}

TEST_F(DriverTest, a_failed_run_is_a_failed_trial_and_its_retry_a_new_run) {
  options_.plan.retries = 1;
  Driver driver = make();
  ASSERT_TRUE(driver.step().ok());
  FakeStarter::end(run(0), {.outcome = record::Outcome::failed,
                            .exit_code = 7,
                            .first_rank = 0,
                            .reason = "rank 0 (n1) exited: exit code 7"});
  ASSERT_TRUE(driver.step().ok());
  EXPECT_THAT(events_, HasSubstr("trial 0: failed, rank 0 (n1) exited: exit code 7\n"));
  EXPECT_THAT(starter_.started, ElementsAre(TrialAttempt{0, 0}, TrialAttempt{0, 1}));
  EXPECT_EQ(driver.study().find(0)->state, TrialState::running);
  EXPECT_EQ(run(0, 1).description().name, "s-0.1");
}

TEST_F(DriverTest, a_value_that_the_pruner_refuses_stops_the_run) {
  const std::string text = std::string(kSweep) + "pruner: {kind: threshold, upper: 10}\n";
  Driver driver = make(text);
  ASSERT_TRUE(driver.step().ok());
  const Path points = run(0).last_attempt()->folder() / "points-0000.csv";
  ASSERT_TRUE(write_file(points, "time,step,value,metric\n1,0,5,loss\n").ok());
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(starter_.stops, 0);
  ASSERT_TRUE(write_file(points, "time,step,value,metric\n1,0,5,loss\n1,1,50,loss\n").ok());
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(starter_.stops, 1);
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(driver.study().find(0)->state, TrialState::pruned);
}

TEST_F(DriverTest, seeds_count_for_at_once_and_their_mean_is_the_value) {
  options_.plan.at_once = 2;
  Driver driver = make(kSeeds);
  ASSERT_TRUE(*driver.step());
  EXPECT_THAT(starter_.started, ElementsAre(TrialAttempt{0, 0, 5}, TrialAttempt{0, 0, 8}));
  seed_done({0, 0, 8}, "loss: 2\n");
  ASSERT_TRUE(*driver.step());
  EXPECT_THAT(starter_.started, SizeIs(3));
  EXPECT_EQ(starter_.started.back(), (TrialAttempt{0, 0, 9}));
  seed_done({0, 0, 5}, "loss: 1\n");
  ASSERT_TRUE(*driver.step());
  EXPECT_EQ(starter_.started.back(), (TrialAttempt{1, 0, 5}));
  EXPECT_EQ(driver.study().find(0)->state, TrialState::running);
  seed_done({0, 0, 9}, "loss: 6\n");
  ASSERT_TRUE(*driver.step());
  const sweep::StudyTrial& trial = *driver.study().find(0);
  EXPECT_EQ(trial.state, TrialState::complete);
  EXPECT_THAT(trial.values, ElementsAre(3));
  EXPECT_EQ(trial.seeds, (sweep::SeedValues{{5, {1}}, {8, {2}}, {9, {6}}}));
  const auto again = sweep::Study::open(box_ / "s.study");
  EXPECT_EQ(again->find(0)->seeds, trial.seeds);
}

TEST_F(DriverTest, a_new_driver_starts_no_seed_twice) {
  options_.plan.at_once = 3;
  {
    Driver killed = make(kSeeds);
    ASSERT_TRUE(killed.step().ok());
  }
  for (const std::uint64_t seed : {5, 8, 9}) seed_done({0, 0, seed}, "loss: 1\n");
  options_.plan.at_once = 1;
  Driver driver = make(kSeeds);
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(driver.study().find(0)->state, TrialState::complete);
  EXPECT_THAT(starter_.started, SizeIs(4));
  EXPECT_EQ(starter_.started.back(), (TrialAttempt{1, 0, 5}));
}

TEST_F(DriverTest, a_failed_seed_is_retried_alone) {
  options_.plan.at_once = 3;
  options_.plan.retries = 1;
  Driver driver = make(kSeeds);
  ASSERT_TRUE(driver.step().ok());
  seed_failed({0, 0, 8});
  ASSERT_TRUE(driver.step().ok());
  ASSERT_TRUE(driver.step().ok());
  EXPECT_THAT(starter_.started, SizeIs(4));
  EXPECT_EQ(starter_.started.back(), (TrialAttempt{0, 1, 8}));
  EXPECT_THAT(events_, HasSubstr("trial 0: seed 8: failed, exit code 7; retried\n"));
}

TEST_F(DriverTest, a_seed_without_a_retry_left_fails_the_trial_and_stops_its_other_seeds) {
  options_.plan.at_once = 3;
  Driver driver = make(kSeeds);
  ASSERT_TRUE(driver.step().ok());
  seed_done({0, 0, 5}, "loss: 1\n");
  seed_failed({0, 0, 8});
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(driver.study().find(0)->state, TrialState::failed);
  EXPECT_EQ(driver.study().find(0)->message, "seed 8: exit code 7");
  EXPECT_EQ(starter_.stops, 1);
}

TEST_F(DriverTest, a_seed_whose_value_is_not_finite_has_failed) {
  options_.plan.at_once = 3;
  Driver driver = make(kSeeds);
  ASSERT_TRUE(driver.step().ok());
  seed_done({0, 0, 5}, "loss: nan\n");
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(driver.study().find(0)->state, TrialState::failed);
  EXPECT_THAT(driver.study().find(0)->message, HasSubstr("seed 5: "));
}

TEST_F(DriverTest, the_pruner_sees_the_mean_of_the_seeds_and_stops_all_of_them) {
  options_.plan.at_once = 3;
  Driver driver = make(std::string(kSeeds) + "pruner: {kind: threshold, upper: 10}\n");
  ASSERT_TRUE(driver.step().ok());
  const auto log_step = [&](std::uint64_t seed, double value) {
    const Path points = run(TrialAttempt{0, 0, seed}).last_attempt()->folder() / "points-0000.csv";
    ASSERT_TRUE(write_file(points, format("time,step,value,metric\n1,0,{},loss\n", value)).ok());
  };
  log_step(5, 24);
  log_step(8, 1);
  ASSERT_TRUE(driver.step().ok());
  EXPECT_TRUE(driver.study().find(0)->reports.empty());  // seed 9 has not reached the step
  log_step(9, 8);
  ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(driver.study().find(0)->reports.at(0), 11);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(driver.step().ok());
  EXPECT_EQ(starter_.stops, 3);
  EXPECT_EQ(driver.study().find(0)->state, TrialState::pruned);
}

TEST_F(DriverTest, one_process_at_a_time_drives_a_study) {
  const sweep::Study study = open();
  ASSERT_TRUE(
      write_file(study.folder() / "driver.json", R"({"host":"n7","pid":7,"pid_start":1,"boot":"x"})").ok());
  const auto refused = Driver::create(open(), options_, starter_, scheduler_);
  EXPECT_EQ(refused.status().code(), Code::exists);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("s.study: process 7 on n7 already drives its trials"));
}

TEST_F(DriverTest, no_trial_starts_after_the_gpu_hours) {
  options_.plan.gpu_hours = 1e-9;
  options_.gpus_per_trial = 8;
  Driver driver = make();
  ASSERT_TRUE(*driver.step());
  RealClock().sleep(std::chrono::milliseconds(20));
  done(0, "loss: 1\n");
  EXPECT_FALSE(*driver.step());
  EXPECT_THAT(starter_.started, SizeIs(1));
  EXPECT_THAT(events_, HasSubstr("the budget is spent (budget.gpu_hours, 1e-09)"));
}

TEST(TrialRuns, names_fit_a_job_file_and_distinguish_attempts) {
  EXPECT_EQ(run_name("lr", {17, 0}), "lr-17");
  EXPECT_EQ(run_name("lr", {17, 2}), "lr-17.2");
  EXPECT_EQ(run_name("lr", {17, 0, 3}), "lr-17-s3");
  EXPECT_EQ(run_name("lr", {17, 2, 3}), "lr-17-s3.2");
  const std::string longest(64, 'x');
  EXPECT_LE(run_name(longest, {99'999'999'999, 999}).size(), 64U);
}

TEST(TrialRuns, settings_belong_to_params_unless_the_name_is_a_key) {
  const sweep::Assignment values = {
      {"lr", 0.5}, {"train.epochs", std::int64_t{3}}, {"opt", std::string("a \"b\"")}, {"params.flag", true}};
  EXPECT_THAT(trial_settings(values), ElementsAre("params.lr=0.5", "train.epochs=3",
                                                  "params.opt=\"a \\\"b\\\"\"", "params.flag=true"));
}

}  // namespace
}  // namespace stoker::trials
