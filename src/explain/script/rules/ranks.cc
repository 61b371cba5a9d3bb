// Rules over the tasks of a job: how many there are, what each is told, what each may use.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

// The program behind a launcher; null when it is none that could be told.
const Call* started_by(const Script& script, const Call& launcher) {
  const std::size_t index = static_cast<std::size_t>(&launcher - script.calls.data());
  const Call* innermost = nullptr;
  for (const Call& call : script.calls) {
    if (call.context.launcher == index) innermost = &call;
  }
  return innermost;
}

bool sets_tasks(const Call& launcher) {
  constexpr std::array<std::string_view, 5> kLong = {"--ntasks", "--ntasks-per-node", "--tasks-per-node",
                                                     "-n", "-N"};
  if (std::any_of(kLong.begin(), kLong.end(), [&](std::string_view name) { return launcher.has(name); }))
    return true;
  return std::any_of(launcher.words.begin(), launcher.words.end(), [](const std::string& word) {
    return (word.starts_with("-n") || word.starts_with("-N")) && word.size() > 2 && word[2] >= '0' &&
           word[2] <= '9';
  });
}

// By a rendezvous of torch's own, wherever it is named: then what is said of a rank is not read. That of the
// kind "static" reads it.
bool agrees_on_ranks(const Call& call) {
  return std::any_of(call.words.begin(), call.words.end(), [&](const std::string& word) {
    for (const char* name : {"--rdzv_backend", "--rdzv-backend"}) {
      const std::size_t at = word.find(name);
      if (at == std::string::npos) continue;
      const std::string kind =
          word.size() > at + 15 ? word.substr(at + 15, 6) : call.option(name).value_or("");
      return kind != "static";
    }
    return false;
  });
}

void find_too_early(const Script& script, Report& report) {
  constexpr std::array<std::string_view, 4> kOfTask = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
                                                       "PMI_RANK"};
  const bool has_several = script.request.tasks() > 1 || script.request.nodes() > 1;
  if (!has_several) return;
  for (const Call& call : script.calls) {
    // Inside the quotes of bash -c it is the task's own shell that replaces them.
    if (!call.context.launcher || call.command != script.calls[*call.context.launcher].command) continue;
    const bool is_told =
        is_python(call.program) || is_agent(call) || call.program == "bash" || call.program == "sh";
    if (!is_told || agrees_on_ranks(call)) continue;
    for (const bash::Word* word : call.typed) {
      for (const bash::Piece& piece : word->pieces) {
        const bool is_early = piece.kind == bash::PieceKind::variable &&
                              std::find(kOfTask.begin(), kOfTask.end(), piece.text) != kOfTask.end();
        if (!is_early) continue;
        report
            .add(piece.span,
                 report.say(
                     "${} is replaced before srun starts: every task is told that of the batch script, 0",
                     piece.text))
            .fix = format("srun bash -c '{}'", script.at(call.span));
      }
    }
  }
}

// "export RANK=$SLURM_PROCID" where no task reads it but the batch script.
void find_ranks_of_script(const Script& script, Report& report) {
  if (script.request.tasks() < 2) return;
  for (const Setting& setting : script.settings) {
    const bool is_rank = (setting.name == "RANK" && setting.value == "$SLURM_PROCID") ||
                         (setting.name == "LOCAL_RANK" && setting.value == "$SLURM_LOCALID") ||
                         (setting.name == "NODE_RANK" && setting.value == "$SLURM_NODEID");
    const bool is_exported = setting.is_exported || script.names.is_exported(setting.name);
    if (!is_rank || !is_exported || setting.context.launcher || setting.is_of_command ||
        !setting.context.function.empty())
      continue;
    const bool is_given = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& call) {
      const Call* launcher = script.launcher_of(call);
      return launcher != nullptr && call.span.begin > setting.assignment->span.begin &&
             is_python(call.program) && is_work(call) && !is_agent(call);
    });
    if (!is_given) continue;
    report
        .add(setting.assignment->span,
             report.say("{} is set before srun starts: every task is told that of the batch script, 0",
                        setting.name))
        .fix = format("srun bash -c 'export {}={}; exec …'", setting.name, setting.value);
  }
}

void find_replaced_too_early(const Script& script, Report& report) {
  find_too_early(script, report);
  find_ranks_of_script(script, report);
}

void find_agent_per_task(const Script& script, Report& report) {
  const auto tasks = script.request.tasks_per_node();
  if (!tasks || *tasks < 2) return;
  for (const Call& call : script.calls) {
    const Call* launcher = script.launcher_of(call);
    if (launcher == nullptr || launcher->program != "srun" || sets_tasks(*launcher) ||
        call.program == "deepspeed")
      continue;
    const bool is_torch = call.program == "torchrun" || (is_python(call.program) && is_agent(call));
    const std::string processes =
        call.option("--nproc_per_node").value_or(call.option("--nproc-per-node").value_or("1"));
    if (!is_torch || processes == "1") continue;
    const std::size_t at = launcher->program_word->span.end;
    report.replace(
        {at, at},
        report.say("{} tasks on each node start a torchrun each, and each of those {} ranks: one for "
                   "each node is enough",
                   *tasks, printable(processes)),
        " --ntasks=$SLURM_NNODES --ntasks-per-node=1");
  }
}

// "srun -n 8 mpirun -n 8 ./a": eight programs of eight ranks each.
void find_mpirun_per_task(const Script& script, Report& report) {
  if (script.request.tasks() < 2) return;
  for (const Call& call : script.calls) {
    const Call* launcher = script.launcher_of(call);
    if (launcher == nullptr || launcher->program != "srun" || !is_launcher(call.program) ||
        call.program == "srun")
      continue;
    const auto is_one = [](const Call& starter, std::initializer_list<std::string_view> names) {
      return std::any_of(names.begin(), names.end(),
                         [&](std::string_view name) { return starter.option(name) == "1"; });
    };
    const bool is_single = is_one(*launcher, {"--ntasks", "-n", "--ntasks-per-node"}) ||
                           launcher->has("-n1") || is_one(call, {"-n", "-np", "--np"});
    if (is_single) continue;
    report
        .add(call.program_word->span,
             report.say("srun starts {} once for each of {} tasks, and each of them starts all ranks again",
                        call.program, script.request.tasks()))
        .fix = report.say("one of the two: srun, or {} without srun", call.program);
  }
}

// Programs for which one core is enough.
bool is_light(const Call* call) {
  if (call == nullptr) return false;
  constexpr std::array<std::string_view, 16> kNames = {
      "hostname", "echo", "mkdir", "cp",    "rm",       "tar",  "ls",  "nvidia-smi",
      "rsync",    "date", "cat",   "sleep", "rocm-smi", "true", "pip", "virtualenv"};
  return std::find(kNames.begin(), kNames.end(), call->program) != kNames.end();
}

void find_lost_cpus(const Script& script, Report& report) {
  const auto cpus = script.request.number("--cpus-per-task");
  if (!cpus || *cpus < 2 || script.mentions("SRUN_CPUS_PER_TASK")) return;
  for (const Call& call : script.calls) {
    const bool says = call.has("--cpus-per-task") || call.has("-c") || call.has("--exact") ||
                      call.has("--overlap") ||
                      std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
                        return word.starts_with("-c") && word.size() > 2 && word[2] >= '0' && word[2] <= '9';
                      });
    if (call.program != "srun" || says || call.context.is_substituted || is_light(started_by(script, call)))
      continue;
    const std::size_t at = call.program_word->span.end;
    report.replace(
        {at, at},
        report.say(
            "srun of Slurm 22.05 to 23.02 does not take over --cpus-per-task={}: each task gets 1 core",
            *cpus),
        " --cpus-per-task=$SLURM_CPUS_PER_TASK");
  }
}

void find_lonely_ranks(const Script& script, Report& report) {
  if (script.request.tasks() < 2 && script.request.nodes() < 2) return;
  if (script.mentions("SLURM_KILL_BAD_EXIT")) return;
  for (const Call& call : script.calls) {
    const Call* program = call.program == "srun" ? started_by(script, call) : nullptr;
    if (program == nullptr || (!is_agent(*program) && !(is_python(program->program) && is_work(*program))))
      continue;
    const bool says = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.starts_with("--kill-on-bad-exit") || word.starts_with("-K");
    });
    const bool is_one = call.option("--ntasks") == "1" || call.option("-n") == "1" || call.has("-n1");
    if (says || is_one) continue;
    const std::size_t at = call.program_word->span.end;
    report.replace(
        {at, at},
        report.say(
            "without --kill-on-bad-exit the other ranks of a failed one wait until the job's time is over"),
        " --kill-on-bad-exit=1");
  }
}

bool is_distributed(const Script& script) {
  return script.mentions("MASTER_ADDR") || script.mentions("MASTER_PORT") || script.mentions("nccl") ||
         script.mentions("ddp") || script.mentions("torch");
}

void find_tasks_and_gpus(const Script& script, Report& report) {
  const auto tasks = script.request.tasks_per_node();
  const auto gpus = script.request.gpus_per_node();
  if (!tasks || !gpus || *gpus == 0 || *tasks < 2 || *tasks == *gpus || !is_distributed(script)) return;
  for (const Call& call : script.calls) {
    const Call* launcher = script.launcher_of(call);
    if (launcher == nullptr || launcher->program != "srun" || sets_tasks(*launcher) || is_agent(call) ||
        !is_python(call.program) || !is_work(call))
      continue;
    report
        .add(call.span,
             *tasks <= *gpus
                 ? report.say("{} tasks on each node leave {} of {} GPUs idle", *tasks, *gpus - *tasks, *gpus)
             : *gpus == 1 ? report.say("{} tasks on each node share 1 GPU: one that takes the number of "
                                       "its task finds none",
                                       *tasks)
                          : report.say("{} tasks on each node share {} GPUs: one that takes the number "
                                       "of its task finds none",
                                       *tasks, *gpus))
        .fix = format("#SBATCH --ntasks-per-node={}", *gpus);
    return;
  }
}

void find_unused_tasks(const Script& script, Report& report) {
  if (script.request.tasks() < 2) return;
  for (const char* word : {"srun", "mpi", "parallel", "ssh", "SLURM_NTASKS", "ray ", "dask", "deepspeed",
                           "horovod", "multiprocessing", "SLURM_TASKS", "sbatch", "SLURM_NPROCS", "julia",
                           "hostfile", "-n ", "accelerate", "torchrun", "distributed"}) {
    if (script.mentions(word)) return;
  }
  const auto work = std::find_if(script.calls.begin(), script.calls.end(), [](const Call& call) {
    return is_python(call.program) && is_work(call) && !call.context.is_background && call.context.loops == 0;
  });
  if (work == script.calls.end()) return;
  report
      .add(work->span,
           report.say("{} tasks are asked for, and nothing but srun would start more than this one",
                      script.request.tasks()))
      .fix = report.say("srun {}    (or ask for 1 task with --cpus-per-task={})", script.at(work->span),
                        script.request.tasks());
}

constexpr Rule kRankRules[] = {
    {"replaced-too-early", Level::job,
     "the batch script's shell replaces $SLURM_PROCID before srun starts the tasks",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --node_rank=$SLURM_NODEID train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID "
     "train.py'\n",
     "pytorch forums", find_replaced_too_early},
    {"agent-per-task", Level::job,
     "torchrun starts all ranks of its node; several on one node take each other's ports and GPUs",
     "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun torchrun --nnodes=2 "
     "--nproc_per_node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nsrun torchrun --nnodes=2 "
     "--nproc_per_node=4 train.py\n",
     "pytorch forums", find_agent_per_task},
    {"mpirun-per-task", Level::job,
     "mpirun starts all ranks itself; behind srun it does so once for each task",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun mpirun -np 8 ./solve\n",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun ./solve\n", "sites' guides to MPI", find_mpirun_per_task},
    {"srun-cpus", Level::time,
     "srun of 22.05 to 23.02 reads SRUN_CPUS_PER_TASK, not the job's --cpus-per-task",
     "#!/bin/bash\n#SBATCH -c 8\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH -c 8\nsrun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py\n",
     "Slurm's release notes of 22.05; Lightning #18650", find_lost_cpus},
    {"no-kill-on-bad-exit", Level::time,
     "one dead rank leaves the others in a collective until the time is over",
     "#!/bin/bash\n#SBATCH -n 4\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH -n 4\nsrun --kill-on-bad-exit=1 python train.py\n",
     "pytorch #76287, Lightning #20434", find_lonely_ranks},
    {"tasks-and-gpus", Level::time, "with one rank for each GPU the two counts have to be the same",
     "#!/bin/bash\n#SBATCH --ntasks-per-node=2\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nexport "
     "MASTER_ADDR=a\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH --ntasks-per-node=4\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nexport "
     "MASTER_ADDR=a\nsrun python train.py\n",
     "mace #435, open_clip #614", find_tasks_and_gpus},
    {"unused-tasks", Level::time, "a batch script runs once, however many tasks were asked for",
     "#!/bin/bash\n#SBATCH --ntasks=8\npython train.py\n",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun python train.py\n", "sites' reports of idle cores",
     find_unused_tasks},
};

}  // namespace

std::span<const Rule> rank_rules() { return kRankRules; }

}  // namespace stoker::explain
