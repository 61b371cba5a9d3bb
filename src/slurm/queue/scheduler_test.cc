#include "slurm/queue/scheduler.h"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Pair;

// A folder of small programs with the names of Slurm's.
class Commands {
 public:
  void add(const std::string& name, const std::string& body) {
    const Path path = folder_ / name;
    ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + body).ok());
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  SlurmCommands slurm() const {
    return SlurmCommands(
        {{"PATH", folder_.path().string() + ":/usr/bin:/bin"}, {"HERE", folder_.path().string()}});
  }
  /// Without the machine's own programs.
  SlurmCommands bare() const { return SlurmCommands({{"PATH", folder_.path().string()}}); }
  Path operator/(std::string_view name) const { return folder_ / name; }

 private:
  TempDirectory folder_;
};

Deadline soon() { return Deadline::after(20s); }

TEST(Slurm, submitting_is_one_call_of_sbatch_and_gives_the_id) {
  Commands commands;
  commands.add("sbatch", "echo \"$@\" >> \"$HERE/calls\"; echo Welcome; echo '812345;cluster'\n");
  EXPECT_EQ(*commands.slurm().submit("/runs/r 1/job.sbatch", soon()), "812345");
  EXPECT_EQ(*read_file(commands / "calls"), "--parsable /runs/r 1/job.sbatch\n");
}

TEST(Slurm, what_a_job_around_us_left_never_reaches_it) {
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

TEST(Slurm, a_refusal_is_told_in_slurms_words_without_its_prefixes) {
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

TEST(Slurm, a_program_that_does_not_answer_is_given_up_at_the_deadline) {
  Commands commands;
  commands.add("squeue", "exec sleep 60\n");
  const Status slow = commands.slurm().jobs(Deadline::after(1s)).status();
  EXPECT_EQ(slow.code(), Code::timeout);
  EXPECT_EQ(slow.message(), "squeue: no answer within 1.0 s");
  EXPECT_EQ(slow.cure(), "scontrol ping tells whether Slurm's controller is up");
}

TEST(Slurm, a_machine_without_it_is_told_so) {
  const Commands commands;
  EXPECT_EQ(commands.bare().submit("x", soon()).status().to_string(),
            "sbatch: no such program in PATH (is this a machine with Slurm?)\n"
            "  try: module load slurm, or on a machine of your own: stoker run JOB");
  EXPECT_EQ(commands.bare().submit("x", soon()).status().code(), Code::unavailable);
}

TEST(Slurm, a_machine_of_no_cluster_is_told_where_one_is_named) {
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

TEST(Slurm, garbled_output_is_an_error_and_no_empty_queue) {
  Commands commands;
  commands.add("squeue", "echo 'Segmentation violation'\n");
  EXPECT_EQ(commands.slurm().jobs(soon()).status().to_string(), "squeue: printed no table of jobs");
  commands.add("sbatch", "echo 'job queued, thank you'\n");
  EXPECT_EQ(commands.slurm().submit("x", soon()).status().to_string(), "sbatch: printed no job id");
  commands.add("sbatch", "exit 5\n");
  EXPECT_EQ(commands.slurm().submit("x", soon()).status().to_string(), "sbatch: exit code 5 without a word");
}

TEST(Slurm, accounting_is_asked_first_and_the_controller_where_there_is_none) {
  Commands commands;
  const std::vector<std::string> ids = {"12", "13"};
  commands.add("sacct", "printf 'JobID|State|ExitCode\\n12|TIMEOUT|0:0\\n'\n");
  auto found = commands.slurm().find(ids, soon());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->find("12")->state, JobState::timeout);
  EXPECT_EQ(found->find("13"), nullptr);
  commands.add("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1\n");
  commands.add("scontrol",
               "[ $4 = 13 ] && { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }\n"
               "echo JobId=$4 JobName=x JobState=NODE_FAIL Reason=NodeDown ExitCode=0:1\n");
  found = commands.slurm().find(ids, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->find("12")->state, JobState::node_failed);
  EXPECT_EQ(found->find("13"), nullptr);
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

}  // namespace
}  // namespace stoker::slurm
