// Rules for scripts without work: only setup is left, and the work is commented out.
#include <algorithm>

#include <re2/re2.h>

#include "bash/characters.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// A sourced setup file; other files may do the work.
bool is_setup_file(std::string_view file) {
  const std::string lower = to_lower(file);
  for (std::string_view word : {"setup", "env", "activate", "conda", "bashrc", "profile", "init", "module"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

// Prints something, or prepares later commands.
bool is_preparation(const ProgramCall& call) {
  if (call.program == "source" || call.program == ".")
    return !call.words.empty() && is_setup_file(call.words[0]);
  return is_one_of(call.program,
                   {"echo",       "printf", "date",  "hostname", "pwd",   "whoami",     "module",
                    "ml",         "conda",  "mamba", "export",   "cd",    "nvidia-smi", "set",
                    "ulimit",     "unset",  "which", "env",      "mkdir", "uname",      "lscpu",
                    "deactivate", "exit",   "true",  "sleep",    "wait",  "free",       "printenv"});
}

// "# srun python train.py": a disabled command, not a sentence.
bool is_command(std::string_view comment) {
  const std::size_t first = comment.find_first_not_of("# \t");
  if (first == std::string_view::npos) return false;
  const std::string_view text = comment.substr(first);
  const std::string_view program = text.substr(0, text.find(' '));
  if (is_one_of(program, {"srun", "mpirun", "torchrun", "deepspeed"}))
    return text.find(" -") != std::string_view::npos || text.find(" ./") != std::string_view::npos;
  if (is_one_of(program, {"bash", "sh"}))
    return comment.substr(0, first).find_first_of('#', 1) == std::string_view::npos &&
           text.find(".sh") != std::string_view::npos;
  if (program.starts_with("./")) return program.size() > 2 && bash::is_name_start(program[2]);
  return is_one_of(program, {"python", "python3", "Rscript", "julia"}) &&
         (text.find(".py") != std::string_view::npos || text.find(" -m ") != std::string_view::npos ||
          text.find(".R") != std::string_view::npos || text.find(".jl") != std::string_view::npos);
}

// "# Insert your code here", "# your commands go here".
bool is_work_placeholder(std::string_view comment) {
  static const re2::RE2 kAsks(
      R"((?i)\b(?:insert|put|add|write|enter|place|paste|replace|your)\b.*)"
      R"(\b(?:code|commands?|programs?|scripts?|job|application|executable|workload|tasks?)\b|)"
      R"(\b(?:code|commands?|programs?|application|workload)\b (?:goes|go|comes?) (?:here|below))");
  return re2::RE2::PartialMatch(re2::StringPiece(comment.data(), comment.size()), kAsks);
}

// Prints nothing and does nothing: the end of a script, or its setup.
bool is_silent(const ProgramCall& call) {
  return is_preparation(call) &&
         !is_one_of(call.program, {"hostname", "nvidia-smi", "sleep", "uname", "lscpu", "free", "which",
                                   "pwd", "whoami", "env", "printenv"});
}

// A template without work. REQUIRES: all calls are preparations.
void find_empty_form(const Script& script, FindingReport& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin == 0 || text.starts_with("#SBATCH") || text.starts_with("#!") ||
        !is_work_placeholder(text))
      continue;
    const bool is_empty = std::all_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
      return call.span.begin < comment.span.begin || is_silent(call);
    });
    if (!is_empty) continue;
    report.add(comment.span, message("the command is missing here, and the job does nothing"));
    return;
  }
}

void find_nothing_started(const Script& script, FindingReport& report) {
  // Keeps the node allocated for interactive use.
  const bool waits = std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return call.program == "sleep" && !call.words.empty() &&
           (call.words[0].size() > 3 || call.words[0].find_first_of("dh") != std::string::npos);
  });
  const bool is_done = !waits && script.is_shell && !script.tree.error &&
                       !script.request.directives.empty() &&
                       std::all_of(script.calls.begin(), script.calls.end(), is_preparation);
  if (!is_done) return;
  for (const bash::Comment& comment : script.tree.comments) {
    if (!is_command(script.at(comment.span)) || script.at(comment.span).starts_with("#SBATCH")) continue;
    report.add(comment.span, message("this is a comment, and the rest of the script does no work"));
    return;
  }
  find_empty_form(script, report);
}

// A simple command that is always reached and followed by the next line.
bool is_reached_always(const bash::List& list, std::size_t at) {
  const bash::Item& item = list.items[at];
  const bool is_chained = at > 0 && (list.items[at - 1].next == bash::Connector::and_ ||
                                     list.items[at - 1].next == bash::Connector::or_);
  return !is_chained && item.next != bash::Connector::background && item.next != bash::Connector::and_ &&
         item.next != bash::Connector::or_ && item.pipeline.commands.size() == 1 &&
         item.pipeline.commands[0].kind == bash::CommandKind::simple &&
         !item.pipeline.commands[0].words.empty();
}

// "exit" before any work, or "exec a" followed by work.
void find_never_reached(const Script& script, FindingReport& report) {
  if (!script.is_shell || script.request.directives.empty()) return;
  const bash::List& list = script.tree.list;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (!is_reached_always(list, i)) continue;
    const bash::ShellCommand& command = list.items[i].pipeline.commands[0];
    const std::string program = flatten(command.words[0], script.text);
    const bool is_exec = program == "exec" && command.words.size() > 1;
    if (!is_exec && program != "exit") continue;
    const auto behind = std::find_if(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
      return call.span.begin >= command.span.end && is_work(call) && call.context.function.empty();
    });
    const bool has_begun =
        std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
          return call.span.end <= command.span.begin && !is_preparation(call);
        });
    if (behind == script.calls.end() || (!is_exec && has_begun)) return;
    report.add(command.words[0].span,
               is_exec ? message("exec replaces the shell by {}, and {} after it never starts",
                                 flatten(command.words[1], script.text), behind->program)
                       : message("the script ends here, and {} after it never starts", behind->program));
    return;
  }
}

constexpr Rule kNoWorkRules[] = {
    {"nothing-started", Level::job, "a job with all its work in comments ends at once, as COMPLETED",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\n# python train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\npython train.py\n", "users' scripts",
     find_nothing_started},
    {"never-reached", Level::job, "the shell runs nothing after exit, or after exec with a program",
     "#!/bin/bash\n#SBATCH -n 1\nexec ./first\nsrun ./second\n",
     "#!/bin/bash\n#SBATCH -n 1\n./first\nsrun ./second\n", "bash(1), exec", find_never_reached},
};

}  // namespace

std::span<const Rule> no_work_rules() { return kNoWorkRules; }

}  // namespace stoker::script_lint
