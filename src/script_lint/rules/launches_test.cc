#include <optional>
#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "script_lint/launches/launch_check.h"
#include "script_lint/test_lint.h"

namespace stoker::script_lint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRules[] = {"separate-trainings", "rendezvous", "agent-per-task", "nested-launcher"};
const std::string kTwoNodes =
    "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n";
const std::string kDynamic = " --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29400 ";

// "rule" of each finding of the launch rules, in a folder with these files.
class Scripts {
 public:
  void add(const std::string& name, const std::string& text) {
    STOKER_CHECK(write_file(folder_ / name, text).ok());
  }
  std::vector<std::string> found(const std::string& text) const {
    std::vector<std::string> rules;
    for (const ScriptFinding& each : lint(text)) rules.push_back(each.rule);
    return rules;
  }
  std::vector<ScriptFinding> lint(const std::string& text) const {
    std::vector<ScriptFinding> own;
    const LintContext context{.directory = folder_.path()};
    for (const ScriptFinding& each : lint_script("a.sh", text, context).findings) {
      if (std::find(std::begin(kRules), std::end(kRules), each.rule) != std::end(kRules)) own.push_back(each);
    }
    return own;
  }
  // Problems of a job file's command.
  std::vector<std::string> in_job(const std::string& yaml) const {
    STOKER_CHECK(write_file(folder_ / "job.yaml", yaml).ok());
    const auto job = job::load(folder_ / "job.yaml", {.current_directory = folder_.path()});
    STOKER_CHECK(job.ok());
    std::vector<std::string> rules;
    for (const LaunchProblem& each : find_launch_problems(*job, {})) rules.emplace_back(each.rule);
    return rules;
  }

 private:
  TempDirectory folder_;
};

TEST(Launches, copies_without_the_number_of_nodes_are_separate_trainings) {
  const Scripts scripts;
  for (const char* command :
       {"srun torchrun --nproc-per-node 4 t.py", "srun torchrun --standalone --nproc-per-node 4 t.py",
        "srun python -m torch.distributed.run --nproc_per_node=4 t.py",
        "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 torchrun --nnodes 1 --nproc_per_node 4 t.py",
        "srun bash -c 'torchrun --nproc_per_node=4 t.py'", "srun accelerate launch --num_processes 4 t.py",
        "srun deepspeed t.py", "mpirun -np 2 -npernode 1 torchrun --nproc_per_node=4 t.py",
        "srun env NCCL_DEBUG=WARN torchrun --nproc_per_node=4 t.py",
        "CMD=\"torchrun --nproc_per_node=4 t.py\"\nsrun $CMD",
        "CMD=\"torchrun --nproc_per_node=4 t.py\"\nsrun bash -c \"$CMD\"",
        "ARGS=(--nproc_per_node 4 --max-restarts 0)\nsrun torchrun \"${ARGS[@]}\" t.py",
        "srun apptainer exec --nv a.sif torchrun --nproc_per_node=4 t.py"})
    EXPECT_THAT(scripts.found(kTwoNodes + command + "\n"), ElementsAre("separate-trainings")) << command;
}

TEST(Launches, the_text_names_the_starter_the_copies_and_the_option) {
  const Scripts scripts;
  const auto found = scripts.lint(kTwoNodes + "srun torchrun --nproc-per-node 4 t.py --lr 1\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].level, Level::job);
  EXPECT_EQ(found[0].text,
            "srun starts 2 copies of torchrun, and each one trains separately (--nnodes is 1)");
  EXPECT_EQ(
      found[0].fix,
      "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 "
      "--rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=\"$(scontrol show hostnames "
      "\"$SLURM_JOB_NODELIST\" | head -n 1):$((10000 + SLURM_JOB_ID % 20000))\" t.py --lr 1");
  // The cure has no finding.
  EXPECT_THAT(scripts.found(kTwoNodes + found[0].fix.english() + "\n"), IsEmpty());
}

TEST(Launches, complete_launches_have_no_findings) {
  const Scripts scripts;
  for (const std::string& command : std::vector<std::string>{
           "srun torchrun --nnodes=2 --nproc-per-node=4" + kDynamic + "t.py",
           "srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=gpu" + kDynamic + "t.py",
           "srun torchrun --nnodes=${SLURM_JOB_NUM_NODES} --nproc-per-node=4" + kDynamic + "t.py",
           "srun torchrun --nnodes=1:2 --nproc-per-node=4" + kDynamic + "t.py",
           "srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$HEAD t.py'",
           "srun bash -c \"torchrun --nnodes=2 --node_rank=\\$SLURM_NODEID --master_addr=$HEAD t.py\"",
           "srun accelerate launch --num_machines 2 --num_processes 8 --rdzv_backend c10d --main_process_ip "
           "$HEAD t.py",
           "srun bash -c 'accelerate launch --num_machines 2 --num_processes 8 --machine_rank $SLURM_PROCID "
           "--main_process_ip $HEAD t.py'",
           "deepspeed --hostfile=hosts t.py", "srun --kill-on-bad-exit=1 python t.py",
           "mpirun -np 8 python t.py",
           // On one node, or one after the other.
           "srun --nodes=1 --ntasks=1 torchrun --nproc-per-node=4 t.py",
           "srun -N1 -n1 torchrun --standalone t.py",
           "for n in $NODES; do srun -N1 -n1 -w $n torchrun --nproc-per-node=4 t.py & done\nwait",
           // A sweep: each task has separate values.
           "srun bash -c 'torchrun --standalone --nproc-per-node=4 t.py --seed $SLURM_PROCID'",
           "srun bash -c 'CONF=configs/$SLURM_NODEID.yaml; torchrun --nproc-per-node=4 t.py $CONF'",
           // Unknown options.
           "srun torchrun $DISTRIBUTED_ARGS t.py", "srun torchrun \"${DISTRIBUTED_ARGS[@]}\" t.py",
           "export PET_NNODES=2 PET_RDZV_BACKEND=c10d\nsrun torchrun --nproc-per-node=4 t.py",
           "srun accelerate launch --config_file $CONFIG t.py",
           "srun accelerate launch --config_file missing.yaml t.py",
           // Through ssh, each with its rank.
           "for h in a b; do ssh $h \"torchrun --nnodes=2 --node_rank=$i --master_addr=a t.py\" & "
           "done\nwait"})
    EXPECT_THAT(scripts.found(kTwoNodes + command + "\n"), IsEmpty()) << command;
  // On one node torchrun needs nothing else.
  EXPECT_THAT(scripts.found("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\nsrun torchrun "
                            "--nproc-per-node=4 t.py\n"),
              IsEmpty());
}

TEST(Launches, copies_that_never_connect_are_reported) {
  const Scripts scripts;
  for (const char* command :
       {"srun torchrun --nnodes=2 --nproc-per-node=4 t.py",                           // no address
        "srun torchrun --nnodes=2 --master_addr=$HEAD t.py",                          // no rank
        "srun torchrun --nnodes=2 --node_rank=0 --master_addr=$HEAD t.py",            // equal ranks
        "srun torchrun --nnodes=4 --rdzv_backend=c10d --rdzv_endpoint=$HEAD:1 t.py",  // too few copies
        "srun -n 4 --ntasks-per-node=2 torchrun --nnodes=2 --nproc_per_node=1 --rdzv_backend=c10d "
        "--rdzv_endpoint=$HEAD:1 t.py",  // too many
        "S=\"singularity run --nv i.sif\"\nL=\"torchrun --nnodes 4 \\\n  --master_addr $HEAD\"\nsrun $S $L "
        "t.py",
        "srun accelerate launch --num_machines 2 --num_processes 8 t.py",  // no address
        "srun accelerate launch --num_machines 2 --num_processes 8 --main_process_ip $HEAD t.py",  // no rank
        "srun accelerate launch --num_machines 2 --num_processes 5 --rdzv_backend c10d --main_process_ip "
        "$HEAD "
        "t.py"})
    EXPECT_THAT(scripts.found(kTwoNodes + command + "\n"), ElementsAre("rendezvous")) << command;
}

TEST(Launches, a_rank_that_is_set_before_the_tasks_start_is_reported) {
  Scripts scripts;
  const std::string places = " --nnodes=2 --master_addr=$HEAD --node_rank=";
  const std::string accelerate =
      "accelerate launch --num_machines 2 --num_processes 8 --main_process_ip $HEAD --machine_rank ";
  scripts.add("inner.sh", "torchrun" + places + "$NODE_RANK t.py\n");
  scripts.add("own.sh", "NODE_RANK=$SLURM_NODEID\ntorchrun" + places + "$NODE_RANK t.py\n");
  const std::string early = "NODE_RANK=$SLURM_NODEID\n";
  for (const std::string& commands :
       {early + "srun torchrun" + places + "$NODE_RANK t.py",
        early + "srun torchrun" + places + "\"$NODE_RANK\" t.py",
        "R=$SLURM_PROCID\n" + early + "export N=$R\nsrun " + accelerate + "$N t.py",
        early + "srun bash -c 'torchrun" + places + "$NODE_RANK t.py'",
        early + "L=\"" + accelerate + "$NODE_RANK\"\nsrun $L t.py",
        early + "L=\"" + accelerate + "$NODE_RANK\"\nsrun bash -c \"$L t.py\"",
        "export " + early + "srun bash inner.sh"})
    EXPECT_THAT(scripts.found(kTwoNodes + commands + "\n"), ElementsAre("rendezvous")) << commands;
  EXPECT_EQ(scripts.lint(kTwoNodes + early + "srun torchrun" + places + "$NODE_RANK t.py\n")[0].text,
            "--node-rank is 0 in all 2 copies of torchrun: $NODE_RANK is set before srun starts them");
  for (const std::string& commands :
       {"srun bash -c 'NODE_RANK=$SLURM_NODEID; torchrun" + places + "$NODE_RANK t.py'",
        "srun bash -c 'torchrun" + places + "$SLURM_NODEID t.py'", std::string("srun bash own.sh"),
        early + "srun bash own.sh", "L=\"" + accelerate + "\\$SLURM_PROCID\"\nsrun bash -c \"$L t.py\"",
        "L='" + accelerate + "$SLURM_PROCID'\nsrun bash -c \"$L t.py\""})
    EXPECT_THAT(scripts.found(kTwoNodes + commands + "\n"), IsEmpty()) << commands;
}

TEST(Launches, the_configuration_of_accelerate_counts) {
  Scripts scripts;
  scripts.add("one.yaml", "compute_environment: LOCAL_MACHINE\nnum_machines: 1\nnum_processes: 4\n");
  scripts.add("two.yaml", "num_machines: 2\nmachine_rank: 0\nmain_process_ip: 10.0.0.1\nnum_processes: 8\n");
  scripts.add("c10d.yaml",
              "num_machines: 2\nmain_process_ip: 10.0.0.1\nrdzv_backend: c10d\nnum_processes: 8\n");
  const auto found = [&](const std::string& options) {
    return scripts.found(kTwoNodes + "srun accelerate launch --config_file " + options + " t.py\n");
  };
  EXPECT_THAT(found("one.yaml"), ElementsAre("separate-trainings"));
  EXPECT_THAT(found("two.yaml"), ElementsAre("rendezvous"));
  EXPECT_THAT(found("c10d.yaml"), IsEmpty());
}

TEST(Launches, a_called_script_is_read) {
  Scripts scripts;
  scripts.add("alone.sh", "#!/bin/bash\nmodule load cuda\n\ntorchrun --nproc_per_node=4 t.py\n");
  scripts.add("all.sh", "torchrun --nnodes=$NODES --nproc_per_node=4" + kDynamic + "t.py\n");
  scripts.add("any.sh", "#!/bin/bash\nsource env.sh\nexec \"$@\"\n");
  scripts.add("outer.sh", "#!/bin/bash\nsrun ./alone.sh\n");
  for (const char* command : {"srun bash alone.sh", "srun ./alone.sh", "srun $SLURM_SUBMIT_DIR/alone.sh",
                              "srun bash -c 'cd . && bash alone.sh'", "bash outer.sh",
                              "srun ./any.sh torchrun --nproc_per_node=4 t.py"})
    EXPECT_THAT(scripts.found(kTwoNodes + command + "\n"), ElementsAre("separate-trainings")) << command;
  EXPECT_THAT(scripts.found(kTwoNodes + "NODES=$SLURM_NNODES\nsrun bash all.sh\n"), IsEmpty());
  EXPECT_THAT(scripts.found(kTwoNodes + "srun bash missing.sh\n"), IsEmpty());
  const auto found = scripts.lint(kTwoNodes + "\nsrun bash alone.sh\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 6u);
  EXPECT_EQ(found[0].text,
            "alone.sh, line 4: srun starts 2 copies of torchrun, and each one trains separately "
            "(--nnodes is 1)");
}

TEST(Launches, files_that_changed_later_are_not_read) {
  const TempDirectory folder;
  const Path called = folder / "alone.sh";
  const Path config = folder / "one.yaml";
  ASSERT_TRUE(write_file(called, "torchrun --nproc_per_node=4 t.py\n").ok());
  ASSERT_TRUE(write_file(config, "num_machines: 1\nnum_processes: 4\n").ok());
  struct stat about{};
  ASSERT_EQ(::stat(called.c_str(), &about), 0);
  const double written = static_cast<double>(about.st_mtim.tv_sec);
  for (const char* command : {"srun bash alone.sh", "srun accelerate launch --config_file one.yaml t.py"}) {
    const auto count = [&](std::optional<double> as_of) {
      const LintContext context{.directory = folder.path(), .as_of = as_of};
      const auto found = lint_script("a.sh", kTwoNodes + command + "\n", context).findings;
      return std::count_if(found.begin(), found.end(),
                           [](const ScriptFinding& each) { return each.rule == "separate-trainings"; });
    };
    EXPECT_EQ(count(std::nullopt), 1) << command;
    EXPECT_EQ(count(written + 10), 1) << command;
    EXPECT_EQ(count(written - 10), 0) << command;
  }
}

TEST(Launches, separate_trainings_are_counted) {
  const Scripts scripts;
  EXPECT_EQ(scripts.lint(kTwoNodes + "srun torchrun --nproc-per-node 4 t.py\n").at(0).copies,
            (LauncherCopies{.count = 2, .per_node = 1}));
  EXPECT_EQ(scripts.lint(kTwoNodes + "srun -n 8 --ntasks-per-node=4 torchrun t.py\n").at(0).copies,
            (LauncherCopies{.count = 8, .per_node = 4}));
  EXPECT_EQ(scripts.lint(kTwoNodes + "srun torchrun --nnodes=2 t.py\n").at(0).copies, LauncherCopies{});
}

TEST(Launches, rules_about_the_start_of_ranks_are_known) {
  std::vector<std::string_view> all;
  for (const RuleText& rule : rule_texts()) all.push_back(rule.name);
  std::size_t count = 0;
  for (const std::string_view name : all) count += is_launch_rule(name) ? 1 : 0;
  EXPECT_EQ(count, 8u);
  for (const char* rule : kRules) EXPECT_TRUE(is_launch_rule(rule)) << rule;
  EXPECT_FALSE(is_launch_rule("fixed-port"));
}

TEST(Launches, scripts_that_call_each_other_end) {
  Scripts scripts;
  scripts.add("a.sh", "bash b.sh\n");
  scripts.add("b.sh", "bash a.sh\nbash b.sh\n");
  EXPECT_THAT(scripts.found(kTwoNodes + "srun bash b.sh\n"), IsEmpty());
}

TEST(Launches, several_agents_on_a_node_are_reported_with_an_edit) {
  const Scripts scripts;
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n";
  const auto found = scripts.lint(head + "srun torchrun --nnodes=2 --nproc_per_node=4" + kDynamic + "t.py\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "agent-per-task");
  EXPECT_EQ(found[0].edits[0].text, " --ntasks=$SLURM_NNODES --ntasks-per-node=1");
  // One agent per GPU, each with one rank.
  EXPECT_THAT(scripts.found(head + "srun torchrun --nnodes=8 --nproc_per_node=1" + kDynamic + "t.py\n"),
              IsEmpty());
}

TEST(Launches, variables_of_a_task_in_double_quotes_are_expanded_too_early) {
  const auto early = [](const std::string& command) {
    return found("expanded-too-early", kTwoNodes + command + "\n");
  };
  EXPECT_THAT(early("srun bash -c \"torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$H t.py\""),
              ElementsAre("5:job"));
  EXPECT_THAT(early("srun bash -c \"export RANK=$SLURM_PROCID; python t.py\""), ElementsAre("5:job"));
  EXPECT_THAT(early("srun bash -c \"export RANK=\\$SLURM_PROCID; python t.py\""), IsEmpty());
  EXPECT_THAT(early("srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$H t.py'"),
              IsEmpty());
}

TEST(Launches, agents_of_any_kind_on_the_first_node_only_are_reported) {
  const auto first = [](const std::string& command) {
    return found("agent-on-first-node", kTwoNodes + command + "\n");
  };
  EXPECT_THAT(first("accelerate launch --num_machines 2 --num_processes 8 t.py"), ElementsAre("5:job"));
  EXPECT_THAT(first("accelerate launch t.py"), ElementsAre("5:time"));
  EXPECT_THAT(first("deepspeed t.py"), ElementsAre("5:time"));
  EXPECT_THAT(first("deepspeed --hostfile hosts t.py"), IsEmpty());
  EXPECT_THAT(first("accelerate launch --config_file two.yaml t.py"), IsEmpty());
}

TEST(JobLaunches, launchers_in_every_rank_are_reported) {
  Scripts scripts;
  scripts.add("alone.sh", "torchrun --nproc_per_node=4 t.py\n");
  const std::string two = "\nresources: {nodes: 2, ranks_per_node: 1}\n";
  for (const char* run :
       {"torchrun --nproc-per-node 4 t.py", "torchrun --standalone t.py", "accelerate launch t.py",
        "deepspeed t.py", "python -m torch.distributed.run --nproc_per_node=4 t.py", "bash alone.sh",
        "{shell: 'torchrun --nproc-per-node 4 t.py'}", "{shell: 'cd . && exec bash alone.sh'}"})
    EXPECT_THAT(scripts.in_job(std::string("run: ") + run + two), ElementsAre("separate-trainings")) << run;
  for (const char* run : {"srun python t.py", "horovodrun -np 8 python t.py", "mpirun -np 8 python t.py",
                          "srun torchrun --nproc-per-node 4 t.py", "{shell: 'srun python t.py'}"})
    EXPECT_THAT(scripts.in_job(std::string("run: ") + run + two), ElementsAre("nested-launcher")) << run;
  EXPECT_THAT(scripts.in_job("run: torchrun --nproc-per-node 4 t.py\nresources: {ranks_per_node: 4}\n"),
              ElementsAre("agent-per-task"));
  EXPECT_THAT(scripts.in_job("run: torchrun --nnodes 2 --nproc-per-node 4 t.py\n"),
              ElementsAre("rendezvous"));
}

TEST(JobLaunches, commands_that_fit_the_ranks_have_no_findings) {
  const Scripts scripts;
  const std::string two = "\nresources: {nodes: 2, ranks_per_node: 1}\n";
  EXPECT_THAT(scripts.in_job("run: python t.py" + two), IsEmpty());
  EXPECT_THAT(scripts.in_job("run: python t.py\nlauncher: torchrun" + two), IsEmpty());
  EXPECT_THAT(scripts.in_job("run: torchrun --nproc-per-node 4 t.py\n"), IsEmpty());
  EXPECT_THAT(scripts.in_job("run: {shell: 'torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$NODE_RANK "
                             "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT t.py'}" +
                             two),
              IsEmpty());
  EXPECT_THAT(
      scripts.in_job("run: {shell: 'torchrun --standalone --nproc-per-node=4 t.py --seed $RANK'}" + two),
      IsEmpty());
}

TEST(JobLaunches, the_cure_starts_the_same_ranks) {
  const TempDirectory folder;
  ASSERT_TRUE(
      write_file(folder / "job.yaml", "run: torchrun --nproc-per-node 4 t.py --lr 1\nresources: {nodes: 2}\n")
          .ok());
  const auto job = job::load(folder / "job.yaml", {.current_directory = folder.path()});
  ASSERT_TRUE(job.ok());
  const auto problems = find_launch_problems(*job, {});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].text,
            "Stoker starts 2 copies of torchrun, and each one trains separately (--nnodes is 1)");
  EXPECT_EQ(problems[0].fix, "run: python t.py --lr 1    resources: {nodes: 2, ranks_per_node: 4}");
}

TEST(Signals, traps_that_never_run_are_reported) {
  const auto traps = [](const std::string& text) {
    return found("trap-never-runs", "#!/bin/bash\n" + text + "\n");
  };
  const std::string head = "#SBATCH --signal=B:USR1@40\n";
  EXPECT_THAT(traps(head + "trap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python t.py"),
              ElementsAre("3:job"));
  EXPECT_THAT(traps(head + "again() { sbatch $0; }\ntrap again SIGUSR1\npython t.py"), ElementsAre("4:job"));
  EXPECT_THAT(traps(head + "trap 'touch stop' USR1\nsrun python t.py"), ElementsAre("3:time"));
  EXPECT_THAT(traps(head + "trap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python t.py &\nwait"),
              IsEmpty());
  EXPECT_THAT(traps(head + "trap 'scontrol requeue $SLURM_JOB_ID' USR2\nsrun python t.py &\nwait"),
              ElementsAre("3:job"));
  EXPECT_THAT(
      traps("#SBATCH --signal=USR1@40\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python t.py &\nwait"),
      ElementsAre("3:job"));
  EXPECT_THAT(traps("#SBATCH --signal=USR1@40\nsrun bash -c 'trap save USR1; python t.py & wait'"),
              IsEmpty());
  EXPECT_THAT(traps("trap 'rm -rf tmp' EXIT\nsrun python t.py"), IsEmpty());
  EXPECT_THAT(traps(head + "trap 'rm -rf tmp' EXIT\nsrun python t.py"), IsEmpty());
}

TEST(Containers, words_after_run_belong_to_the_runscript) {
  const auto programs = [](const std::string& command) {
    std::vector<std::string> names;
    const std::unique_ptr<Script> script = read_script("a.sh", command + "\n");
    for (const ProgramCall& call : script->calls) names.push_back(call.program);
    return names;
  };
  EXPECT_THAT(programs("apptainer run --nv image.sif /data/"), ElementsAre("apptainer"));
  EXPECT_THAT(programs("singularity run image.sif results"), ElementsAre("singularity"));
  EXPECT_THAT(programs("singularity run image.sif python t.py"), ElementsAre("singularity", "python"));
  EXPECT_THAT(programs("apptainer exec image.sif ./tool /data/"), ElementsAre("apptainer", "tool"));
}

}  // namespace
}  // namespace stoker::script_lint
