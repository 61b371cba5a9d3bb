// Rules for signals before the time limit: traps of the batch script that never run.
#include <algorithm>
#include <cctype>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "USR1" of "SIGUSR1", "usr1" and "10".
std::string signal_name(std::string_view text) {
  std::string name(text);
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (name == "10") return "USR1";
  if (name == "12") return "USR2";
  if (name == "15") return "TERM";
  return name;
}

// --signal=[R|B][:]SIGNAL[@SECONDS]
struct RequestedSignal {
  const Directive* directive = nullptr;
  std::string name;
  bool reaches_shell = false;
};
RequestedSignal requested_signal(const Script& script) {
  RequestedSignal asked;
  asked.directive = script.request.find("--signal");
  if (asked.directive == nullptr) return asked;
  const std::string_view value = asked.directive->option.value;
  const std::size_t colon = value.find(':');
  const std::string_view flags = colon == std::string_view::npos ? "" : value.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? value : value.substr(colon + 1);
  asked.reaches_shell = flags.find_first_of("Bb") != std::string_view::npos;
  asked.name = signal_name(rest.substr(0, rest.find('@')));
  return asked;
}

// A trap of the batch script's own shell.
bool is_own_trap(const ProgramCall& call) {
  return call.program == "trap" && call.words.size() > 1 && !call.context.launcher &&
         !call.context.is_subshell && !call.context.is_remote && call.words[0] != "-" &&
         !call.words[0].empty() && call.words[0] != "-p";
}

bool traps(const ProgramCall& trap, std::string_view signal) {
  return std::any_of(trap.words.begin() + 1, trap.words.end(),
                     [&](const std::string& word) { return signal_name(word) == signal; });
}

// The trap, or a function of the script, puts the job into the queue again.
bool requeues(const Script& script, const ProgramCall& trap) {
  const auto queues = [](std::string_view text) {
    return text.find("requeue") != std::string_view::npos || text.find("sbatch") != std::string_view::npos;
  };
  return queues(trap.words[0]) ||
         std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
           const bool is_queueing =
               call.program == "sbatch" ||
               (call.program == "scontrol" && !call.words.empty() && call.words[0] == "requeue");
           return is_queueing && !call.context.launcher && call.context.function == trap.words[0];
         });
}

// The work that the shell waits for in the foreground: it runs no trap before the end of the work.
const ProgramCall* foreground_work(const Script& script, const ProgramCall& trap) {
  for (const ProgramCall& call : script.calls) {
    if (call.span.begin < trap.span.end || !is_work(call) || call.context.launcher) continue;
    const Context& context = call.context;
    if (context.is_background || context.is_substituted || context.is_remote || context.loops > 0 ||
        !context.function.empty())
      continue;
    return &call;
  }
  return nullptr;
}

// Puts the work into the background if it is alone on its line.
void add_edit(const Script& script, const ProgramCall& work, ScriptFinding& finding) {
  const std::size_t end = work.pipeline->span.end;
  const std::size_t line_end = script.line_of(end).end;
  const bool is_alone = trim(script.at({end, line_end})).empty() && work.pipeline_index == 0 &&
                        work.pipeline->commands.size() == 1 && !work.context.is_condition;
  if (is_alone) finding.edits = {{end, end, " &\nwait $!"}};
  std::string command(script.at(work.pipeline->span));
  for (std::size_t at = 0; (at = command.find("\\\n", at)) != std::string::npos;) command.erase(at, 2);
  finding.fix = command.find('\n') == std::string::npos
                    ? message("`{} & wait $!`", printable(command))
                    : message("put {} into the background with `&`, then `wait $!`", work.program);
}

void find_trap_that_never_runs(const Script& script, FindingReport& report) {
  const RequestedSignal asked = requested_signal(script);
  if (asked.directive == nullptr) return;
  for (const ProgramCall& trap : script.calls) {
    if (!is_own_trap(trap)) continue;
    const bool is_requeue = requeues(script, trap);
    const auto add = [&](const Message& text) -> ScriptFinding& {
      ScriptFinding& finding = report.add(trap.span, text);
      if (!is_requeue) finding.level = Level::time;
      return finding;
    };
    if (!traps(trap, asked.name)) {
      const std::string_view other = asked.name == "USR1" ? "USR2" : "USR1";
      const bool is_other = (asked.name == "USR1" || asked.name == "USR2") && traps(trap, other);
      const bool has_own =
          std::any_of(script.calls.begin(), script.calls.end(),
                      [&](const ProgramCall& each) { return is_own_trap(each) && traps(each, asked.name); });
      if (!is_other || has_own) continue;
      add(message("the trap for {} never runs: --signal sends {}", other, asked.name)).fix =
          format("trap {} {}", shell_quote(trap.words[0]), asked.name);
      continue;
    }
    if (!asked.reaches_shell) {
      ScriptFinding& finding = add(message(
          "the trap for {} never runs: without B: --signal reaches the job steps, not the batch script",
          asked.name));
      const std::size_t begin = asked.directive->value.begin;
      // From the command line of submit.
      if (asked.directive->value.end > 0) finding.edits = {{begin, begin, "B:"}};
      finding.fix = format("#SBATCH --signal=B:{}", asked.directive->option.value);
      continue;
    }
    const ProgramCall* work = foreground_work(script, trap);
    if (work == nullptr) continue;
    ScriptFinding& finding = add(message(
        "the trap for {} does not run before {} ends: the shell waits for it in the foreground, and Slurm "
        "kills both at the time limit",
        asked.name, work->program));
    add_edit(script, *work, finding);
  }
}

constexpr Rule kSignalRules[] = {
    {"trap-never-runs", Level::job,
     "bash runs a trap only after its foreground command, and --signal reaches bash only with B:",
     "#!/bin/bash\n#SBATCH --signal=B:USR1@120\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python "
     "train.py\n",
     "#!/bin/bash\n#SBATCH --signal=B:USR1@120\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python "
     "train.py &\nwait $!\n",
     "bash(1), signals; sbatch(1), --signal", find_trap_that_never_runs},
};

}  // namespace

std::span<const Rule> signal_rules() { return kSignalRules; }

}  // namespace stoker::script_lint
