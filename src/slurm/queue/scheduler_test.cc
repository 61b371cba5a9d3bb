#include "slurm/queue/scheduler.h"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Pair;

// A folder with fake Slurm commands.
class Commands {
 public:
  void add(const std::string& name, const std::string& body) {
    const Path path = folder_ / name;
    ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + body).ok());
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  SlurmCommands slurm() const {
    return SlurmCommands({{"PATH", folder_.path().string() + ":/usr/bin:/bin"},
                          {"HERE", folder_.path().string()},
                          {"STOKER_SLURM_CALLS_PER_S", "0"}});
  }
  /// Without the machine's programs.
  SlurmCommands bare() const { return SlurmCommands({{"PATH", folder_.path().string()}}); }
  Path operator/(std::string_view name) const { return folder_ / name; }

 private:
  TempDirectory folder_;
};

Deadline soon() { return Deadline::after(20s); }

TEST(Slurm, submits_with_one_sbatch_call_and_returns_the_id) {
  Commands commands;
  commands.add("sbatch", "echo \"$@\" >> \"$HERE/calls\"; echo Welcome; echo '812345;cluster'\n");
  EXPECT_EQ(*commands.slurm().submit("/runs/r 1/job.sbatch", soon()), "812345");
  EXPECT_EQ(*read_file(commands / "calls"), "--parsable /runs/r 1/job.sbatch\n");
}

TEST(Slurm, does_not_pass_on_variables_of_a_surrounding_job) {
  const Environment base = {{"PATH", "/bin"},
                            {"SLURM_JOB_ID", "7"},
                            {"SLURM_CONF", "/etc/s.conf"},
                            {"SRUN_CPUS_PER_TASK", "4"},
                            {"SBATCH_TIMELIMIT", "1"},
                            {"SBATCH_ACCOUNT", "mine"}};
  EXPECT_THAT(
      submission_environment(base),
      ElementsAre(Pair("PATH", "/bin"), Pair("SLURM_CONF", "/etc/s.conf"), Pair("SBATCH_ACCOUNT", "mine")));
}

TEST(Slurm, reports_a_refusal_with_slurms_message_without_prefixes) {
  Commands commands;
  commands.add(
      "sbatch",
      "echo 'sbatch: error: Batch job submission failed: Invalid partition specified' >&2; exit 1\n");
  const Status refused = commands.slurm().submit("x", soon()).status();
  EXPECT_EQ(refused.to_string(), "sbatch: Invalid partition specified");
  EXPECT_EQ(refused.code(), Code::invalid);
}

TEST(Slurm, a_controller_that_is_down_is_unavailable) {
  Commands commands;
  commands.add(
      "squeue",
      "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1\n");
  const Status down = commands.slurm().jobs(soon()).status();
  EXPECT_EQ(down.to_string(), "squeue: Unable to contact slurm controller (connect failure)");
  EXPECT_EQ(down.code(), Code::unavailable);
}

TEST(Slurm, an_unresponsive_program_is_abandoned_at_the_deadline) {
  Commands commands;
  commands.add("squeue", "exec sleep 60\n");
  const Status slow = commands.slurm().jobs(Deadline::after(1s)).status();
  EXPECT_EQ(slow.code(), Code::timeout);
  EXPECT_EQ(slow.message(), "squeue: no answer within 1.0 s");
  EXPECT_EQ(slow.cure(), "scontrol ping shows whether Slurm's controller is up");
}

TEST(Slurm, the_last_message_of_an_unresponsive_program_is_shown) {
  Commands commands;
  commands.add("sbatch",
               "echo 'sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying' >&2\n"
               "exec sleep 60\n");
  const Status full = commands.slurm().submit("x", Deadline::after(1s)).status();
  EXPECT_EQ(full.code(), Code::timeout);
  EXPECT_EQ(full.message(),
            "sbatch: no answer within 1.0 s; its last message: Slurm temporarily unable to accept job, "
            "sleeping and "
            "retrying");
  EXPECT_EQ(full.cure(), "squeue --me      (the queue may be full: scontrol show config | grep MaxJobCount)");
  commands.add("squeue", "echo 'first' >&2; echo 'squeue: waiting for the controller' >&2; exec sleep 60\n");
  EXPECT_EQ(commands.slurm().jobs(Deadline::after(1s)).status().message(),
            "squeue: no answer within 1.0 s; its last message: waiting for the controller");
}

TEST(Slurm, the_limit_of_jobs_is_read_from_the_configuration) {
  EXPECT_EQ(parse_max_jobs("MaxArraySize            = 1001\nMaxJobCount             = 5000\n"), 5000);
  EXPECT_EQ(parse_max_jobs("MaxArraySize            = 1001\n"), 0);
  EXPECT_EQ(parse_max_jobs("MaxJobCount = many\n"), 0);
  Commands commands;
  commands.add("scontrol", "[ \"$*\" = 'show config' ] && echo 'MaxJobCount = 51'\n");
  EXPECT_EQ(*commands.slurm().max_jobs(soon()), 51);
}

TEST(Slurm, reports_a_machine_without_slurm) {
  const Commands commands;
  EXPECT_EQ(commands.bare().submit("x", soon()).status().to_string(),
            "sbatch: program not found in PATH (is this a machine with Slurm?)\n"
            "  try: module load slurm, or on a machine without Slurm: stoker run JOB");
  EXPECT_EQ(commands.bare().submit("x", soon()).status().code(), Code::unavailable);
}

TEST(Slurm, suggests_slurm_conf_on_a_machine_without_a_cluster) {
  for (const char* words :
       {"Could not establish a configuration source", "Unable to process configuration file"}) {
    Commands commands;
    commands.add("sbatch", format("echo 'sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error' >&2\n"
                                  "echo 'sbatch: fatal: {}' >&2; exit 1\n",
                                  words));
    const Status alone = commands.slurm().submit("x", soon()).status();
    EXPECT_EQ(alone.to_string(),
              format("sbatch: {}\n  try: export SLURM_CONF=FILE on a machine of a cluster, "
                     "eval \"$(stoker lab env)\" for a lab",
                     words));
    EXPECT_EQ(alone.code(), Code::unavailable);
  }
}

TEST(Slurm, garbled_output_is_an_error_not_an_empty_queue) {
  Commands commands;
  commands.add("squeue", "echo 'Segmentation violation'\n");
  EXPECT_EQ(commands.slurm().jobs(soon()).status().to_string(), "squeue: printed no table of jobs");
  commands.add("sbatch", "echo 'job queued, thank you'\n");
  EXPECT_EQ(commands.slurm().submit("x", soon()).status().to_string(), "sbatch: printed no job id");
  commands.add("sbatch", "exit 5\n");
  EXPECT_EQ(commands.slurm().submit("x", soon()).status().to_string(), "sbatch: exit code 5 without output");
}

TEST(Slurm, queries_accounting_first_and_otherwise_the_controller) {
  Commands commands;
  const std::vector<std::string> ids = {"12", "13"};
  commands.add("sacct", "printf 'JobID|State|ExitCode\\n12|TIMEOUT|0:0\\n'\n");
  auto found = commands.slurm().find(ids, soon());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->find("12")->state, JobState::timeout);
  EXPECT_EQ(found->find("13"), nullptr);
  commands.add("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1\n");
  commands.add("squeue", "echo \"$@\" >> \"$HERE/calls\"; printf 'JOBID|STATE|NAME\\n12|NODE_FAIL|a|b\\n'\n");
  found = commands.slurm().find(ids, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->find("12")->state, JobState::node_failed);
  EXPECT_EQ(found->find("12")->name, "a|b");
  EXPECT_EQ(found->find("13"), nullptr);
  EXPECT_EQ(*read_file(commands / "calls"),
            "--all --states=all --array --jobs=12,13 --format=%i|%T|%r|%S|%e|%P|%N|%u|%j\n");
}

TEST(Slurm, many_jobs_are_queried_in_few_calls) {
  Commands commands;
  commands.add("sacct", "echo x >> \"$HERE/calls\"; echo 'JobID|State'\n");
  std::vector<std::string> ids;
  for (int i = 0; i < 10'000; ++i) ids.push_back(format("8123456_{}", i));
  SlurmCommands slurm = commands.slurm();
  ASSERT_TRUE(slurm.find(ids, soon()).ok());
  EXPECT_EQ(slurm.calls().count, 2);
  EXPECT_EQ(*read_file(commands / "calls"), "x\nx\n");
}

TEST(Slurm, retries_queries_of_a_busy_controller_but_never_a_submission) {
  Commands commands;
  const std::string busy = " error: Socket timed out on send/recv operation' >&2; exit 1; }\n";
  commands.add("squeue", "[ -e \"$HERE/asked\" ] || { touch \"$HERE/asked\"; echo 'slurm_load_jobs" + busy +
                             "echo 'JOBID|STATE'; echo '7|RUNNING'\n");
  SlurmCommands slurm = commands.slurm();
  const auto jobs = slurm.jobs(soon());
  ASSERT_TRUE(jobs.ok()) << jobs.status().to_string();
  EXPECT_EQ(jobs->jobs.size(), 1u);
  EXPECT_EQ(slurm.calls().count, 2);
  commands.add("sbatch", "echo x >> \"$HERE/submitted\"; { echo 'sbatch:" + busy);
  EXPECT_EQ(slurm.submit("x", soon()).status().to_string(),
            "sbatch: Socket timed out on send/recv operation");
  EXPECT_EQ(*read_file(commands / "submitted"), "x\n");
}

TEST(Slurm, combines_all_sources_about_a_job) {
  Commands commands;
  commands.add("squeue", "printf 'JOBID|STATE|NAME\\n7|COMPLETED|a\\n'\n");
  commands.add("scontrol",
               "echo JobId=7 JobName=a JobState=COMPLETED Reason=None ExitCode=0:0 StdOut=/h/slurm-7.out\n");
  commands.add("sacct",
               "printf 'JobID|State|ExitCode|DerivedExitCode\\n7|COMPLETED|0:0|2:0\\n7.0|FAILED|2:0|\\n'\n");
  SlurmCommands slurm = commands.slurm();
  const auto known = slurm.describe("7", soon());
  ASSERT_TRUE(known.ok()) << known.status().to_string();
  ASSERT_EQ(known->jobs.size(), 1u);
  EXPECT_EQ(known->jobs[0].log, "/h/slurm-7.out");
  EXPECT_EQ(known->jobs[0].worst_step_code, 2);
  ASSERT_TRUE(known->jobs[0].failed.has_value());
  EXPECT_EQ(known->jobs[0].failed->id, "7.0");
  EXPECT_EQ(slurm.calls().count, 3);
}

TEST(Slurm, reads_a_finished_job_from_accounting_only) {
  Commands commands;
  commands.add("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n");
  commands.add("sacct", "printf 'JobID|State|ExitCode\\n7|TIMEOUT|0:0\\n'\n");
  EXPECT_EQ(commands.slurm().describe("7", soon())->find("7")->state, JobState::timeout);
  commands.add("sacct", "echo 'JobID|State'\n");
  EXPECT_EQ(commands.slurm().describe("7", soon()).status().to_string(), "job 7: unknown to Slurm");
  commands.add("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1\n");
  const Status gone = commands.slurm().describe("7", soon()).status();
  EXPECT_EQ(gone.to_string(),
            "job 7: not (or no longer) known to Slurm's controller, and sacct: Slurm accounting storage is "
            "disabled");
  EXPECT_EQ(gone.code(), Code::not_found);
}

TEST(Slurm, describes_all_tasks_of_an_array_in_one_query) {
  Commands commands;
  commands.add("squeue", "echo 'JOBID|STATE|NAME'; for i in $(seq 0 99); do echo \"8_$i|RUNNING|a\"; done\n");
  SlurmCommands slurm = commands.slurm();
  EXPECT_EQ(slurm.describe("8", soon())->jobs.size(), 100u);
  EXPECT_EQ(slurm.calls().count, 1);
}

TEST(Slurm, a_test_of_a_script_returns_the_start_time) {
  Commands commands;
  commands.add("sbatch",
               "[ \"$1\" = --test-only ] || exit 9\n"
               "echo 'sbatch: Job 813 to start at 2026-11-21T20:00:00 using 2 processors on nodes n1 in "
               "partition cpu' >&2\n");
  const auto start = commands.slurm().test("x", soon());
  ASSERT_TRUE(start.ok()) << start.status().to_string();
  EXPECT_EQ(*start, "to start at 2026-11-21T20:00:00 using 2 processors on nodes n1 in partition cpu");
  commands.add("sbatch",
               "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1\n");
  EXPECT_EQ(commands.slurm().test("x", soon()).status().to_string(),
            "sbatch: Requested node configuration is not available");
  EXPECT_EQ(parse_test("hello").status().message(), "sbatch --test-only: reports no start time: 'hello'");
}

TEST(Slurm, variables_of_the_shell_override_only_user_scripts) {
  const Environment shell = {
      {"SBATCH_TIMELIMIT", "5"}, {"SBATCH_WAIT", "1"}, {"SLURM_TIME_FORMAT", "relative"}};
  EXPECT_TRUE(submission_environment(shell).empty());
  const Environment kept = submission_environment(shell, OptionPrecedence::shell);
  EXPECT_EQ(kept, (Environment{{"SBATCH_TIMELIMIT", "5"}, {"SLURM_TIME_FORMAT", "relative"}}));
  Environment job = shell;
  job.emplace_back("SLURM_JOB_ID", "7");
  EXPECT_EQ(submission_environment(job, OptionPrecedence::shell), (Environment{{"SBATCH_TIMELIMIT", "5"}}));
}

TEST(Slurm, cancelling_names_the_job_and_an_unknown_one_is_not_found) {
  Commands commands;
  commands.add("scancel", "echo \"$@\" >> \"$HERE/calls\"\n");
  EXPECT_TRUE(commands.slurm().cancel("12", soon()).ok());
  EXPECT_TRUE(commands.slurm().cancel_step("12", "0", soon()).ok());
  EXPECT_EQ(*read_file(commands / "calls"), "12\n12.0\n");
  commands.add("scancel",
               "echo 'scancel: error: Kill job error on job id 9: Invalid job id specified' >&2; exit 1\n");
  const Status unknown = commands.slurm().cancel("9", soon());
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_EQ(unknown.to_string(), "scancel: Kill job error on job id 9: Invalid job id specified");
}

TEST(Slurm, cancels_or_limits_the_rest_of_an_array_and_requeues_a_job) {
  Commands commands;
  commands.add("scancel", "echo scancel \"$@\" >> \"$HERE/calls\"\n");
  commands.add("scontrol", "echo scontrol \"$@\" >> \"$HERE/calls\"\n");
  EXPECT_TRUE(commands.slurm().cancel_pending("12", soon()).ok());
  EXPECT_TRUE(commands.slurm().requeue("12_3", soon()).ok());
  EXPECT_TRUE(commands.slurm().set_array_limit("12", 4, soon()).ok());
  EXPECT_EQ(*read_file(commands / "calls"),
            "scancel --state=PENDING 12\nscontrol requeue 12_3\n"
            "scontrol update JobId=12 ArrayTaskThrottle=4\n");
}

TEST(Slurm, slurm_restarts_a_job_without_a_request) {
  Commands commands;
  commands.add("scontrol", "echo Job is pending execution for job $2 >&2; exit 1\n");
  EXPECT_TRUE(commands.slurm().requeue("12", soon()).ok());
  commands.add("scontrol", "echo Requested operation is presently disabled for job $2 >&2; exit 1\n");
  EXPECT_EQ(commands.slurm().requeue("12", soon()).to_string(),
            "scontrol: Requested operation is presently disabled for job 12");
}

TEST(Slurm, the_largest_array_follows_from_the_clusters_configuration) {
  constexpr std::string_view kConfig =
      "Configuration data as of 2026-11-21T10:00:00\nMaxArraySize            = 1001\n"
      "SchedulerParameters     = bf_interval=2,max_array_tasks=400\n";
  EXPECT_EQ(*parse_max_array_tasks(kConfig), 400);
  EXPECT_EQ(*parse_max_array_tasks("MaxArraySize            = 1001\nSchedulerParameters     = (null)\n"),
            1000);
  EXPECT_EQ(*parse_max_array_tasks("MaxArraySize = 0\n"), 0);
  EXPECT_EQ(parse_max_array_tasks("x").status().to_string(), "scontrol: printed no MaxArraySize");
  Commands commands;
  commands.add("scontrol", "[ \"$*\" = 'show config' ] && echo 'MaxArraySize = 51'\n");
  EXPECT_EQ(*commands.slurm().max_array_tasks(soon()), 50);
}

TEST(Slurm, recognizes_a_preempted_job_by_its_preempt_time) {
  constexpr std::string_view kStart = "JobId=7 JobState=RUNNING PreemptEligibleTime=1763719411 ";
  EXPECT_TRUE(has_preempt_time(format("{}PreemptTime=1763719420 LastSchedEval=1763719411", kStart)));
  EXPECT_TRUE(has_preempt_time(format("{}PreemptTime=2026-11-21T15:13:52\n", kStart)));
  EXPECT_FALSE(has_preempt_time(format("{}PreemptTime=None LastSchedEval=1763719411", kStart)));
  EXPECT_FALSE(has_preempt_time(format("{}PreemptTime=", kStart)));
  EXPECT_FALSE(has_preempt_time(kStart));
}

}  // namespace
}  // namespace stoker::slurm
