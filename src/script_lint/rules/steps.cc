// Rules for steps and processes that exceed the job, and for files in missing folders.
#include <algorithm>
#include <set>

#include "base/file.h"
#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

std::optional<std::uint64_t> count_option(const ProgramCall& call,
                                          std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    const auto value = call.option(name);
    std::uint64_t number = 0;
    if (value && parse_number(*value, &number)) return number;
  }
  return std::nullopt;
}

// Selects GPUs by number, on nodes where a job sees all GPUs.
bool picks_gpus(const Script& script) {
  return std::any_of(script.settings.begin(), script.settings.end(), [](const VariableSetting& setting) {
    return setting.name == "CUDA_VISIBLE_DEVICES" && setting.value.find(',') != std::string::npos;
  });
}

// torchrun --nproc_per_node=4 with two GPUs per node.
void find_more_ranks(const Script& script, FindingReport& report) {
  const auto gpus = script.request.gpus_per_node();
  if (!gpus || *gpus == 0 || script.request.find("--exclusive") != nullptr || script.mentions("--use_cpu") ||
      script.mentions("gloo") || picks_gpus(script))
    return;
  for (const ProgramCall& call : script.calls) {
    if (!is_agent(call)) continue;
    std::optional<std::uint64_t> ranks;
    if (call.program == "deepspeed") {
      ranks = count_option(call, {"--num_gpus"});
    } else if (call.program == "accelerate") {
      const bool is_single = script.request.nodes() == 1 && !call.has("--num_machines") && !call.has("--cpu");
      if (is_single) ranks = count_option(call, {"--num_processes", "--num-processes"});
    } else {
      ranks = count_option(call, {"--nproc_per_node", "--nproc-per-node"});
    }
    if (!ranks || *ranks <= *gpus) continue;
    report
        .add(call.span, *gpus == 1 ? message("{} starts {} ranks on a node, and the job has 1 GPU there: "
                                             "the remaining ranks find none",
                                             call.program, *ranks)
                                   : message("{} starts {} ranks on a node, and the job has {} GPUs "
                                             "there: the remaining ranks find none",
                                             call.program, *ranks, *gpus))
        .fix = format("#SBATCH --gpus-per-node={}", *ranks);
  }
}

// The launcher without its program.
ProgramCall without_program(const ProgramCall& call) {
  std::vector<std::string> all = {call.program};
  all.insert(all.end(), call.words.begin(), call.words.end());
  ProgramCall own = call;
  const auto program = inner_command(call.program, all);
  if (program && *program > 0) own.words.resize(std::min(own.words.size(), *program - 1));
  return own;
}

// A count glued to its letter: "-n4".
std::optional<std::uint64_t> step_count(const ProgramCall& call, std::string_view letter,
                                        std::string_view name) {
  if (const auto count = count_option(call, {name, letter})) return count;
  for (const std::string& word : call.words) {
    std::uint64_t number = 0;
    if (word.starts_with(letter) && word.size() > letter.size() &&
        parse_number(std::string_view(word).substr(letter.size()), &number))
      return number;
    if (!word.starts_with('-')) break;
  }
  return std::nullopt;
}

// The count of "gpu:v100:4" and "4"; nothing if unknown.
std::optional<std::uint64_t> gpu_count(std::string_view value) {
  if (value.find(',') != std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const bool has_number = parse_number(value.substr(value.rfind(':') + 1), &number);
  return has_number ? std::optional(number) : std::nullopt;
}

// Bytes; 0 for all memory, and for an invalid amount.
std::uint64_t memory_of(std::string_view text) {
  return slurm::parse_slurm_memory(text).value_or(ByteCount{}).value;
}

// More memory or GPUs per node than the job has.
bool find_large_share(const ProgramCall& call, const Script& script, FindingReport& report) {
  const Directive* memory = script.request.find("--mem");
  const auto wanted = call.option("--mem");
  const std::uint64_t all = memory == nullptr ? 0 : memory_of(memory->option.value);
  if (all > 0 && wanted && memory_of(*wanted) > all) {
    report
        .add(call.span, message("a step with {} of memory, and the job has {}: srun rejects it", *wanted,
                                memory->option.value))
        .fix = format("#SBATCH --mem={}", *wanted);
    return true;
  }
  const auto gpus = script.request.gpus_per_node();
  const auto resources = call.option("--gres");
  const auto asked = resources && resources->starts_with("gpu:")
                         ? gpu_count(*resources)
                         : gpu_count(call.option("--gpus-per-node").value_or(""));
  if (!gpus || *gpus == 0 || !asked || *asked <= *gpus) return false;
  report
      .add(call.span,
           *gpus == 1
               ? message("a step with {} GPUs per node, and the job has 1: srun rejects it", *asked)
               : message("a step with {} GPUs per node, and the job has {}: srun rejects it", *asked, *gpus))
      .fix = format("#SBATCH --gpus-per-node={}", *asked);
  return true;
}

void find_large_step(const Script& script, FindingReport& report) {
  const Directive* nodes = script.request.find("--nodes");
  const bool has_task_count =
      script.request.find("--ntasks") != nullptr || script.request.find("--ntasks-per-node") != nullptr;
  const bool may_overcommit = script.request.find("--overcommit") != nullptr ||
                              script.request.has_whole_nodes() || script.mentions("hetjob") ||
                              script.mentions("SLURM_OVERCOMMIT");
  std::uint64_t most = 0;
  const Directive* all_tasks = script.request.find("--ntasks");
  const bool is_single = nodes == nullptr && all_tasks != nullptr && all_tasks->option.value == "1";
  if (is_single) most = 1;
  const bool has_most =
      is_single || (nodes != nullptr && parse_number(nodes->option.value, &most) && most > 0);
  for (const ProgramCall& each : script.calls) {
    if (each.program != "srun") continue;
    const ProgramCall call = without_program(each);
    if (call.has("--jobid") || call.has("--overcommit") || call.has("-O")) continue;
    const auto asked = step_count(call, "-N", "--nodes");
    if (has_most && asked && *asked > most) {
      report
          .add(call.span,
               most == 1 ? message("a step on {} nodes, and the job has 1: srun rejects it", *asked)
                         : message("a step on {} nodes, and the job has {}: srun rejects it", *asked, most))
          .fix = format("#SBATCH --nodes={}", *asked);
      continue;
    }
    if (find_large_share(call, script, report)) continue;
    const auto tasks = step_count(call, "-n", "--ntasks");
    const std::uint64_t cores =
        script.request.tasks() *
        std::max<std::uint64_t>(script.request.number("--cpus-per-task").value_or(1), 1);
    // Twice the cores: hardware threads may double them.
    if (!has_task_count || may_overcommit || !tasks || *tasks <= 2 * cores) continue;
    report
        .add(call.span,
             cores == 1
                 ? message("a step of {} tasks, and the job has 1 core: srun rejects it", *tasks)
                 : message("a step of {} tasks, and the job has {} cores: srun rejects it", *tasks, cores))
        .fix = format("#SBATCH --ntasks={}", *tasks);
  }
}

void find_step_too_large(const Script& script, FindingReport& report) {
  find_more_ranks(script, report);
  find_large_step(script, report);
}

// Creates the folder, or may do so.
bool may_make(const ProgramCall& call, std::string_view folder) {
  const bool sources = call.program == "source" || call.program == ".";
  if (sources && !call.words.empty() && call.words[0].ends_with("activate")) return false;
  if (is_one_of(call.program,
                {"git", "tar", "unzip", "rsync", "cp", "ln", "mv", "curl", "wget", "source", "."}))
    return true;
  if (call.program != "mkdir" && call.program != "install") return false;
  const std::string_view top = folder.substr(0, folder.find('/'));
  return std::any_of(call.words.begin(), call.words.end(), [&](const std::string& word) {
    return word.find(top) != std::string::npos || word.find('$') != std::string::npos;
  });
}

// The target with known variables expanded, relative to the start folder.
std::string resolved(const bash::Word& word, const Script& script) {
  std::string out = resolved_text(word, script);
  for (std::string_view here : {"$(pwd)/", "`pwd`/", "$PWD/", "${PWD}/", "$SLURM_SUBMIT_DIR/", "./"}) {
    if (out.starts_with(here)) out.erase(0, here.size());
  }
  return out;
}

// The missing folder of an output file; "" if it exists or is created.
std::string missing_folder(const std::string& target, const ProgramCall& call, const Script& script,
                           const FindingReport& report) {
  const std::size_t slash = target.rfind('/');
  if (slash == std::string::npos || slash == 0 || target.starts_with("..") || target.starts_with('~') ||
      target.starts_with('/'))
    return "";
  const std::string folder = target.substr(0, slash);
  if (folder.find_first_of("$`<>{}*:%") != std::string::npos ||
      folder_exists(report.context().directory / folder))
    return "";
  // Reported for the job's log.
  for (const Directive& directive : script.request.directives) {
    const bool is_log = directive.option.name == "--output" || directive.option.name == "--error";
    std::string log = is_log ? slurm::log_folder(directive.option.value) : "";
    if (log.starts_with("./")) log.erase(0, 2);
    if (log == folder) return "";
  }
  if (holds_program(script, folder)) return "";
  const bool is_made = std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& other) {
    return other.span.begin < call.span.begin && may_make(other, folder);
  });
  return is_made ? "" : folder;
}

// "srun -o logs/a.out": before 23.02 the step does not start. Reported once per folder.
void find_folder_of_step(const Script& script, FindingReport& report) {
  if (report.context().slurm.value_or(0) >= 2302) return;
  std::set<std::string> reported;
  for (const ProgramCall& each : script.calls) {
    if (each.program != "srun" || !each.directory.empty() || each.context.is_remote) continue;
    const ProgramCall call = without_program(each);
    for (const char* name : {"--output", "-o", "--error", "-e"}) {
      std::string target = call.option(name).value_or("");
      if (target.starts_with("./")) target.erase(0, 2);
      const std::string folder = missing_folder(target, each, script, report);
      if (folder.empty() || !reported.insert(folder).second) continue;
      report.insert_line(
          each.span,
          message("folder {} does not exist: before Slurm 23.02 the step ends at once", printable(folder)),
          format("mkdir -p {}", shell_quote(folder)));
    }
  }
}

bool is_output(const bash::Redirection& redirection) {
  return is_one_of(redirection.operation, {">", ">>", "&>", "&>>", ">|", ">&"});
}

// "python train.py > results/train.txt": the shell does not start a program if it cannot open the output
// file.
void find_redirect_folder(const Script& script, FindingReport& report) {
  if (script.request.directives.empty() || script.request.find("--chdir") != nullptr) return;
  find_folder_of_step(script, report);
  for (const ProgramCall& call : script.calls) {
    const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
    if (!is_first || !call.directory.empty() || !call.context.function.empty() || call.context.is_remote)
      continue;
    for (const bash::Redirection& redirection : call.command->redirections) {
      if (!is_output(redirection)) continue;
      const std::string folder = missing_folder(resolved(redirection.target, script), call, script, report);
      if (folder.empty()) continue;
      ScriptFinding& finding = report.insert_line(
          redirection.span,
          message("folder {} does not exist: the shell cannot write there and does not start {}",
                  printable(folder), call.program),
          format("mkdir -p {}", shell_quote(folder)));
      // The shell's output continues in the job log.
      if (call.program == "exec" && call.words.empty()) finding.level = Level::time;
      return;
    }
  }
}

constexpr Rule kStepRules[] = {
    {"step-too-large", Level::job, "a step with more nodes, tasks or GPUs than the job does not start",
     "#!/bin/bash\n#SBATCH --gpus-per-node=1\ntorchrun --nproc_per_node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --gpus-per-node=4\ntorchrun --nproc_per_node=4 train.py\n",
     "torch: \"invalid device ordinal\"; srun: \"More processors requested than permitted\"",
     find_step_too_large},
    {"redirect-folder", Level::job, "the shell does not start a program if it cannot open its output file",
     "#!/bin/bash\n#SBATCH -n 1\npython -u train.py > results/train.txt\n",
     "#!/bin/bash\n#SBATCH -n 1\nmkdir -p results\npython -u train.py > results/train.txt\n",
     "bash: \"results/train.txt: No such file or directory\"", find_redirect_folder},
};

// "experiments/run.jl" of "julia --project=a experiments/run.jl"; "" if unknown.
std::string program_file(const ProgramCall& call, std::string_view text) {
  const bool reads_file =
      is_python(call.program) ||
      is_one_of(call.program, {"julia", "Rscript", "bash", "sh", "source", ".", "perl", "ruby"});
  if (!reads_file) return flatten(*call.program_word, text);
  const auto file = std::find_if(call.words.begin(), call.words.end(),
                                 [](const std::string& word) { return !word.starts_with('-'); });
  return file == call.words.end() ? "" : *file;
}

bool is_below(std::string_view file, std::string_view folder) {
  for (std::string_view here : {"./", "$PWD/", "$SLURM_SUBMIT_DIR/"}) {
    if (file.starts_with(here)) file.remove_prefix(here.size());
  }
  return file.size() > folder.size() + 1 && file.starts_with(folder) && file[folder.size()] == '/';
}

}  // namespace

bool holds_program(const Script& script, std::string_view folder) {
  if (folder.starts_with("./")) folder.remove_prefix(2);
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    if (!call.directory.empty() || call.context.is_remote) return false;
    return is_below(program_file(call, script.text), folder);
  });
}

std::span<const Rule> step_rules() { return kStepRules; }

}  // namespace stoker::script_lint
