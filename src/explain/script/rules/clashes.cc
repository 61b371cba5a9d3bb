// Rules over what does not go together: options that exclude each other, and a name where a program should
// be.
#include <algorithm>
#include <array>
#include <set>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "explain/script/rule.h"
#include "slurm/node_list.h"

namespace stoker::explain {
namespace {

struct Clash {
  std::string_view one;
  std::string_view other;
};

// As slurm_opt.c has them, in 22.05 and since. --cpus-per-gpu says nothing where no GPU is asked for.
constexpr std::array<Clash, 6> kClashes = {{{"--mem", "--mem-per-cpu"},
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

// Counts of GPUs that do not come out even, as _test_gres_cnt of Slurm's gres.c has it.
void find_uneven_gpus(const Script& script, Report& report) {
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
           report.say("{}={} does not fit {}={} and the tasks and nodes asked for: sbatch refuses it",
                      all->option.typed, all->option.value, other->option.typed, other->option.value))
      .fix = report.say("one of the two");
}

// More nodes by name than there may be: "--nodes=1" and "--nodelist=n[1-8]", as slurm_opt.c has it.
void find_too_few_nodes(const Script& script, Report& report) {
  const Directive* count = script.request.find("--nodes");
  const Directive* names = script.request.find("--nodelist");
  // With a slash it is a file.
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
      .add(last->span, report.say("{}={} is less than the {} nodes of {}: sbatch refuses it",
                                  count->option.typed, range, nodes, names->option.typed))
      .fix = report.say("one of the two");
}

void find_options_exclude(const Script& script, Report& report) {
  find_too_few_nodes(script, report);
  find_uneven_gpus(script, report);
  for (const Clash& clash : kClashes) {
    const Directive* one = script.request.find(clash.one);
    const Directive* other = script.request.find(clash.other);
    const bool needs_gpus = clash.other == "--cpus-per-gpu";
    if (one == nullptr || other == nullptr || (needs_gpus && script.request.gpus().empty())) continue;
    const Directive* last = one->span.begin < other->span.begin ? other : one;
    const Directive* first = last == one ? other : one;
    report
        .add(last->span, report.say("{} excludes {} (line {}), and sbatch refuses a script with both",
                                    last->option.typed, first->option.typed, first->option.line))
        .fix = report.say("one of the two");
    return;
  }
}

bool changes_path(const Script& script) {
  return std::any_of(script.settings.begin(), script.settings.end(),
                     [](const Setting& setting) { return setting.name == "PATH"; });
}

// The files that a compiler has made here, and scripts that were made executable here.
std::set<std::string, std::less<>> made_here(const Script& script) {
  std::set<std::string, std::less<>> made;
  for (const Call& call : script.calls) {
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

// A program that PATH does not lead to is found with `before` before it.
void tell_not_in_path(const Call& call, std::string_view typed, std::string_view before, Report& report) {
  const std::size_t at = call.program_word->span.begin;
  report.replace(
      {at, at},
      report.say("{} is looked for in PATH, where a file of this folder is not: the command is not "
                 "found",
                 printable(typed)),
      std::string(before));
}

// Scripts of a project, and no programs of a package.
bool is_usual_script(std::string_view name) {
  return is_one_of(name, {"train.sh", "run.sh", "main.sh", "test.sh", "eval.sh", "script.sh", "start.sh",
                          "job.sh", "run_train.sh", "run_training.sh", "experiment.sh"});
}

// "gcc a.c -o solve" and "solve", "chmod +x run.sh" and "run.sh": of this folder, where PATH does not lead.
void find_own_without_folder(const Script& script, Report& report) {
  const std::set<std::string, std::less<>> made = made_here(script);
  for (const Call& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    // srun looks at this folder, too; mpirun may.
    if (call.context.launcher || call.context.is_remote || call.context.is_condition || typed == "test" ||
        typed.find('/') != std::string_view::npos || (!made.contains(typed) && !is_usual_script(typed)) ||
        call.program_word != &call.command->words[0])
      continue;
    tell_not_in_path(call, typed, "./", report);
  }
}

// "train.py" without a folder: the shell and srun look for it in PATH, where no script of a project is.
void find_script_as_program(const Script& script, Report& report) {
  if (changes_path(script)) return;
  find_own_without_folder(script, report);
  for (const Call& call : script.calls) {
    if (call.program_word == nullptr || call.context.is_remote || call.context.is_condition) continue;
    const std::string typed = flat(*call.program_word, script.text);
    if (!typed.ends_with(".py") || typed.find_first_of("/$") != std::string::npos) continue;
    // "uv run main.py" starts Python itself.
    const bool is_of_uv = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& other) {
      return other.program == "uv" && other.command == call.command;
    });
    if (is_of_uv) continue;
    const bool is_usual =
        is_one_of(typed, {"train.py", "main.py", "run.py", "test.py", "eval.py", "evaluate.py", "finetune.py",
                          "pretrain.py", "inference.py", "predict.py"});
    // Packages bring programs that end like that; those of a project lie beside its script.
    const Path file = report.place().directory / typed;
    if (!is_usual && !path_exists(file)) continue;
    // srun, after PATH, looks at the folder too, for what may be executed (search_path in Slurm's srun).
    if (call.context.launcher && ::access(file.c_str(), X_OK) == 0) continue;
    tell_not_in_path(call, typed, "python ", report);
  }
}

constexpr Rule kClashRules[] = {
    {"options-exclude", Level::job, "sbatch refuses a script with two options that exclude each other",
     "#!/bin/bash\n#SBATCH --mem=8G\n#SBATCH --mem-per-cpu=2G\n", "#!/bin/bash\n#SBATCH --mem-per-cpu=2G\n",
     "sbatch: \"--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\"", find_options_exclude},
    {"script-as-program", Level::job,
     "a program without a folder is looked for in PATH, and a project's files are not there",
     "#!/bin/bash\n#SBATCH -n 1\nsrun train.py\n", "#!/bin/bash\n#SBATCH -n 1\nsrun python train.py\n",
     "students' scripts; slurmstepd: \"execve(): train.py: No such file or directory\"",
     find_script_as_program},
};

}  // namespace

std::span<const Rule> clash_rules() { return kClashRules; }

}  // namespace stoker::explain
