// Rules for unknown names: mistyped programs, mistyped Slurm variables, variables of other schedulers, and a
// quoted ~.
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>

#include "script_lint/rule.h"
#include "script_lint/rules/commands/modules.h"
#include "script_lint/rules/commands/near_names.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::string_view kPrograms[] = {
    "python",   "python3", "module",      "export",     "source", "conda",      "mpirun",    "mpiexec",
    "torchrun", "mkdir",   "singularity", "apptainer",  "unset",  "accelerate", "deepspeed", "Rscript",
    "matlab",   "julia",   "nvidia-smi",  "deactivate", "rsync",  "sbatch",     "snakemake", "nextflow"};

// One letter missing or extra, or two letters swapped.
bool is_one_typo(std::string_view typed, std::string_view meant) {
  if (typed == meant || typed.size() > meant.size() + 1 || meant.size() > typed.size() + 1) return false;
  std::size_t begin = 0;
  while (begin < typed.size() && begin < meant.size() && typed[begin] == meant[begin]) ++begin;
  if (begin == 0) return false;  // "smpirun"
  const std::string_view a = typed.substr(begin);
  const std::string_view b = meant.substr(begin);
  if (a.size() >= 2 && a.size() == b.size() && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2))
    return true;
  if (a.size() + 1 == b.size()) return a == b.substr(1);
  return a.size() == b.size() + 1 && a.substr(1) == b;
}

bool is_function(const Script& script, std::string_view name) {
  return script.text.find(format("{}()", name)) != std::string::npos ||
         script.text.find(format("{} ()", name)) != std::string::npos ||
         script.text.find(format("function {}", name)) != std::string::npos ||
         script.text.find(format("alias {}", name)) != std::string::npos;
}

// "cut-d": a missing blank before the option.
bool is_glued(std::string_view typed) {
  const std::size_t dash = typed.find('-');
  return dash != std::string_view::npos && dash + 2 == typed.size() &&
         is_one_of(typed.substr(0, dash), {"cut", "sort", "grep", "awk", "head", "tail", "sed", "wc", "tr",
                                           "ls", "rm", "cp", "mkdir", "srun", "python", "mpirun", "tar"});
}

// Typos in "load" and "activate", and "load module gcc": nothing is loaded.
void find_misspelt_loading(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.typed.empty() || call.context.is_remote) continue;
    const std::string_view first = script.at(call.typed[0]->span);
    find_module_words(call, first, script, report);
    const bool is_conda = is_one_of(call.program, {"conda", "mamba", "micromamba"});
    const std::string_view meant = is_conda ? "activate" : "load";
    if ((is_conda || call.program == "module") && is_one_typo(first, meant)) {
      report.replace(call.typed[0]->span,
                     message("{} has no command {}; did you mean {}?", call.program, printable(first), meant),
                     std::string(meant));
    } else if (call.program == "load" && first == "module" && call.typed.size() > 1) {
      report.replace({call.program_word->span.begin, call.typed[0]->span.end},
                     message("{}: no such program; did you mean {}?", "load", "module load"), "module load");
    }
  }
}

void find_misspelt_command(const Script& script, FindingReport& report) {
  find_misspelt_loading(script, report);
  for (const ProgramCall& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    // "$ python a.py" and "!python a.py", copied from a web page.
    const bool is_prompt =
        typed == "$" && !call.typed.empty() &&
        is_one_of(script.at(call.typed[0]->span), {"python", "python3", "srun", "mpirun", "Rscript", "bash"});
    if (typed == "cd..") {
      const std::size_t at = call.program_word->span.begin + 2;
      report.replace({at, at}, message("{}: no such program; a blank is missing before {}", "cd..", ".."),
                     " ");
      continue;
    }
    if (is_prompt || typed == "%cd" || typed == "%%bash" ||
        (typed.size() > 2 && typed[0] == '!' && std::islower(static_cast<unsigned char>(typed[1])) != 0)) {
      const std::size_t end = is_prompt ? call.typed[0]->span.begin : call.program_word->span.begin + 1;
      report.replace({call.program_word->span.begin, end}, message("{}: no such program", printable(typed)),
                     "");
      continue;
    }
    if (is_glued(typed)) {
      const std::size_t at = call.program_word->span.begin + typed.find('-');
      report.replace({at, at},
                     message("{}: no such program; a blank is missing before {}", printable(typed),
                             typed.substr(typed.find('-'))),
                     " ");
      continue;
    }
    // "python2" and "modules" are programs; so may be names that end in a digit or s.
    if (typed.size() < 4 || typed.find_first_of("/$.0123456789\"'`*") != std::string_view::npos ||
        typed.ends_with('s') || call.context.is_remote ||
        is_one_of(typed, {"pythonw", "ipython", "mpirun_rsh", "micromamba"}))
      continue;
    for (std::string_view meant : kPrograms) {
      const std::string_view stem = meant == "python3" ? "python" : meant;
      if (!is_one_typo(typed, stem) || is_one_of(typed, kPrograms) || is_function(script, typed)) continue;
      report.replace(call.program_word->span,
                     message("{}: no such program; did you mean {}?", printable(typed), stem),
                     std::string(stem));
      break;
    }
  }
}

constexpr std::string_view kSlurmVariables[] = {"SLURM_ARRAY_JOB_ID",
                                                "SLURM_ARRAY_TASK_COUNT",
                                                "SLURM_ARRAY_TASK_ID",
                                                "SLURM_ARRAY_TASK_MAX",
                                                "SLURM_ARRAY_TASK_MIN",
                                                "SLURM_ARRAY_TASK_STEP",
                                                "SLURM_CLUSTER_NAME",
                                                "SLURM_CPUS_ON_NODE",
                                                "SLURM_CPUS_PER_GPU",
                                                "SLURM_CPUS_PER_TASK",
                                                "SLURM_GPUS",
                                                "SLURM_GPUS_ON_NODE",
                                                "SLURM_GPUS_PER_NODE",
                                                "SLURM_GPUS_PER_TASK",
                                                "SLURM_JOBID",
                                                "SLURM_JOB_ACCOUNT",
                                                "SLURM_JOB_CPUS_PER_NODE",
                                                "SLURM_JOB_GPUS",
                                                "SLURM_JOB_ID",
                                                "SLURM_JOB_NAME",
                                                "SLURM_JOB_NODELIST",
                                                "SLURM_JOB_NUM_NODES",
                                                "SLURM_JOB_PARTITION",
                                                "SLURM_JOB_USER",
                                                "SLURM_LAUNCH_NODE_IPADDR",
                                                "SLURM_LOCALID",
                                                "SLURM_MEM_PER_CPU",
                                                "SLURM_MEM_PER_GPU",
                                                "SLURM_MEM_PER_NODE",
                                                "SLURM_NNODES",
                                                "SLURM_NODEID",
                                                "SLURM_NODELIST",
                                                "SLURM_NPROCS",
                                                "SLURM_NTASKS",
                                                "SLURM_NTASKS_PER_NODE",
                                                "SLURM_PROCID",
                                                "SLURM_RESTART_COUNT",
                                                "SLURM_STEP_ID",
                                                "SLURM_STEP_NODELIST",
                                                "SLURM_SUBMIT_DIR",
                                                "SLURM_SUBMIT_HOST",
                                                "SLURM_TASKS_PER_NODE",
                                                "SLURM_TASK_PID",
                                                "SLURM_TMPDIR",
                                                "SLURM_STEPID",
                                                "SLURM_JOB_END_TIME",
                                                "SLURM_JOB_START_TIME",
                                                "SLURM_NTASKS_PER_GPU",
                                                "SLURM_STEP_GPUS",
                                                "SLURM_TOPOLOGY_ADDR",
                                                "SLURM_ARRAYID",
                                                "SLURM_JOB_UID",
                                                "SLURM_STEP_NUM_TASKS",
                                                "SLURM_STEP_NUM_NODES",
                                                "SLURM_TRES_PER_TASK",
                                                "SLURM_JOB_QOS"};

// Variables whose absence loses results: the input of an array task, or its folder.
bool is_vital(std::string_view name) {
  return name.starts_with("SLURM_ARRAY_TASK_ID") || name == "SLURM_PROCID" || name == "SLURM_SUBMIT_DIR" ||
         name == "SLURM_JOB_NODELIST" || name == "SLURM_TMPDIR";
}

using Visit = std::function<void(const bash::WordPiece& piece)>;

void visit_word(const bash::Word& word, const Visit& visit) {
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) visit(piece);
  }
}

void visit_variables(const Script& script, const Visit& visit) {
  for (const VariableSetting& setting : script.settings) visit_word(setting.assignment->value, visit);
  for (const ProgramCall& call : script.calls) {
    if (call.context.launcher || call.program == "echo" || call.program == "printf") continue;
    visit_word(*call.program_word, visit);
    for (const bash::Word* word : call.typed) visit_word(*word, visit);
  }
}

// Variables assigned by commands or by sourced scripts.
struct ExternalAssignments {
  bool is_all = false;
  std::set<std::string_view> names;
};

ExternalAssignments external_assignments(const Script& script) {
  ExternalAssignments given;
  for (const ProgramCall& call : script.calls) {
    if (call.program == "eval" ||
        ((call.program == "source" || call.program == ".") && !call.has("activate")))
      given.is_all = true;
    if (is_one_of(call.program, {"read", "mapfile", "readarray", "getopts", "export", "declare", "local",
                                 "printf", "for", "select", "set"}))
      given.names.insert(call.words.begin(), call.words.end());
  }
  return given;
}

// "$gmxdi/mdrun" after gmxdir=...: empty, because the name is not set.
void find_own_misspelt(const Script& script, const ExternalAssignments& given, const bash::WordPiece& piece,
                       FindingReport& report) {
  const std::string& name = piece.text;
  const auto ends_in_digit = [](std::string_view text) {
    return std::isdigit(static_cast<unsigned char>(text.back())) !=
           0;  // "run1" and "run2" are no typing errors
  };
  if (name.size() < 4 || !has_lower(name) || ends_in_digit(name) || script.names.is_set(name) ||
      given.is_all || given.names.contains(name) || script.names.is_loop_variable(name) ||
      script.names.is_arithmetic(name))
    return;
  for (const VariableSetting& setting : script.settings) {
    if (setting.name.size() < 5 || !is_one_typo(name, setting.name) || ends_in_digit(setting.name) ||
        setting.is_command_scoped || is_spelt_alike(name, setting.name))  // the last by find_near_names
      continue;
    report.replace(piece.span,
                   message("${} is never set and is empty; did you mean ${}?", name, setting.name),
                   script.at(piece.span).starts_with("${") ? format("${{{}}}", setting.name)
                                                           : format("${}", setting.name));
    return;
  }
}

void find_misspelt_variable(const Script& script, FindingReport& report) {
  find_near_names(script, report);
  const ExternalAssignments given = external_assignments(script);
  visit_variables(script, [&](const bash::WordPiece& piece) {
    const std::string& name = piece.text;
    find_own_misspelt(script, given, piece, report);
    if (!name.starts_with("SLURM_") || is_one_of(name, kSlurmVariables) || script.names.is_set(name)) return;
    const std::string_view likely = closest(name, kSlurmVariables);
    if (likely.empty()) return;
    ScriptFinding& finding = report.replace(
        piece.span, message("${}: Slurm sets no such variable, it is empty; did you mean ${}?", name, likely),
        script.at(piece.span).starts_with("${") ? format("${{{}}}", likely) : format("${}", likely));
    if (!is_vital(likely)) finding.level = Level::time;
  });
}

// Supports several schedulers, or checks which one is active.
bool is_for_several(const Script& script) {
  for (std::string_view line : {"\n#PBS -", "\n#BSUB -", "\n#$ -", "\n#COBALT -"}) {
    if (script.text.find(line) != std::string::npos) return true;
  }
  return std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return call.context.is_condition &&
           std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
             return word.find("PBS_") != std::string::npos || word.find("SGE_") != std::string::npos ||
                    word.find("LSB_") != std::string::npos;
           });
  });
}

// Whether a later command reads a file relative to the current folder.
bool reads_current_folder(const Script& script, std::size_t at) {
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    if (call.span.begin < at || call.program == "echo") return false;
    if (script.at(call.program_word->span).starts_with('.')) return true;
    return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.find_first_of("./") != std::string::npos && word.find_first_of("/~$-<") != 0;
    });
  });
}

void find_other_scheduler(const Script& script, FindingReport& report) {
  if (script.request.directives.empty() || is_for_several(script)) return;
  visit_variables(script, [&](const bash::WordPiece& piece) {
    struct Name {
      std::string_view other_name;
      std::string_view slurm_name;
    };
    constexpr Name kNames[] = {{"PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"},
                               {"SGE_O_WORKDIR", "SLURM_SUBMIT_DIR"},
                               {"LS_SUBCWD", "SLURM_SUBMIT_DIR"},
                               {"PBS_ARRAYID", "SLURM_ARRAY_TASK_ID"},
                               {"PBS_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"},
                               {"SGE_TASK_ID", "SLURM_ARRAY_TASK_ID"},
                               {"LSB_JOBINDEX", "SLURM_ARRAY_TASK_ID"},
                               {"NSLOTS", "SLURM_NTASKS"},
                               {"PBS_NP", "SLURM_NTASKS"},
                               {"PBS_JOBID", "SLURM_JOB_ID"},
                               {"LSB_JOBID", "SLURM_JOB_ID"}};
    for (const Name& name : kNames) {
      if (piece.text != name.other_name || script.names.is_set(name.other_name)) continue;
      ScriptFinding& finding = report.replace(
          piece.span,
          message("${} belongs to a different scheduler and is empty under Slurm", name.other_name),
          format("${{{}}}", name.slurm_name));
      // "cd ''" does not move, and "cd" without an argument moves to the home folder.
      const bool is_harmless = name.slurm_name == "SLURM_SUBMIT_DIR" &&
                               (piece.is_quoted || !reads_current_folder(script, piece.span.end));
      if (name.slurm_name == "SLURM_JOB_ID" || is_harmless) finding.level = Level::time;
    }
  });
}

bool is_quoted_home(const bash::Word& word) {
  return !word.pieces.empty() && word.pieces[0].kind == bash::PieceKind::literal &&
         word.pieces[0].is_quoted && word.pieces[0].text.starts_with("~/");
}

// cd "~/project", and cd $DIR after DIR="~/project".
void find_quoted_tilde(const Script& script, FindingReport& report) {
  std::set<std::string> reported;
  for (const ProgramCall& call : script.calls) {
    const bool is_reader =
        is_one_of(call.program, {"cd", "source", ".", "pushd", "cat", "ls", "cp", "mv", "tar", "rsync"});
    if (!is_reader && !is_python(call.program)) continue;
    for (const bash::Word* word : call.typed) {
      if (!is_reader && word != call.typed[0]) break;
      if (is_quoted_home(*word)) {
        report
            .replace({word->span.begin, word->span.begin + 2},
                     message("~ in quotes is literal, and no such folder exists"),
                     format("{}$HOME", script.text[word->span.begin]))
            .edits = {{word->span.begin + 1, word->span.begin + 2,
                       script.text[word->span.begin] == '"' ? "$HOME" : "~"}};
        continue;
      }
      if (word->pieces.empty() || word->pieces[0].kind != bash::PieceKind::variable) continue;
      const std::string& name = word->pieces[0].text;
      const auto setting = std::find_if(script.settings.rbegin(), script.settings.rend(),
                                        [&](const VariableSetting& each) { return each.name == name; });
      if (setting == script.settings.rend() || !is_quoted_home(setting->assignment->value) ||
          !reported.insert(name).second)
        continue;
      const std::size_t at = setting->assignment->value.span.begin;
      report
          .add(setting->assignment->value.span, message("~ in quotes is literal, and no such folder exists"))
          .edits = {{at + 1, at + 2, script.text[at] == '"' ? "$HOME" : "~"}};
    }
  }
}

constexpr Rule kNameRules[] = {
    {"misspelt-command", Level::job, "the shell does not find a mistyped program and continues without it",
     "#!/bin/bash\n#SBATCH -n 1\npyhton -u train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "bash: \"command not found\"", find_misspelt_command},
    {"misspelt-variable", Level::job, "a mistyped variable is empty",
     "#!/bin/bash\n#SBATCH --array=1-4\n./a $SLURM_ARRAY_TASKID\n",
     "#!/bin/bash\n#SBATCH --array=1-4\n./a $SLURM_ARRAY_TASK_ID\n",
     "sbatch(1), output environment variables", find_misspelt_variable},
    {"other-scheduler", Level::job,
     "variables of PBS, Grid Engine and LSF are empty under Slurm, and cd moves to the home folder",
     "#!/bin/bash\n#SBATCH -n 1\ncd $PBS_O_WORKDIR\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd $SLURM_SUBMIT_DIR\n./a\n", "sites' guides to moving from PBS",
     find_other_scheduler},
    {"quoted-tilde", Level::job, "the shell expands ~ only outside of quotes",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"~/project\"\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"$HOME/project\"\n./a\n", "shellcheck SC2088", find_quoted_tilde},
};

}  // namespace

std::span<const Rule> name_rules() { return kNameRules; }

}  // namespace stoker::script_lint
