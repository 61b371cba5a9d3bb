// A rule over scripts of which nothing is left but what prepares the work: the work itself is a comment.
#include <algorithm>

#include <re2/re2.h>

#include "base/text.h"
#include "explain/bash/characters.h"
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
bool asks_for_work(std::string_view comment) {
  static const re2::RE2 kAsks(
      R"((?i)\b(?:insert|put|add|write|enter|place|paste|replace|your)\b.*)"
      R"(\b(?:code|commands?|programs?|scripts?|job|application|executable|workload|tasks?)\b|)"
      R"(\b(?:code|commands?|programs?|application|workload)\b (?:goes|go|comes?) (?:here|below))");
  return re2::RE2::PartialMatch(re2::StringPiece(comment.data(), comment.size()), kAsks);
}

// Tells nobody anything and does nothing: an end of the script, or a way into its environment.
bool is_silent(const Call& call) {
  return is_preparation(call) &&
         !is_one_of(call.program, {"hostname", "nvidia-smi", "sleep", "uname", "lscpu", "free", "which",
                                   "pwd", "whoami", "env", "printenv"});
}

// A form whose place for the work is still empty. REQUIRES: all calls are preparations.
void find_empty_form(const Script& script, Report& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin == 0 || text.starts_with("#SBATCH") || text.starts_with("#!") ||
        !asks_for_work(text))
      continue;
    const bool is_empty = std::all_of(script.calls.begin(), script.calls.end(), [&](const Call& call) {
      return call.span.begin < comment.span.begin || is_silent(call);
    });
    if (!is_empty) continue;
    report.add(comment.span, report.say("the place for the work is still empty, and the job starts nothing"));
    return;
  }
}

void find_nothing_started(const Script& script, Report& report) {
  // Kept alive for somebody who comes to the node.
  const bool waits = std::any_of(script.calls.begin(), script.calls.end(), [](const Call& call) {
    return call.program == "sleep" && !call.words.empty() &&
           (call.words[0].size() > 3 || call.words[0].find_first_of("dh") != std::string::npos);
  });
  const bool is_done = !waits && script.is_shell && !script.tree.error &&
                       !script.request.directives.empty() &&
                       std::all_of(script.calls.begin(), script.calls.end(), is_preparation);
  if (!is_done) return;
  for (const bash::Comment& comment : script.tree.comments) {
    if (!is_command(script.at(comment.span)) || script.at(comment.span).starts_with("#SBATCH")) continue;
    report.add(comment.span, report.say("this is a comment, and nothing else of the script does any work"));
    return;
  }
  find_empty_form(script, report);
}

// The command behind whose end the shell goes on with the next line, whatever was before it.
bool is_reached_always(const bash::List& list, std::size_t at) {
  const bash::Item& item = list.items[at];
  const bool is_chained = at > 0 && (list.items[at - 1].next == bash::Connector::and_ ||
                                     list.items[at - 1].next == bash::Connector::or_);
  return !is_chained && item.next != bash::Connector::background && item.next != bash::Connector::and_ &&
         item.next != bash::Connector::or_ && item.pipeline.commands.size() == 1 &&
         item.pipeline.commands[0].kind == bash::CommandKind::simple &&
         !item.pipeline.commands[0].words.empty();
}

// "exit" before the script has done anything, "exec a" with work behind it: the shell is gone.
void find_never_reached(const Script& script, Report& report) {
  if (!script.is_shell || script.request.directives.empty()) return;
  const bash::List& list = script.tree.list;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (!is_reached_always(list, i)) continue;
    const bash::Command& command = list.items[i].pipeline.commands[0];
    const std::string program = flat(command.words[0], script.text);
    const bool is_exec = program == "exec" && command.words.size() > 1;
    if (!is_exec && program != "exit") continue;
    const auto behind = std::find_if(script.calls.begin(), script.calls.end(), [&](const Call& call) {
      return call.span.begin >= command.span.end && is_work(call) && call.context.function.empty();
    });
    const bool has_begun = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& call) {
      return call.span.end <= command.span.begin && !is_preparation(call);
    });
    if (behind == script.calls.end() || (!is_exec && has_begun)) return;
    report.add(command.words[0].span, is_exec
                                          ? report.say("exec puts {} in the place of the shell, and {} "
                                                       "behind it is never started",
                                                       flat(command.words[1], script.text), behind->program)
                                          : report.say("the script ends here, and {} behind it is never "
                                                       "started",
                                                       behind->program));
    return;
  }
}

constexpr Rule kNothingRules[] = {
    {"nothing-started", Level::job, "a job whose work is behind # ends at once, as COMPLETED",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\n# python train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\nmodule load cuda\npython train.py\n", "users' scripts",
     find_nothing_started},
    {"never-reached", Level::job, "behind exit, and behind exec with a program, the shell runs nothing",
     "#!/bin/bash\n#SBATCH -n 1\nexec ./first\nsrun ./second\n",
     "#!/bin/bash\n#SBATCH -n 1\n./first\nsrun ./second\n", "bash(1), exec", find_never_reached},
};

}  // namespace

std::span<const Rule> nothing_rules() { return kNothingRules; }

}  // namespace stoker::explain
