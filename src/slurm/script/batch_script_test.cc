#include "slurm/script/batch_script.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

BatchScript small() {
  BatchScript script;
  script.title = "digits, attempt 1 of run r, written by stoker 0.1.0";
  script.job_name = "digits";
  script.log = "/runs/r/attempts/1/slurm.log";
  script.command = {"/opt/stoker", "run", "/runs/r/attempts/1"};
  return script;
}

std::string text(const BatchScript& script) {
  auto result = write_batch_script(script);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *result : "";
}

TEST(BatchScript, says_what_it_asks_for_and_why) {
  BatchScript script = small();
  script.comment = "stoker:r/1";
  script.account = "def-lab";
  script.partition = "gpu";
  script.qos = "normal";
  script.reservation = "course";
  script.nodes = 2;
  script.tasks_per_node = 4;
  script.cpus_per_task = 8;
  script.gpus_per_node = 4;
  script.memory_per_node = 128_GiB;
  script.time = 20h;
  script.signal_before = 2min;
  script.directory = "/work";
  script.extra = {"--constraint=v100", "-x n3", "--exclusive"};
  EXPECT_EQ(text(script), R"(#!/bin/bash
# digits, attempt 1 of run r, written by stoker 0.1.0
#SBATCH --job-name=digits
# By this comment the job is found again, should its id not have been recorded.
#SBATCH --comment=stoker:r/1
#SBATCH --account=def-lab
#SBATCH --partition=gpu
#SBATCH --qos=normal
#SBATCH --reservation=course
#SBATCH --nodes=2
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
# Per node and not per task: every rank sees all GPUs of its node and takes number LOCAL_RANK.
#SBATCH --gpus-per-node=4
#SBATCH --mem=128G
#SBATCH --time=20:00:00
#SBATCH --chdir=/work
# Its folder exists: a job whose log cannot be opened ends at once and leaves no word.
#SBATCH --output=/runs/r/attempts/1/slurm.log
# After a preemption or the loss of a node Slurm starts this script again, in the same log;
# stoker then goes on from the last valid checkpoint.
#SBATCH --requeue
#SBATCH --open-mode=append
# 2m before the end every rank that handles SIGUSR1 is asked to save and stop (exit code 75).
#SBATCH --signal=B:USR1@120
#SBATCH --constraint=v100
#SBATCH -x n3
#SBATCH --exclusive

# exec: a signal for the script reaches stoker itself, where bash would hold it back until its
# child has ended. stoker starts the ranks on all nodes with one srun.
exec /opt/stoker run /runs/r/attempts/1
)");
}

TEST(BatchScript, leaves_out_what_was_not_asked_for) {
  const std::string script = text(small());
  for (const char* option : {"--account", "--partition", "--qos", "--reservation", "--cpus-per-task",
                             "--gpus", "--mem", "--time", "--signal", "--comment", "--chdir"})
    EXPECT_THAT(script, Not(HasSubstr(option)));
}

TEST(BatchScript, says_what_order_jobs_come_in) {
  BatchScript script = small();
  script.array = "1-4%1";
  script.dependency = "afterok:812,afterany:813";
  EXPECT_THAT(text(script), HasSubstr(R"(
# One job after the other: each goes on where the one before it ended.
#SBATCH --array=1-4%1
#SBATCH --dependency=afterok:812,afterany:813
# When one of these fails this job ends, too, in place of waiting for ever.
#SBATCH --kill-on-invalid-dep=yes
)"));
  script.array = "3,7-9%20";
  EXPECT_THAT(text(script), HasSubstr("\n#SBATCH --array=3,7-9%20\n"));
}

TEST(BatchScript, quotes_for_sbatch_and_for_bash) {
  BatchScript script = small();
  script.account = R"(a"b\c$(id) #x 'é')";
  script.log = "/r 100%/%j.log";
  script.command = {"/opt/my stoker", "it's", "$(id)", "a\nb", ""};
  const std::string written = text(script);
  EXPECT_THAT(written, HasSubstr("\n#SBATCH --account=\"a\\\"b\\\\c$(id) #x 'é'\"\n"));
  EXPECT_THAT(written, HasSubstr("\n#SBATCH --output=\"/r 100%%/%%j.log\"\n"));
  EXPECT_THAT(written, HasSubstr("\nexec '/opt/my stoker' 'it'\\''s' '$(id)' 'a\nb' ''\n"));
}

TEST(BatchScript, a_title_stays_a_comment) {
  BatchScript script = small();
  script.title = "x\n#SBATCH --account=evil\nrm -rf /";
  EXPECT_THAT(text(script), HasSubstr("\n# x\\x0a#SBATCH --account=evil\\x0arm -rf /\n"));
}

TEST(BatchScript, what_no_line_can_hold_is_refused) {
  const auto error = [](const BatchScript& script) {
    return write_batch_script(script).status().to_string();
  };
  BatchScript script = small();
  script.partition = "gpu\n#SBATCH --uid=0";
  EXPECT_EQ(
      error(script),
      "--partition: 'gpu\\x0a#SBATCH --uid=0' has a control character, and no #SBATCH line can hold one");
  script = small();
  script.qos = std::string(5000, 'q');
  EXPECT_EQ(error(script), "--qos: 5000 bytes, and sbatch takes 4096 at most");
  script = small();
  script.log = "/a\\b.log";
  EXPECT_EQ(error(script), "/a\\b.log: Slurm takes no backslash in the path of a log");
  script = small();
  script.extra = {"--output=x"};
  EXPECT_EQ(error(script), "slurm.extra: '--output=x': --output is set by Stoker");
  script = small();
  script.command.push_back(std::string("a\0b", 3));
  EXPECT_EQ(error(script), "command: an argument holds a zero byte");
}

TEST(CheckExtra, refuses_what_has_a_key_of_its_own_or_is_no_option) {
  const auto error = [](std::string_view option) { return std::string(check_extra(option).message()); };
  EXPECT_EQ(error("--time=1:00"), "'--time=1:00': use resources.time in place of --time");
  EXPECT_EQ(error("-t 1"), "'-t 1': use resources.time in place of --time");
  EXPECT_EQ(error("-N2"), "'-N2': use resources.nodes in place of --nodes");
  EXPECT_EQ(error("--acc=x"), "'--acc=x': use slurm.account in place of --account");
  EXPECT_EQ(error("--array=1-3"), "'--array=1-3': use array.over or chain in place of --array");
  EXPECT_EQ(error("constraint"), "'constraint' is no option for sbatch (as in --constraint=v100)");
  EXPECT_EQ(error("--"), "'--' is no option for sbatch (as in --constraint=v100)");
  EXPECT_EQ(error("--nice=" + std::string(5000, '9')), "an option of 5007 bytes is too long");
  EXPECT_EQ(error("--nice=3\n#SBATCH"), "'--nice=3\\x0a#SBATCH' has a control character");
  for (const char* good :
       {"--constraint=v100", "-C v100", "--exclusive", "--time-min=1:00", "--mail-type=END", "--gres=gpu:2",
        "--mem-per-cpu=2G", "--no-requeue", "--nodelist=n1"})
    EXPECT_EQ(error(good), "ok") << good;
}

TEST(SlurmWords, durations_and_amounts_are_rounded_up) {
  EXPECT_EQ(slurm_duration(20h), "20:00:00");
  EXPECT_EQ(slurm_duration(60h), "2-12:00:00");
  EXPECT_EQ(slurm_duration(1500ms), "00:00:02");
  EXPECT_EQ(slurm_memory(128_GiB), "128G");
  EXPECT_EQ(slurm_memory(ByteCount{128'000'000'000}), "122071M");
  EXPECT_EQ(slurm_memory(1_MiB), "1M");
}

TEST(SignalBefore, is_at_most_a_quarter_of_the_time) {
  EXPECT_EQ(signal_before(2min, 20h), Duration(2min));
  EXPECT_EQ(signal_before(2min, 1min), Duration(15s));
  EXPECT_EQ(signal_before(2min, std::nullopt), Duration(2min));
  EXPECT_EQ(signal_before(0s, 20h), Duration(0s));
}

}  // namespace
}  // namespace stoker::slurm
