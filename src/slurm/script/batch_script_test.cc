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

TEST(BatchScript, explains_its_requests) {
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
# Identifies the job if its id could not be recorded.
#SBATCH --comment=stoker:r/1
#SBATCH --account=def-lab
#SBATCH --partition=gpu
#SBATCH --qos=normal
#SBATCH --reservation=course
#SBATCH --nodes=2
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
# Per node, not per task: every rank sees all GPUs of its node and uses number LOCAL_RANK.
#SBATCH --gpus-per-node=4
#SBATCH --mem=128G
#SBATCH --time=20:00:00
#SBATCH --chdir=/work
# The folder exists: a job whose log cannot be opened ends at once without a message.
#SBATCH --output=/runs/r/attempts/1/slurm.log
# After a preemption or a node failure, Slurm restarts this script with the same log;
# stoker then resumes from the last valid checkpoint.
#SBATCH --requeue
#SBATCH --open-mode=append
# 2m before the time limit, SIGUSR1 asks every rank that handles it to save and stop (exit code 75).
#SBATCH --signal=B:USR1@120
#SBATCH --constraint=v100
#SBATCH -x n3
#SBATCH --exclusive

# exec: signals to the script reach stoker directly; bash would delay them until its child has
# ended. stoker starts the ranks on all nodes with a single srun.
exec /opt/stoker run /runs/r/attempts/1
)");
}

TEST(BatchScript, omits_unset_options) {
  const std::string script = text(small());
  for (const char* option : {"--account", "--partition", "--qos", "--reservation", "--cpus-per-task",
                             "--gpus", "--mem", "--time", "--signal", "--comment", "--chdir"})
    EXPECT_THAT(script, Not(HasSubstr(option)));
}

TEST(BatchScript, contains_the_job_order) {
  BatchScript script = small();
  script.array = "1-4%1";
  script.dependency = "afterok:812,afterany:813";
  EXPECT_THAT(text(script), HasSubstr(R"(
# Jobs that run one after another: each continues where the previous one ended.
#SBATCH --array=1-4%1
#SBATCH --dependency=afterok:812,afterany:813
# If one of these jobs fails, cancel this job instead of leaving it pending forever.
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

TEST(BatchScript, refuses_values_that_a_line_cannot_contain) {
  const auto error = [](const BatchScript& script) {
    return write_batch_script(script).status().to_string();
  };
  BatchScript script = small();
  script.partition = "gpu\n#SBATCH --uid=0";
  EXPECT_EQ(error(script),
            "--partition: 'gpu\\x0a#SBATCH --uid=0' contains a control character, which an #SBATCH line "
            "cannot contain");
  script = small();
  script.qos = std::string(5000, 'q');
  EXPECT_EQ(error(script), "--qos: 5000 bytes, but sbatch accepts at most 4096");
  script = small();
  script.log = "/a\\b.log";
  EXPECT_EQ(error(script), "/a\\b.log: Slurm allows no backslash in log paths");
  script = small();
  script.extra = {"--output=x"};
  EXPECT_EQ(error(script), "slurm.extra: '--output=x': --output is set by Stoker");
  script = small();
  script.command.push_back(std::string("a\0b", 3));
  EXPECT_EQ(error(script), "command: an argument contains a zero byte");
}

TEST(CheckExtra, refuses_options_with_a_job_file_key_and_invalid_options) {
  const auto error = [](std::string_view option) { return std::string(check_extra(option).message()); };
  EXPECT_EQ(error("--time=1:00"), "'--time=1:00': use resources.time instead of --time");
  EXPECT_EQ(error("-t 1"), "'-t 1': use resources.time instead of --time");
  EXPECT_EQ(error("-N2"), "'-N2': use resources.nodes instead of --nodes");
  EXPECT_EQ(error("--acc=x"), "'--acc=x': use slurm.account instead of --account");
  EXPECT_EQ(error("--array=1-3"), "'--array=1-3': use array.over or chain instead of --array");
  EXPECT_EQ(error("constraint"), "'constraint' is not an sbatch option (such as --constraint=v100)");
  EXPECT_EQ(error("--"), "'--' is not an sbatch option (such as --constraint=v100)");
  EXPECT_EQ(error("--nice=" + std::string(5000, '9')), "an option of 5007 bytes is too long");
  EXPECT_EQ(error("--nice=3\n#SBATCH"), "'--nice=3\\x0a#SBATCH' contains a control character");
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
