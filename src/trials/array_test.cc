#include "trials/array.h"

#include <gmock/gmock.h>

#include "launch/fake_scheduler.h"
#include "sweep/file/open_study.h"

namespace stoker::trials {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class ArrayTest : public ::testing::Test {
 protected:
  sweep::Study open(std::string_view text) {
    auto opened = sweep::open_study_text(box_ / "s.study", "s.yaml", text, sweep::MissingStudy::create);
    STOKER_CHECK(opened.ok());
    return std::move(opened->study);
  }
  Result<TrialArray> submit(const sweep::Study& study) {
    launch::Request request;
    request.job.name = "toy";
    request.job.resources.nodes = nodes_;
    request.job.resources.ranks_per_node = 2;
    request.job.resources.cpus_per_rank = 3;
    TrialJob job{.file = "job.yaml"};
    job.plan.at_once = 4;
    return submit_array(study, {job, request, {"stoker", "sweep", "s.yaml", "--task"}}, scheduler_,
                        Deadline::after(std::chrono::seconds(1)));
  }
  // A row of the queue.
  void list(std::string id, const sweep::Study& study, slurm::JobState state) {
    slurm::JobInfo job;
    job.id = std::move(id);
    job.state = state;
    job.comment = "stoker-sweep:" + study.definition().id;
    scheduler_.listed.jobs.push_back(job);
  }

  TempDirectory box_;
  launch::FakeScheduler scheduler_;
  unsigned nodes_ = 1;
};

constexpr std::string_view kTenTrials =
    "space: {lr: {min: 0, max: 1.5}}\nobjectives: {loss: minimize}\ntrials: 10\n";

TEST(TrialArrayRows, rows_of_the_queue_have_one_task_or_a_list_of_tasks) {
  EXPECT_EQ(array_tasks_of("812_7"), 1U);
  EXPECT_EQ(array_tasks_of("812_[3-6,9%2]"), 5U);
  EXPECT_EQ(array_tasks_of("812_[4]"), 1U);
  EXPECT_EQ(array_tasks_of("812_[1,3,5,...]"), std::nullopt);
  EXPECT_EQ(array_tasks_of("812_[9-3]"), std::nullopt);
}

TEST_F(ArrayTest, a_task_is_a_step_of_one_process_with_the_cores_of_all_ranks) {
  const sweep::Study study = open(kTenTrials);
  const auto done = submit(study);
  ASSERT_TRUE(done.ok()) << done.status().to_string();
  EXPECT_EQ(done->tasks, 10U);
  EXPECT_EQ(done->job, "100");
  const std::string script = *read_file(study.folder() / "array.sbatch");
  for (const std::string_view line : {"--array=1-10%4", "--ntasks-per-node=1", "--cpus-per-task=6",
                                      "--job-name=s", "exec stoker sweep s.yaml --task"})
    EXPECT_THAT(script, HasSubstr(std::string(line)));
}

TEST_F(ArrayTest, only_trials_without_a_task_get_one_and_the_cap_follows) {
  sweep::Study study = open(kTenTrials);
  for (int i = 0; i < 2; ++i) {
    const auto proposal = study.ask();
    ASSERT_TRUE(study.tell((*proposal)->number, {sweep::TrialState::complete, {1.0}, ""}).ok());
  }
  list("70_[5-6%2]", study, slurm::JobState::pending);
  list("70_4", study, slurm::JobState::running);
  list("70_3", study, slurm::JobState::completed);
  const auto done = submit(study);
  ASSERT_TRUE(done.ok()) << done.status().to_string();
  EXPECT_EQ(done->open, 3U);
  EXPECT_EQ(done->tasks, 5U);
  EXPECT_THAT(scheduler_.array_limits, ElementsAre(Pair("70", 4U)));
}

TEST_F(ArrayTest, a_row_that_slurm_shortened_is_no_reason_for_a_second_array) {
  const sweep::Study study = open(kTenTrials);
  list("70_[1,3,5,...]", study, slurm::JobState::pending);
  EXPECT_EQ(submit(study)->job, "");
}

TEST_F(ArrayTest, the_largest_array_of_the_cluster_leaves_trials_out) {
  scheduler_.array_limit = 6;
  const auto done = submit(open(kTenTrials));
  EXPECT_EQ(done->tasks, 6U);
  EXPECT_EQ(done->left_out, 4U);
}

TEST_F(ArrayTest, an_array_needs_a_number_of_trials_and_one_node) {
  const sweep::Study endless = open("space: {lr: {min: 0, max: 1.5}}\nobjectives: {loss: minimize}\n");
  EXPECT_THAT(submit(endless).status().to_string(), HasSubstr("needs the number of trials (place: array)"));
  nodes_ = 2;
  EXPECT_THAT(submit(endless).status().to_string(), HasSubstr("runs a trial on one node, not 2"));
}

}  // namespace
}  // namespace stoker::trials
