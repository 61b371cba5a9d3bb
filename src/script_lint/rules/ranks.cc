// Rules for the tasks of a job: their number, their rank variables, their resources.
#include <algorithm>
#include <array>

#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// The program of a launcher; null if unknown.
const ProgramCall* started_by(const Script& script, const ProgramCall& launcher) {
  const std::size_t index = static_cast<std::size_t>(&launcher - script.calls.data());
  const ProgramCall* innermost = nullptr;
  for (const ProgramCall& call : script.calls) {
    if (call.context.launcher == index) innermost = &call;
  }
  return innermost;
}

bool sets_tasks(const ProgramCall& launcher) {
  constexpr std::array<std::string_view, 5> kLong = {"--ntasks", "--ntasks-per-node", "--tasks-per-node",
                                                     "-n", "-N"};
  if (std::any_of(kLong.begin(), kLong.end(), [&](std::string_view name) { return launcher.has(name); }))
    return true;
  return std::any_of(launcher.words.begin(), launcher.words.end(), [](const std::string& word) {
    return (word.starts_with("-n") || word.starts_with("-N")) && word.size() > 2 && word[2] >= '0' &&
           word[2] <= '9';
  });
}

// With a dynamic rendezvous torch ignores the given rank. The backend "static" uses it.
bool agrees_on_ranks(const ProgramCall& call) {
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

// Whether the batch script's shell expands variables at that place of a command for the tasks: outside of
// quotes, and in double quotes.
bool expands_early(const Script& script, const Context& context, const bash::ShellCommand* command,
                   bash::Span at) {
  if (!context.launcher) return false;
  const ProgramCall& launcher = script.calls[*context.launcher];
  if (command == launcher.command) return true;
  for (const bash::Word* word : launcher.typed) {
    if (word->span.begin < at.begin && at.end <= word->span.end) return script.text[word->span.begin] == '"';
  }
  return false;
}

bool is_of_task(const bash::WordPiece& piece) {
  return piece.kind == bash::PieceKind::variable &&
         is_one_of(piece.text, {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "PMI_RANK"});
}

// The backslash leaves the variable to the task's shell.
void report_in_quotes(const Script& script, const bash::WordPiece& piece, FindingReport& report) {
  report.replace(
      piece.span,
      message("${} in double quotes is expanded before srun starts: every task gets the value of the batch "
              "script, 0",
              piece.text),
      "\\" + std::string(script.at(piece.span)));
}

void find_early_expansion(const Script& script, FindingReport& report) {
  const bool has_several = script.request.tasks() > 1 || script.request.nodes() > 1;
  if (!has_several) return;
  for (const ProgramCall& call : script.calls) {
    if (!expands_early(script, call.context, call.command, call.span)) continue;
    const bool is_program_with_rank =
        is_python(call.program) || is_agent(call) || call.program == "bash" || call.program == "sh";
    if (!is_program_with_rank || agrees_on_ranks(call)) continue;
    const bool is_in_quotes = call.command != script.calls[*call.context.launcher].command;
    for (const bash::Word* word : call.typed) {
      for (const bash::WordPiece& piece : word->pieces) {
        if (!is_of_task(piece)) continue;
        // "bash -c" itself: the programs in its quotes are reported.
        if (!is_in_quotes && call.has("-c") && (call.program == "bash" || call.program == "sh")) continue;
        if (is_in_quotes) {
          report_in_quotes(script, piece, report);
          continue;
        }
        report
            .add(piece.span,
                 message(
                     "${} is expanded before srun starts: every task gets the value of the batch script, 0",
                     piece.text))
            .fix = format("srun bash -c '{}'", script.at(call.span));
      }
    }
  }
}

// srun bash -c "export RANK=$SLURM_PROCID; python train.py"
void find_ranks_in_quotes(const Script& script, FindingReport& report) {
  if (script.request.tasks() < 2 && script.request.nodes() < 2) return;
  for (const VariableSetting& setting : script.settings) {
    if (!is_one_of(setting.name, {"RANK", "LOCAL_RANK", "NODE_RANK"}) || setting.assignment == nullptr ||
        !expands_early(script, setting.context, nullptr, setting.assignment->span))
      continue;
    for (const bash::WordPiece& piece : setting.assignment->value.pieces) {
      if (is_of_task(piece)) report_in_quotes(script, piece, report);
    }
  }
}

// "export RANK=$SLURM_PROCID" in the batch script.
void find_ranks_of_script(const Script& script, FindingReport& report) {
  if (script.request.tasks() < 2) return;
  for (const VariableSetting& setting : script.settings) {
    const bool is_rank = (setting.name == "RANK" && setting.value == "$SLURM_PROCID") ||
                         (setting.name == "LOCAL_RANK" && setting.value == "$SLURM_LOCALID") ||
                         (setting.name == "NODE_RANK" && setting.value == "$SLURM_NODEID");
    const bool is_exported = setting.is_exported || script.names.is_exported(setting.name);
    if (!is_rank || !is_exported || setting.context.launcher || setting.is_command_scoped ||
        !setting.context.function.empty())
      continue;
    const bool is_given = std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
      const ProgramCall* launcher = script.launcher_of(call);
      return launcher != nullptr && call.span.begin > setting.assignment->span.begin &&
             is_python(call.program) && is_work(call) && !is_agent(call);
    });
    if (!is_given) continue;
    report
        .add(setting.assignment->span,
             message("{} is set before srun starts: every task gets the value of the batch script, 0",
                     setting.name))
        .fix = format("srun bash -c 'export {}={}; exec \"$@\"' bash PROGRAM", setting.name, setting.value);
  }
}

void find_expanded_too_early(const Script& script, FindingReport& report) {
  find_early_expansion(script, report);
  find_ranks_of_script(script, report);
  find_ranks_in_quotes(script, report);
}

// "srun -n 8 mpirun -n 8 ./a": eight programs of eight ranks each.
void find_mpirun_per_task(const Script& script, FindingReport& report) {
  if (script.request.tasks() < 2) return;
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (launcher == nullptr || launcher->program != "srun" || !is_launcher(call.program) ||
        call.program == "srun")
      continue;
    const auto is_one = [](const ProgramCall& starter, std::initializer_list<std::string_view> names) {
      return std::any_of(names.begin(), names.end(),
                         [&](std::string_view name) { return starter.option(name) == "1"; });
    };
    const bool is_single = is_one(*launcher, {"--ntasks", "-n", "--ntasks-per-node"}) ||
                           launcher->has("-n1") || is_one(call, {"-n", "-np", "--np"});
    if (is_single) continue;
    report
        .add(call.program_word->span,
             message("srun starts {} once for each of {} tasks, and each one starts all ranks again",
                     call.program, script.request.tasks()))
        .fix = message("use one of the two: srun, or {} without srun", call.program);
  }
}

// Programs that need only one core.
bool is_light(const ProgramCall* call) {
  if (call == nullptr) return false;
  constexpr std::array<std::string_view, 16> kNames = {
      "hostname", "echo", "mkdir", "cp",    "rm",       "tar",  "ls",  "nvidia-smi",
      "rsync",    "date", "cat",   "sleep", "rocm-smi", "true", "pip", "virtualenv"};
  return std::find(kNames.begin(), kNames.end(), call->program) != kNames.end();
}

void find_dropped_cpus(const Script& script, FindingReport& report) {
  const auto cpus = script.request.number("--cpus-per-task");
  if (!cpus || *cpus < 2 || script.mentions("SRUN_CPUS_PER_TASK")) return;
  for (const ProgramCall& call : script.calls) {
    const bool has_option =
        call.has("--cpus-per-task") || call.has("-c") || call.has("--exact") || call.has("--overlap") ||
        std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
          return word.starts_with("-c") && word.size() > 2 && word[2] >= '0' && word[2] <= '9';
        });
    if (call.program != "srun" || has_option || call.context.is_substituted ||
        is_light(started_by(script, call)))
      continue;
    const std::size_t at = call.program_word->span.end;
    report.replace(
        {at, at},
        message("srun of Slurm 22.05 to 23.02 ignores --cpus-per-task={}: each task gets 1 core", *cpus),
        " --cpus-per-task=$SLURM_CPUS_PER_TASK");
  }
}

void find_orphaned_ranks(const Script& script, FindingReport& report) {
  if (script.request.tasks() < 2 && script.request.nodes() < 2) return;
  if (script.mentions("SLURM_KILL_BAD_EXIT")) return;
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* program = call.program == "srun" ? started_by(script, call) : nullptr;
    if (program == nullptr || (!is_agent(*program) && !(is_python(program->program) && is_work(*program))))
      continue;
    const bool has_option = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.starts_with("--kill-on-bad-exit") || word.starts_with("-K");
    });
    const bool is_one = call.option("--ntasks") == "1" || call.option("-n") == "1" || call.has("-n1");
    if (has_option || is_one) continue;
    const std::size_t at = call.program_word->span.end;
    report.replace({at, at},
                   message("without --kill-on-bad-exit the peers of a failed rank wait until the time limit"),
                   " --kill-on-bad-exit=1");
  }
}

bool is_distributed(const Script& script) {
  return script.mentions("MASTER_ADDR") || script.mentions("MASTER_PORT") || script.mentions("nccl") ||
         script.mentions("ddp") || script.mentions("torch");
}

void find_tasks_and_gpus(const Script& script, FindingReport& report) {
  const auto tasks = script.request.tasks_per_node();
  const auto gpus = script.request.gpus_per_node();
  if (!tasks || !gpus || *gpus == 0 || *tasks < 2 || *tasks == *gpus || !is_distributed(script)) return;
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (launcher == nullptr || launcher->program != "srun" || sets_tasks(*launcher) || is_agent(call) ||
        !is_python(call.program) || !is_work(call))
      continue;
    report
        .add(call.span,
             *tasks <= *gpus
                 ? message("{} tasks on each node leave {} of {} GPUs idle", *tasks, *gpus - *tasks, *gpus)
             : *gpus == 1
                 ? message("{} tasks on each node share 1 GPU: a task that uses its number as GPU finds none",
                           *tasks)
                 // several of both
                 : message(
                       "{} tasks on each node share {} GPUs: a task that uses its number as GPU finds none",
                       *tasks, *gpus))
        .fix = format("#SBATCH --ntasks-per-node={}", *gpus);
    return;
  }
}

void find_unused_tasks(const Script& script, FindingReport& report) {
  if (script.request.tasks() < 2) return;
  for (const char* word : {"srun", "mpi", "parallel", "ssh", "SLURM_NTASKS", "ray ", "dask", "deepspeed",
                           "horovod", "multiprocessing", "SLURM_TASKS", "sbatch", "SLURM_NPROCS", "julia",
                           "hostfile", "-n ", "accelerate", "torchrun", "distributed"}) {
    if (script.mentions(word)) return;
  }
  const auto work = std::find_if(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return is_python(call.program) && is_work(call) && !call.context.is_background && call.context.loops == 0;
  });
  if (work == script.calls.end()) return;
  report
      .add(work->span, message("{} tasks are requested, but only srun would start more than this one",
                               script.request.tasks()))
      .fix = message("srun {}    (or request 1 task with --cpus-per-task={})", script.at(work->span),
                     script.request.tasks());
}

constexpr Rule kRankRules[] = {
    {"expanded-too-early", Level::job,
     "the batch script's shell expands $SLURM_PROCID before srun starts the tasks",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --node_rank=$SLURM_NODEID "
     "--master_addr=$HEAD train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID "
     "--master_addr=$HEAD train.py'\n",
     "pytorch forums", find_expanded_too_early},
    {"mpirun-per-task", Level::job, "mpirun starts all ranks itself; under srun it does so once per task",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun mpirun -np 8 ./solve\n",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun ./solve\n", "sites' guides to MPI", find_mpirun_per_task},
    {"srun-cpus", Level::time,
     "srun of 22.05 to 23.02 reads SRUN_CPUS_PER_TASK, not the job's --cpus-per-task",
     "#!/bin/bash\n#SBATCH -c 8\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH -c 8\nsrun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py\n",
     "Slurm's release notes of 22.05; Lightning #18650", find_dropped_cpus},
    {"no-kill-on-bad-exit", Level::time, "a dead rank leaves its peers in a collective until the time limit",
     "#!/bin/bash\n#SBATCH -n 4\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH -n 4\nsrun --kill-on-bad-exit=1 python train.py\n",
     "pytorch #76287, Lightning #20434", find_orphaned_ranks},
    {"tasks-and-gpus", Level::time, "with one rank per GPU the two counts must be equal",
     "#!/bin/bash\n#SBATCH --ntasks-per-node=2\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nexport "
     "MASTER_ADDR=a\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH --ntasks-per-node=4\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nexport "
     "MASTER_ADDR=a\nsrun python train.py\n",
     "mace #435, open_clip #614", find_tasks_and_gpus},
    {"unused-tasks", Level::time, "a batch script runs once, for any number of tasks",
     "#!/bin/bash\n#SBATCH --ntasks=8\npython train.py\n",
     "#!/bin/bash\n#SBATCH --ntasks=8\nsrun python train.py\n", "sites' reports of idle cores",
     find_unused_tasks},
};

}  // namespace

std::span<const Rule> rank_rules() { return kRankRules; }

}  // namespace stoker::script_lint
