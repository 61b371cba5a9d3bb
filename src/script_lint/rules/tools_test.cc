// Positive and negative examples: tool choice, clusters inside a job, conflicting options.
#include <gmock/gmock.h>

#include "script_lint/test_lint.h"

namespace stoker::script_lint {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string fix_of(std::string_view rule, std::string_view text) {
  const TempDirectory folder;
  for (const ScriptFinding& finding :
       lint_script("a.sh", std::string(text), {.directory = folder.path()}).findings) {
    if (finding.rule == rule) return finding.fix.english();
  }
  return "";
}

TEST(ScriptTools, a_loop_around_sbatch_is_an_array) {
  const std::string one = "#!/bin/bash\nfor lr in 0.1 0.01; do\n  sbatch train.sh $lr\ndone\n";
  EXPECT_EQ(found("sbatch-loop", one), Found{"3:advice"});
  EXPECT_EQ(fix_of("sbatch-loop", one), "sbatch --array=1-2%2 SCRIPT");
  const std::string table =
      "#!/bin/bash\nfor lr in 0.1 0.01; do\n  for s in 1 2; do\n    sbatch train.sh $lr $s\n  done\ndone\n";
  EXPECT_EQ(found("sbatch-loop", table), Found{"4:advice"});
  EXPECT_THAT(fix_of("sbatch-loop", table), HasSubstr("over: values.csv"));
  EXPECT_THAT(found("sbatch-loop", "#!/bin/bash\nsbatch train.sh\n"), IsEmpty());
  // Other rules handle more submissions and dependent jobs.
  EXPECT_THAT(found("sbatch-loop", "#!/bin/bash\nfor i in {1..50}; do\n  sbatch a.sh $i\ndone\n"), IsEmpty());
  EXPECT_THAT(
      found("sbatch-loop", "#!/bin/bash\nfor i in 1 2; do\n  sbatch --dependency=afterok:$j a.sh\ndone\n"),
      IsEmpty());
}

TEST(ScriptTools, short_tasks_share_a_job) {
  EXPECT_EQ(found("short-tasks", "#!/bin/bash\n#SBATCH --array=1-40 --time=1\n./a\n"), Found{"2:advice"});
  EXPECT_THAT(found("short-tasks", "#!/bin/bash\n#SBATCH --array=1-40 --time=1:00:00\n./a\n"), IsEmpty());
  EXPECT_THAT(found("short-tasks", "#!/bin/bash\n#SBATCH --array=1-4 --time=1\n./a\n"), IsEmpty());
  const std::string steps =
      "#!/bin/bash\n#SBATCH -n 50 --time=1\nfor i in {1..50}; do\n  srun -n 1 ./a $i &\ndone\nwait\n";
  EXPECT_EQ(found("short-tasks", steps), Found{"4:advice"});
  EXPECT_THAT(fix_of("short-tasks", steps), HasSubstr("--multi-prog"));
}

TEST(ScriptTools, a_job_that_submits_itself_is_a_chain) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1\npython -u train.py\n";
  EXPECT_EQ(found("submits-itself", head + "sbatch $0\n"), Found{"4:time"});
  EXPECT_EQ(found("submits-itself", head + "sbatch a.sh\n"), Found{"4:time"});
  EXPECT_EQ(found("submits-itself", head + "if [ ! -f done ]; then\n  sbatch \"$0\"\nfi\n"),
            Found{"5:advice"});
  EXPECT_EQ(found("submits-itself", head + "[ -f done ] || sbatch $0\n"), Found{"4:advice"});
  EXPECT_EQ(found("submits-itself",
                  "#!/bin/bash\n#SBATCH --time=1\nagain() {\n  scontrol requeue $SLURM_JOB_ID\n}\n"
                  "trap again USR1\npython -u train.py\n"),
            Found{"4:advice"});
  EXPECT_THAT(found("submits-itself", head + "sbatch evaluate.sh\n"), IsEmpty());
}

TEST(ScriptTools, a_cluster_needs_a_worker_on_every_node) {
  const std::string head = "#!/bin/bash\n#SBATCH -N 3 --time=1\n";
  EXPECT_EQ(found("cluster-on-one-node", head + "ray start --head\npython -u a.py\n"), Found{"3:time"});
  EXPECT_EQ(
      found("cluster-on-one-node", head + "dask scheduler &\ndask worker tcp://h:8786 &\npython -u a.py\n"),
      Found{"3:time"});
  EXPECT_EQ(found("cluster-on-one-node", head + "start-master.sh\nspark-submit a.py\n"), Found{"3:time"});
  // In a loop over the nodes, with srun, with ssh, or in an unknown script.
  EXPECT_THAT(
      found("cluster-on-one-node", head + "ray start --head\nfor n in $NODES; do\n  srun -w $n ray start "
                                          "--address=$H --block &\ndone\n"),
      IsEmpty());
  EXPECT_THAT(found("cluster-on-one-node", head + "ray start --head\nssh n2 ray start --address=$H\n"),
              IsEmpty());
  EXPECT_THAT(found("cluster-on-one-node", head + "ray start --head\nbash workers.sh\n"), IsEmpty());
  EXPECT_THAT(found("cluster-on-one-node", "#!/bin/bash\n#SBATCH -N 1 --time=1\nray start --head\n"),
              IsEmpty());
}

TEST(ScriptTools, ray_under_srun_needs_block) {
  const std::string head = "#!/bin/bash\n#SBATCH -N 3 --time=1\n";
  EXPECT_EQ(found("cluster-step-ends", head + "srun -n 2 ray start --address=$H &\npython a.py\n"),
            Found{"3:time"});
  EXPECT_EQ(fix_of("cluster-step-ends", head + "srun -n 2 ray start --address=$H &\npython a.py\n"),
            "srun -n 2 ray start --block --address=$H &");
  // In the batch script it stays in the background.
  EXPECT_THAT(found("cluster-step-ends", head + "ray start --head\npython a.py\n"), IsEmpty());
}

TEST(ScriptConflicts, options_that_exclude_each_other_are_reported_at_the_second) {
  EXPECT_EQ(found("options-exclude", "#!/bin/bash\n#SBATCH --mem=8G\n#SBATCH --mem-per-cpu=2G\n./a\n"),
            Found{"3:job"});
  EXPECT_EQ(found("options-exclude",
                  "#!/bin/bash\n#SBATCH --cpus-per-gpu=1\n#SBATCH --gpus=2\n#SBATCH -c 2\n./a\n"),
            Found{"4:job"});
  EXPECT_EQ(
      found("options-exclude", "#!/bin/bash\n#SBATCH --ntasks-per-gpu=1\n#SBATCH --gpus-per-task=1\n./a\n"),
      Found{"3:job"});
  const std::string listed = "#!/bin/bash\n#SBATCH -w n[1-3],m\n";
  EXPECT_EQ(found("options-exclude", listed + "#SBATCH -N 1\n./a\n"), Found{"3:job"});
  EXPECT_EQ(found("options-exclude", listed + "#SBATCH --nodes=1-3\n./a\n"), Found{"3:job"});
  for (const char* count : {"#SBATCH -N 4\n", "#SBATCH -N 2-8\n", ""})
    EXPECT_THAT(found("options-exclude", listed + count + "./a\n"), IsEmpty()) << count;
  EXPECT_THAT(found("options-exclude", "#!/bin/bash\n#SBATCH -w ./hosts\n#SBATCH -N 1\n./a\n"), IsEmpty());
  EXPECT_THAT(found("options-exclude", "#!/bin/bash\n#SBATCH --cpus-per-gpu=1\n#SBATCH -c 2\n./a\n"),
              IsEmpty());
}

TEST(ScriptConflicts, a_script_without_its_interpreter_is_reported) {
  const TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "convert.py", "").ok());
  const LintContext place{.directory = folder.path()};
  EXPECT_EQ(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\nsrun convert.py\n", place),
            Found{"3:job"});
  // srun finds executables in the current folder, the shell does not.
  std::filesystem::permissions(folder.path() / "convert.py", std::filesystem::perms::owner_all);
  EXPECT_THAT(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\nsrun convert.py\n", place), IsEmpty());
  EXPECT_EQ(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\nconvert.py\n", place), Found{"3:job"});
  // Packages install programs with such names, and PATH may contain any folder.
  EXPECT_THAT(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\ngdal_merge.py a\n", place), IsEmpty());
  EXPECT_THAT(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\nexport PATH=$PWD:$PATH\ntrain.py\n"),
              IsEmpty());
  EXPECT_THAT(found("script-as-program", "#!/bin/bash\n#SBATCH -n 1\nsrun ./train.py\n"), IsEmpty());
}

TEST(ScriptValues, placeholders_in_options_are_reported) {
  const std::string form = "#!/bin/bash\n#SBATCH --nodes=     # how many\n#SBATCH --gres=gpu:\n./a\n";
  EXPECT_EQ(found("option-value", form), (Found{"2:job", "3:job"}));
  EXPECT_EQ(found("option-value", "#!/bin/bash\n#SBATCH --time=\n#SBATCH --mem=\n./a\n"),
            (Found{"2:job", "3:job"}));
  // Slurm's interpretation is unknown, and a different rule handles a blank after =.
  EXPECT_THAT(found("option-value", "#!/bin/bash\n#SBATCH --job-name= \n#SBATCH --account=\n./a\n"),
              IsEmpty());
  EXPECT_THAT(found("option-value", "#!/bin/bash\n#SBATCH --nodes= 2\n./a\n"), IsEmpty());
}

TEST(ScriptEndings, an_assignment_to_a_dollar_name_is_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\n";
  EXPECT_EQ(found("assignment-blank", head + "$root = \"/data\"\n./a --root $root\n"), Found{"3:job"});
  EXPECT_EQ(found("assignment-blank", head + "$root=/data\n./a --root $root\n"), Found{"3:job"});
  EXPECT_THAT(found("assignment-blank", head + "$RUN ./a\n$root/a = b\n\"$RUN\" --n=1\n${RUN} x\n"),
              IsEmpty());
}

TEST(ScriptRanks, mpirun_under_srun_is_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=8\n";
  EXPECT_EQ(found("mpirun-per-task", head + "srun mpirun -np 16 ./a\n"), Found{"3:job"});
  EXPECT_EQ(found("mpirun-per-task",
                  head + "srun --nodes=2 \\\n  apptainer exec --rocm --cwd /w a.sif \\\n  mpiexec ./a\n"),
            Found{"5:job"});
  EXPECT_THAT(found("mpirun-per-task", head + "srun -n 1 mpirun -np 16 ./a\nmpirun ./a\nsrun ./a\n"),
              IsEmpty());
  EXPECT_THAT(found("mpirun-per-task", head + "srun mpirun -np 1 ./a\n"), IsEmpty());
  EXPECT_THAT(found("mpirun-per-task", "#!/bin/bash\n#SBATCH -n 1\nsrun mpirun ./a\n"), IsEmpty());
}

TEST(ScriptNodes, single_node_torchrun_in_a_multi_node_job_is_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=4\n";
  EXPECT_EQ(found("agent-on-first-node", head + "torchrun --nproc_per_node 4 train.py\n"), Found{"3:time"});
  EXPECT_EQ(found("agent-on-first-node",
                  head + "apptainer exec --nv a.sif /bin/bash -c \"\n  torchrun train.py --tp 4;\n\"\n"),
            Found{"4:time"});
  EXPECT_EQ(found("agent-on-first-node", head + "torchrun --nnodes=4 train.py\n"), Found{"3:job"});
  EXPECT_THAT(found("agent-on-first-node", head + "srun torchrun train.py\n"), IsEmpty());
  EXPECT_THAT(found("agent-on-first-node", head + "./launch.sh\ntorchrun train.py\n"), IsEmpty());
  EXPECT_THAT(found("agent-on-first-node", "#!/bin/bash\n#SBATCH -N 1\ntorchrun train.py\n"), IsEmpty());
}

TEST(ScriptPlaceholders, an_environment_placeholder_is_minor_with_a_container) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\nconda activate your_env_name\n";
  EXPECT_EQ(found("placeholder", head + "python train.py\n"), Found{"3:job"});
  EXPECT_EQ(found("placeholder", head + "srun singularity exec --nv a.sif python3 train.py\n"),
            Found{"3:advice"});
  EXPECT_EQ(found("placeholder", head + "singularity exec a.sif python3 prepare.py\npython train.py\n"),
            Found{"3:job"});
}

TEST(ScriptLogs, slurm_creates_log_folders_since_23_02) {
  const std::string plain = "#!/bin/bash\n#SBATCH -o logs/%j.out\n./a\n";
  const std::string each = "#!/bin/bash\n#SBATCH -o logs/%x/%A/%a.out\n./a\n";
  EXPECT_EQ(found("log-folder", plain), Found{"2:job"});
  EXPECT_EQ(found("log-folder", plain, {.slurm = 2205}), Found{"2:job"});
  EXPECT_THAT(found("log-folder", plain, {.slurm = 2302}), IsEmpty());
  // The second form probably worked before.
  EXPECT_EQ(found("log-folder", each), Found{"2:time"});
  EXPECT_EQ(found("log-folder", each, {.slurm = 2205}), Found{"2:job"});
  EXPECT_THAT(found("log-folder", each, {.slurm = 2411}), IsEmpty());
}

TEST(ScriptEndings, background_work_without_wait_is_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1\n";
  EXPECT_EQ(found("no-wait", head + "python -u a.py 1 &\npython -u a.py 2\n"), Found{"3:job"});
  EXPECT_THAT(found("no-wait", head + "python -u a.py 1 &\npython -u a.py 2\nwait\n"), IsEmpty());
  // A server for the other commands.
  EXPECT_THAT(found("no-wait", head + "python -u server.py &\npython -u client.py\n"), IsEmpty());
}

TEST(ScriptEndings, files_on_the_node_local_disk_from_before_the_job_stay_there) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1\n";
  EXPECT_THAT(found("results-left", head + "cd /local/scratch/me/project\npython -u a.py\n"), IsEmpty());
  EXPECT_EQ(
      found("results-left", head + "cp -r code /local/scratch/me\ncd /local/scratch/me/code\npython a.py\n"),
      Found{"5:job"});
}

TEST(ScriptPlaceholders, self_describing_placeholders_are_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1\n";
  EXPECT_EQ(found("placeholder", head + "ROOT=\"todo:ROOT\"\n. $ROOT/env.sh\n"), Found{"3:job"});
  EXPECT_EQ(found("placeholder", head + "D=/path/to/data\npython -u a.py $D\n"), Found{"3:job"});
  EXPECT_EQ(found("placeholder", head + "cd /scratch/NETID/DIRECTORY\n"), Found{"3:job"});
  EXPECT_THAT(found("placeholder", head + "D=/path/to/data\npython -u a.py\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", head + "cd /scratch/DATA\n"), IsEmpty());
}

}  // namespace
}  // namespace stoker::script_lint
