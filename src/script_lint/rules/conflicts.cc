// Rules for conflicts: mutually exclusive options, and a file name in place of a program.
#include <algorithm>
#include <array>
#include <set>
#include <unistd.h>

#include "base/file.h"
#include "script_lint/rule.h"
#include "slurm/node_list.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

struct OptionConflict {
  std::string_view one;
  std::string_view other;
};

// From slurm_opt.c, 22.05 and later. --cpus-per-gpu has no effect without GPUs.
constexpr std::array<OptionConflict, 6> kConflicts = {{{"--mem", "--mem-per-cpu"},
                                                       {"--mem", "--mem-per-gpu"},
                                                       {"--mem-per-cpu", "--mem-per-gpu"},
                                                       {"--cpus-per-task", "--cpus-per-gpu"},
                                                       {"--ntasks-per-gpu", "--ntasks-per-node"},
                                                       {"--ntasks-per-gpu", "--gpus-per-task"}}};

std::optional<std::uint64_t> count_of(const Directive* directive) {
  if (directive == nullptr) return std::nullopt;
  const std::string_view value = directive->option.value;
  std::uint64_t number = 0;
  const bool has_number = parse_number(value.substr(value.rfind(':') + 1), &number) && number > 0;
  return has_number ? std::optional(number) : std::nullopt;
}

// GPU counts that do not divide evenly, see _test_gres_cnt in Slurm's gres.c.
void find_uneven_gpus(const Script& script, FindingReport& report) {
  const Directive* all = script.request.find("--gpus");
  const auto gpus = count_of(all);
  if (!gpus) return;
  const Directive* node = script.request.find("--gpus-per-node");
  const Directive* task = script.request.find("--gpus-per-task");
  const auto on_node = count_of(node);
  const auto of_task = count_of(task);
  const auto tasks = count_of(script.request.find("--ntasks"));
  const auto nodes = count_of(script.request.find("--nodes"));
  const bool is_uneven_task = of_task && (*gpus % *of_task != 0 || (tasks && *tasks != *gpus / *of_task));
  const bool is_uneven_node = on_node && (*gpus % *on_node != 0 || (nodes && *gpus / *on_node != *nodes));
  if (!is_uneven_task && !is_uneven_node) return;
  const Directive* other = is_uneven_task ? task : node;
  report
      .add(all->span,
           message("{}={} does not match {}={} and the requested tasks and nodes: sbatch rejects it",
                   all->option.typed, all->option.value, other->option.typed, other->option.value))
      .fix = message("use one of the two");
}

// More named nodes than requested: "--nodes=1" and "--nodelist=n[1-8]", see slurm_opt.c.
void find_too_few_nodes(const Script& script, FindingReport& report) {
  const Directive* count = script.request.find("--nodes");
  const Directive* names = script.request.find("--nodelist");
  // A value with a slash is a file.
  if (count == nullptr || names == nullptr || names->option.value.find('/') != std::string::npos) return;
  const std::string_view range = count->option.value;
  const std::size_t dash = range.find('-');
  std::uint64_t most = 0;
  const auto listed = slurm::expand_node_list(names->option.value);
  if (!listed.ok() || !parse_number(dash == std::string::npos ? range : range.substr(dash + 1), &most))
    return;
  const std::size_t nodes = std::set<std::string>(listed->begin(), listed->end()).size();
  if (nodes <= most) return;
  const Directive* last = count->span.begin < names->span.begin ? names : count;
  report
      .add(last->span, message("{}={} is less than the {} nodes of {}: sbatch rejects it",
                               count->option.typed, range, nodes, names->option.typed))
      .fix = message("use one of the two");
}

void find_options_exclude(const Script& script, FindingReport& report) {
  find_too_few_nodes(script, report);
  find_uneven_gpus(script, report);
  for (const OptionConflict& conflict : kConflicts) {
    const Directive* one = script.request.find(conflict.one);
    const Directive* other = script.request.find(conflict.other);
    const bool needs_gpus = conflict.other == "--cpus-per-gpu";
    if (one == nullptr || other == nullptr || (needs_gpus && script.request.gpus().empty())) continue;
    const Directive* last = one->span.begin < other->span.begin ? other : one;
    const Directive* first = last == one ? other : one;
    report
        .add(last->span, message("{} excludes {} (line {}): sbatch rejects a script with both",
                                 last->option.typed, first->option.typed, first->option.line))
        .fix = message("use one of the two");
    return;
  }
}

bool changes_path(const Script& script) {
  return std::any_of(script.settings.begin(), script.settings.end(),
                     [](const VariableSetting& setting) { return setting.name == "PATH"; });
}

// Files that the script compiles or makes executable.
std::set<std::string, std::less<>> made_here(const Script& script) {
  std::set<std::string, std::less<>> made;
  for (const ProgramCall& call : script.calls) {
    const bool compiles = is_one_of(
        call.program, {"gcc",   "g++",      "cc",   "c++",    "clang",  "clang++", "icc",    "icpc",
                       "ifort", "gfortran", "nvcc", "mpicc",  "mpicxx", "mpic++",  "mpif90", "hipcc",
                       "icx",   "icpx",     "ifx",  "mpiicc", "CC",     "ftn"});
    if (compiles) made.insert(call.option("-o").value_or(""));
    if (call.program == "chmod" && call.words.size() > 1 && call.words[0].find('x') != std::string::npos)
      made.insert(call.words.begin() + 1, call.words.end());
  }
  return made;
}

// Reports a program outside of PATH; `before` fixes it.
void report_not_in_path(const ProgramCall& call, std::string_view typed, std::string_view before,
                        FindingReport& report) {
  const std::size_t at = call.program_word->span.begin;
  report.replace({at, at},
                 message("{} is not in PATH, and the shell does not search this folder: command not found",
                         printable(typed)),
                 std::string(before));
}

// Typical script names of a project, which are no installed programs.
bool is_usual_script(std::string_view name) {
  return is_one_of(name, {"train.sh", "run.sh", "main.sh", "test.sh", "eval.sh", "script.sh", "start.sh",
                          "job.sh", "run_train.sh", "run_training.sh", "experiment.sh"});
}

// "gcc a.c -o solve" and "solve", "chmod +x run.sh" and "run.sh": in the current folder, which is not in
// PATH.
void find_local_without_folder(const Script& script, FindingReport& report) {
  const std::set<std::string, std::less<>> made = made_here(script);
  for (const ProgramCall& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    // srun also searches the current folder; mpirun may.
    if (call.context.launcher || call.context.is_remote || call.context.is_condition || typed == "test" ||
        typed.find('/') != std::string_view::npos || (!made.contains(typed) && !is_usual_script(typed)) ||
        call.program_word != &call.command->words[0])
      continue;
    report_not_in_path(call, typed, "./", report);
  }
}

// "train.py" without a folder: the shell and srun search PATH.
void find_script_as_program(const Script& script, FindingReport& report) {
  if (changes_path(script)) return;
  find_local_without_folder(script, report);
  for (const ProgramCall& call : script.calls) {
    if (call.program_word == nullptr || call.context.is_remote || call.context.is_condition) continue;
    const std::string typed = flatten(*call.program_word, script.text);
    if (!typed.ends_with(".py") || typed.find_first_of("/$") != std::string::npos) continue;
    // "uv run main.py" starts Python itself.
    const bool is_of_uv = std::any_of(
        script.calls.begin(), script.calls.end(),
        [&](const ProgramCall& other) { return other.program == "uv" && other.command == call.command; });
    if (is_of_uv) continue;
    const bool is_usual =
        is_one_of(typed, {"train.py", "main.py", "run.py", "test.py", "eval.py", "evaluate.py", "finetune.py",
                          "pretrain.py", "inference.py", "predict.py"});
    // Packages install programs with such names; project files are next to the script.
    const Path file = report.context().directory / typed;
    if (!is_usual && !path_exists(file)) continue;
    // After PATH, srun also searches the current folder for executables (search_path in Slurm's srun).
    if (call.context.launcher && ::access(file.c_str(), X_OK) == 0) continue;
    report_not_in_path(call, typed, "python ", report);
  }
}

constexpr Rule kConflictRules[] = {
    {"options-exclude", Level::job, "sbatch rejects a script with two options that exclude each other",
     "#!/bin/bash\n#SBATCH --mem=8G\n#SBATCH --mem-per-cpu=2G\n", "#!/bin/bash\n#SBATCH --mem-per-cpu=2G\n",
     "sbatch: \"--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\"", find_options_exclude},
    {"script-as-program", Level::job,
     "the shell searches PATH for a program without a folder, and project files are not there",
     "#!/bin/bash\n#SBATCH -n 1\nsrun train.py\n", "#!/bin/bash\n#SBATCH -n 1\nsrun python train.py\n",
     "students' scripts; slurmstepd: \"execve(): train.py: No such file or directory\"",
     find_script_as_program},
};

}  // namespace

std::span<const Rule> conflict_rules() { return kConflictRules; }

}  // namespace stoker::script_lint
