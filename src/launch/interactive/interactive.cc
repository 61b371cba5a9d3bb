#include "launch/interactive/interactive.h"

#include <algorithm>
#include <array>

#include "launch/start/environment.h"
#include "launch/start/shell_environment.h"
#include "launch/start/submit.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {
namespace {

// Options for batch scripts only.
constexpr std::array<std::string_view, 5> kScriptOnly = {"--output", "--open-mode", "--requeue", "--signal",
                                                         "--comment"};
constexpr std::string_view kLine = "#SBATCH ";

// Reverses slurm::sbatch_quote.
std::string unquote(std::string_view text) {
  std::string plain;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else {
      if (is_quoted && text[i] == '\\' && i + 1 < text.size()) ++i;
      plain += text[i];
    }
  }
  return plain;
}

bool is_script_only(std::string_view option) {
  const std::string_view name = option.substr(0, option.find('='));
  return std::find(kScriptOnly.begin(), kScriptOnly.end(), name) != kScriptOnly.end();
}

}  // namespace

Result<std::vector<std::string>> salloc_arguments(const Request& request,
                                                  const std::vector<std::string>& command,
                                                  Terminal terminal) {
  const record::Attempt nowhere(request.job.record.directory / "run/attempts/1", 1);
  STOKER_ASSIGN_OR_RETURN(script, batch_script(request, nowhere, "run"));
  std::vector<std::string> words = {"salloc"};
  for (std::string_view line : split(script, '\n')) {
    if (!line.starts_with(kLine)) continue;
    line.remove_prefix(kLine.size());
    if (is_script_only(line)) continue;
    // "-C v100": a short option and its value are two arguments.
    const std::size_t blank = line.starts_with("--") ? std::string_view::npos : line.find(' ');
    words.push_back(unquote(line.substr(0, blank)));
    if (blank != std::string_view::npos) words.push_back(unquote(line.substr(blank + 1)));
  }
  words.insert(words.end(), {"srun", "--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none", "--mem=0"});
  if (terminal == Terminal::forwarded) words.emplace_back("--pty");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Result<Environment> interactive_environment(const job::Job& job, Environment base, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(loaded, load_environment(job.environment, std::move(base), deadline));
  return slurm::submission_environment(
      scheduler_environment(job, inherited_environment(job, std::move(loaded.variables))));
}

std::string recording_bashrc(const Path& notes) {
  return format(
      "[ -f ~/.bashrc ] && . ~/.bashrc\n"
      "HISTFILE=\n"
      "HISTCONTROL=\n"
      "set -o history\n"
      "__stoker_seen=$(HISTTIMEFORMAT= history 1)\n"
      "__stoker_note() {{\n"
      "  local code=$? line\n"
      "  line=$(HISTTIMEFORMAT= history 1)\n"
      "  [ \"$line\" = \"$__stoker_seen\" ] && return\n"
      "  __stoker_seen=$line\n"
      "  shopt -s extglob\n"
      "  printf '%d %s\\0' \"$code\" \"${{line##*([[:space:]])+([0-9])*([[:space:]])}}\" >> {}\n"
      "}}\n"
      "PROMPT_COMMAND=__stoker_note\n",
      shell_quote(notes.string()));
}

std::vector<std::string> successful_lines(std::string_view notes) {
  constexpr std::array<std::string_view, 8> kReadOnlyCommands = {"ls",      "pwd",   "exit", "logout",
                                                                 "history", "clear", "man",  "less"};
  std::vector<std::string> lines;
  for (std::string_view note : split(notes, '\0')) {
    if (!note.starts_with("0 ")) continue;
    const std::string_view line = trim(note.substr(2));
    const std::string_view first = line.substr(0, line.find_first_of(" \t;|&"));
    const bool is_read_only =
        std::find(kReadOnlyCommands.begin(), kReadOnlyCommands.end(), first) != kReadOnlyCommands.end();
    if (!line.empty() && !is_read_only) lines.emplace_back(line);
  }
  return lines;
}

job::Job job_of_lines(job::Job job, const std::vector<std::string>& lines) {
  job.train.reset();
  job.command =
      job::RunCommand{.arguments = {"/bin/sh", "-c", "set -e\n" + join(lines, "\n")}, .is_shell = true};
  return job;
}

}  // namespace stoker::launch
