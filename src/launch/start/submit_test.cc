#include "launch/start/submit.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"
#include "launch/status/control.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

TEST(Submit, makes_run_attempt_script_and_one_call) {
  LaunchSandbox box;
  const auto submitted =
      submit(box.request("resources: {nodes: 2, ranks_per_node: 2}\n"), box.scheduler, soon());
  ASSERT_TRUE(submitted.ok()) << submitted.status().to_string();
  EXPECT_EQ(box.scheduler.calls, 1);
  EXPECT_EQ(submitted->scheduler_job, "100");
  EXPECT_EQ(submitted->folder.description().world_size, 4);
  const std::string script = *read_file(submitted->attempt.batch_script());
  EXPECT_THAT(script, HasSubstr(format("\n#SBATCH --comment=stoker:{}/1\n", submitted->folder.id())));
  EXPECT_THAT(script, HasSubstr(format("\nexec /opt/stoker run {}\n", submitted->attempt.folder().string())));
  EXPECT_EQ(query_life(submitted->folder, box.scheduler, soon()).life, Life::queued);
  EXPECT_TRUE(was_submitted(submitted->folder));
}

std::string script_of(const LaunchSandbox& box, const std::string& more) {
  const Request request = box.request(more);
  return *batch_script(request, record::Attempt("/runs/r/attempts/1", 1), "r");
}

TEST(Submit, torchrun_is_one_task_on_each_node_with_the_cores_of_its_ranks) {
  LaunchSandbox box;
  const std::string script =
      script_of(box, "resources: {nodes: 2, ranks_per_node: 4, cpus_per_rank: 6}\nlauncher: torchrun\n");
  EXPECT_THAT(script,
              HasSubstr("#SBATCH --ntasks=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=24\n"));
}

TEST(Submit, ranks_that_do_not_divide_evenly_leave_their_places_to_slurm) {
  LaunchSandbox box;
  const std::string script = script_of(box, "resources: {nodes: 2, ranks: 7}\n");
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=2\n#SBATCH --ntasks=7\n"));
  EXPECT_THAT(script, ::testing::Not(HasSubstr("--ntasks-per-node")));
}

TEST(Submit, ranks_that_share_gpus_need_fewer) {
  LaunchSandbox box;
  const std::string script = script_of(box, "resources: {ranks_per_node: 4, ranks_per_gpu: 2}\n");
  EXPECT_THAT(script,
              HasSubstr("# Per node, not per task: 2 ranks share a GPU, and stoker makes only that GPU "
                        "visible to each rank.\n#SBATCH --gpus-per-node=2\n"));
}

TEST(Submit, a_refusal_names_the_key_and_stays_in_the_run_folder) {
  LaunchSandbox box;
  box.scheduler.problem = invalid("sbatch: Invalid account or account/partition combination specified");
  const Status refused = submit(box.request("slurm: {account: unknown}\n"), box.scheduler, soon()).status();
  EXPECT_THAT(std::string(refused.message()),
              MatchesRegex("sbatch: Invalid account or account/partition combination specified "
                           "\\(slurm.account, .*job.yaml:3:18\\)"));
  EXPECT_EQ(refused.code(), Code::invalid);
  EXPECT_THAT(box.runs(), SizeIs(0));
}

TEST(Submit, a_refused_resumption_keeps_the_run) {
  LaunchSandbox box;
  ASSERT_TRUE(submit(box.request(), box.scheduler, soon()).ok());
  Request request = box.request();
  request.resumed = box.runs()[0];
  box.scheduler.problem = invalid("sbatch: Invalid qos specification");
  const Status refused = submit(request, box.scheduler, soon()).status();
  ASSERT_THAT(box.runs(), SizeIs(1));
  const RunLife life = query_life(box.runs()[0], box.scheduler, soon());
  EXPECT_EQ(life.life, Life::failed);
  EXPECT_EQ(life.note, refused.message());
}

TEST(Submit, a_refusal_of_the_size_names_every_size_that_was_asked_for) {
  LaunchSandbox box;
  box.scheduler.problem = invalid("sbatch: Requested node configuration is not available");
  const auto refused = [&](const std::string& more) {
    return std::string(submit(box.request(more), box.scheduler, soon()).status().message());
  };
  EXPECT_EQ(refused(""), "sbatch: Requested node configuration is not available");
  EXPECT_THAT(
      refused("resources: {nodes: 9, cpus_per_rank: 99}\n"),
      MatchesRegex("sbatch: Requested node configuration is not available "
                   "\\(resources.cpus_per_rank, .*job.yaml:3:38; resources.nodes, .*job.yaml:3:20\\)"));
  box.scheduler.problem = invalid("sbatch: Invalid feature specification");
  EXPECT_THAT(refused("slurm: {extra: [--constraint=v100]}\n"),
              MatchesRegex("sbatch: Invalid feature specification \\(slurm.extra, .*job.yaml:3:16\\)"));
}

TEST(Submit, job_is_found_after_a_lost_answer) {
  LaunchSandbox box;
  box.scheduler.answer = timeout("sbatch: no answer within 60 s");
  const Status lost = submit(box.request(), box.scheduler, soon()).status();
  ASSERT_THAT(box.runs(), SizeIs(1));
  EXPECT_EQ(lost.message(),
            format("run {}: unknown whether it is in the queue: sbatch: no answer within 60 s",
                   box.runs()[0].id()));
  const RunLife life = query_life(box.runs()[0], box.scheduler, soon());
  EXPECT_EQ(life.life, Life::queued);
  EXPECT_EQ(life.scheduler_job, "100");
}

TEST(Submit, missing_files_are_refused_before_anything_is_written) {
  LaunchSandbox box;
  EXPECT_THAT(
      std::string(
          submit(box.request("working_directory: nowhere\n"), box.scheduler, soon()).status().message()),
      MatchesRegex("working_directory: .*nowhere: no such folder"));
  EXPECT_EQ(submit(box.request("resources: {nodes: 2}\nlauncher: single\n"), box.scheduler, soon())
                .status()
                .to_string(),
            "resources.nodes: 2 requested, but launcher: single starts ranks on one node only\n  try: stoker "
            "submit --set launcher=srun");
  EXPECT_EQ(box.scheduler.calls, 0);
  EXPECT_THAT(box.runs(), SizeIs(0));
}

TEST(Submit, without_the_trainer_there_is_nothing_to_start) {
  LaunchSandbox box;
  Request request = box.request();
  request.job.command.reset();
  // The rest of the message depends on this machine's Python.
  EXPECT_THAT(std::string(submit(request, box.scheduler, soon()).status().message()),
              MatchesRegex("stoker-train: (requires|none is for) torch.*"));
  EXPECT_THAT(box.runs(), SizeIs(0));
}

TEST(Submit, a_resumed_run_gets_its_next_attempt) {
  LaunchSandbox box;
  ASSERT_TRUE(submit(box.request(), box.scheduler, soon()).ok());
  Request request = box.request();
  request.resumed = box.runs()[0];
  const auto submitted = submit(request, box.scheduler, soon());
  ASSERT_TRUE(submitted.ok());
  EXPECT_EQ(submitted->attempt.number(), 2);
  EXPECT_THAT(*read_file(submitted->attempt.batch_script()), HasSubstr("/2\n"));
}

TEST(Prepared, only_an_attempt_folder_is_a_prepared_request) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const auto request = prepared_request(submitted->attempt.folder());
  ASSERT_TRUE(request.ok()) << request.status().to_string();
  EXPECT_EQ(request->prepared->number(), 1);
  EXPECT_EQ(request->resumed->id(), submitted->folder.id());
  EXPECT_EQ(prepared_request("/tmp").status().to_string(),
            "/tmp: is a folder, but no attempt of a run\n  try: stoker run job.yaml");
  EXPECT_EQ(prepared_request(submitted->folder.folder() / "attempts/7").status().message(),
            format("{}/attempts/7: no such attempt", submitted->folder.folder().string()));
}

TEST(Cancel, asks_the_scheduler_once_and_is_remembered) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const auto plan = plan_cancel(submitted->folder, box.scheduler, soon());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->how, Cancellation::How::scheduler);
  ASSERT_TRUE(cancel(submitted->folder, *plan, box.scheduler, soon()).ok());
  EXPECT_THAT(box.scheduler.cancelled_ids, ElementsAre("100"));
  // Long after, when the scheduler has forgotten the job.
  box.scheduler.listed.jobs.clear();
  EXPECT_EQ(query_life(submitted->folder, box.scheduler, soon()).life, Life::cancelled);
  EXPECT_EQ(plan_cancel(submitted->folder, box.scheduler, soon())->how, Cancellation::How::none);
}

TEST(Environment, job_file_overrides_shell_variables) {
  LaunchSandbox box;
  const Request request = box.request("slurm: {account: a}\n");
  const Environment shell = {{"SBATCH_ACCOUNT", "b"}, {"SBATCH_PARTITION", "p"}};
  EXPECT_THAT(scheduler_environment(request.job, shell),
              ElementsAre(::testing::Pair("SBATCH_PARTITION", "p")));
}

}  // namespace
}  // namespace stoker::launch
