#include "script_lint/rules/commands/interactive.h"

#include <algorithm>

#include "script_lint/inner_command.h"
#include "script_lint/rules/commands/variable_uses.h"

namespace stoker::script_lint {
namespace {

bool is_shell(std::string_view program) {
  const std::string_view base = program.substr(program.rfind('/') + 1);
  return is_one_of(base, {"bash", "sh", "zsh", "tcsh", "csh", "fish", "$SHELL"});
}

// A shell without a file or a command to run.
bool is_bare_shell(const std::vector<std::string>& words, std::size_t at) {
  return is_shell(words[at]) && std::all_of(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end(),
                                            [](const std::string& word) {
                                              return is_one_of(word, {"-i", "-l", "--login", "-il", "-li"});
                                            });
}

std::vector<std::string> with_program(std::string program, const ProgramCall& call) {
  std::vector<std::string> words = {std::move(program)};
  words.insert(words.end(), call.words.begin(), call.words.end());
  return words;
}

// "singularity shell --nv image.sif", and nothing behind the image.
bool is_container_shell(const ProgramCall& call) {
  if ((call.program != "singularity" && call.program != "apptainer") || call.words.size() < 2) return false;
  std::vector<std::string> words = with_program(call.program, call);
  const auto verb = std::find_if(words.begin() + 1, words.end(),
                                 [](const std::string& word) { return !word.starts_with('-'); });
  if (verb == words.end() || *verb != "shell") return false;
  *verb = "exec";
  return !inner_command(call.program, words);
}

bool is_environment_shell(const ProgramCall& call) {
  return (call.program == "poetry" || call.program == "pipenv") && call.words.size() == 1 &&
         call.words[0] == "shell";
}

// No input is redirected to it; a batch job has no terminal.
bool reads_nothing(const ProgramCall& call) {
  return call.pipeline_index == 0 &&
         std::none_of(call.command->redirections.begin(), call.command->redirections.end(),
                      [](const bash::Redirection& each) { return each.operation[0] == '<'; });
}

// Does some work, as far as known.
bool does_work(const ProgramCall& call) {
  if (call.context.is_substituted || opens_shell(call)) return false;
  const bool is_script = call.program.ends_with(".sh") || call.program.ends_with(".py") ||
                         (is_shell(call.program) && !call.context.launcher && !call.words.empty());
  return is_work(call) || is_script || call.program == "make" || call.program == "sbatch";
}

}  // namespace

bool opens_shell(const ProgramCall& call) {
  if (call.program == "salloc") return !inner_command("srun", with_program("srun", call));
  if (call.program != "srun" || !call.has("--pty")) return false;
  const std::vector<std::string> words = with_program("srun", call);
  const auto program = inner_command("srun", words);
  return program && is_bare_shell(words, *program);
}

void find_open_shells(const Script& script, FindingReport& report) {
  if (script.request.directives.empty()) return;
  bool has_work = false;
  std::size_t last_work = 0;
  for (const ProgramCall& call : script.calls) {
    if (!does_work(call)) continue;
    has_work = true;
    last_work = std::max(last_work, call.span.begin);
  }
  for (const ProgramCall& call : script.calls) {
    const bool opens = opens_shell(call);
    const bool is_inside = is_container_shell(call) || is_environment_shell(call);
    const bool is_plain = !call.context.is_remote && !call.context.is_substituted &&
                          !call.context.is_condition && call.context.function.empty() && reads_nothing(call);
    if ((!opens && !is_inside) || !is_plain) continue;
    ScriptFinding& finding = report.add(
        call.span,
        message("{} opens an interactive shell, which exits at once in a batch job", call.program));
    // Following commands run in the job's shell, without the programs of the container.
    const bool is_lost = !has_work || (is_inside && last_work > call.span.end);
    if (!is_lost) finding.level = Level::time;
    finding.fix = is_container_shell(call) ? "singularity exec IMAGE COMMAND"
                  : is_inside              ? format("{} run COMMAND", call.program)
                                           : "srun COMMAND";
  }
}

}  // namespace stoker::script_lint
