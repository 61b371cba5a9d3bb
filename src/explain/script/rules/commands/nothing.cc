// A rule over scripts of which nothing is left but what prepares the work: the work itself is a comment.
#include <algorithm>

#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

// A file that is sourced for what it sets; another one may do the work.
bool is_setup_file(std::string_view file) {
  const std::string lower = to_lower(file);
  for (std::string_view word : {"setup", "env", "activate", "conda", "bashrc", "profile", "init", "module"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

// Says something, or prepares what comes behind it.
bool is_preparation(const Call& call) {
  if (call.program == "source" || call.program == ".")
    return !call.words.empty() && is_setup_file(call.words[0]);
  return is_one_of(call.program,
                   {"echo",       "printf", "date",  "hostname", "pwd",   "whoami",     "module",
                    "ml",         "conda",  "mamba", "export",   "cd",    "nvidia-smi", "set",
                    "ulimit",     "unset",  "which", "env",      "mkdir", "uname",      "lscpu",
                    "deactivate", "exit",   "true",  "sleep",    "wait",  "free",       "printenv"});
}

// "# srun python train.py": a command that was switched off, no sentence.
bool is_command(std::string_view comment) {
  const std::size_t first = comment.find_first_not_of("# \t");
  if (first == std::string_view::npos) return false;
  const std::string_view text = comment.substr(first);
  const std::string_view program = text.substr(0, text.find(' '));
  if (is_one_of(program, {"srun", "mpirun", "torchrun", "deepspeed"}))
    return text.find(" -") != std::string_view::npos;
  return is_one_of(program, {"python", "python3", "Rscript", "julia"}) &&
         (text.find(".py") != std::string_view::npos || text.find(" -m ") != std::string_view::npos ||
          text.find(".R") != std::string_view::npos || text.find(".jl") != std::string_view::npos);
}

void find_nothing_started(const Script& script, Report& report) {
  const bool is_done = script.is_shell && !script.tree.error && !script.request.directives.empty() &&
                       std::all_of(script.calls.begin(), script.calls.end(), is_preparation);
  if (!is_done) return;
  for (const bash::Comment& comment : script.tree.comments) {
    if (!is_command(script.at(comment.span)) || script.at(comment.span).starts_with("#SBATCH")) continue;
    report.add(comment.span, report.say("this is a comment, and nothing else of the script does any work"));
    return;
  }
}

constexpr Rule kNothingRules[] = {
    {"nothing-started", Level::job, "a job whose work is behind # ends at once, as COMPLETED",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\n# python train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\npython train.py\n", "users' scripts",
     find_nothing_started},
};

}  // namespace

std::span<const Rule> nothing_rules() { return kNothingRules; }

}  // namespace stoker::explain
