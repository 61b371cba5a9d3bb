#include "launch/start/shell_environment.h"

#include <algorithm>
#include <array>

#include "base/file.h"

namespace stoker::launch {
namespace {

// Exit codes of the program below.
constexpr int kNoModuleCommand = 90;
constexpr int kModuleFailed = 91;
constexpr int kNoConda = 92;
constexpr int kCondaFailed = 93;

// Module messages go to standard error, and only the environment to standard output. Uses the `module`
// function of the inherited shell, else the usual files of Lmod and environment-modules.
constexpr const char* kProgram = R"(
exec 3>&1 1>&2
conda_name=$1
names=("${@:2}")
set --
if [ ${#names[@]} -gt 0 ]; then
  if ! type module >/dev/null 2>&1; then
    for file in "${LMOD_PKG-}/init/bash" "${MODULESHOME-}/init/bash" /usr/share/lmod/lmod/init/bash \
        /usr/share/modules/init/bash /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
      if [ -r "$file" ]; then . "$file"; break; fi
    done
  fi
  type module >/dev/null 2>&1 || exit 90
  for name in "${names[@]}"; do
    module load "$name" || { echo "stoker: failed: $name"; exit 91; }
  done
fi
if [ -n "$conda_name" ]; then
  hook=$(conda shell.bash hook) || exit 92
  eval "$hook"
  conda activate "$conda_name" || exit 93
fi
exec env -0 >&3
)";

// Variables of the helper shell.
constexpr std::array<std::string_view, 5> kShellVariables = {"_", "SHLVL", "PWD", "OLDPWD", "BASHOPTS"};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.empty()) lines.push_back(printable(line.substr(0, 300)));
  }
  return lines;
}

// Lmod prints " 1) python/3.10 => python/3.11" after a heading; environment-modules prints "Unloading
// python/3.10".
std::vector<std::string> replacements(std::string_view output) {
  std::vector<std::string> notes;
  for (const std::string& line : lines_of(output)) {
    const std::size_t arrow = line.find(" => ");
    const std::size_t number = line.find(") ");
    if (arrow != std::string::npos && number < arrow) {
      notes.push_back(format("module {} was replaced by {}",
                             trim(line.substr(number + 2, arrow - number - 2)),
                             trim(line.substr(arrow + 4))));
    } else if (line.find("automatically replacing") != std::string::npos || line.starts_with("Unloading ")) {
      notes.push_back(line);
    }
  }
  return notes;
}

// "stoker: failed: NAME" on one of its last lines.
std::string failed_module(std::string_view output) {
  constexpr std::string_view kMark = "stoker: failed: ";
  const std::size_t at = output.rfind(kMark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = output.substr(at + kMark.size());
  return printable(rest.substr(0, rest.find('\n')));
}

std::string first_error_line(std::string_view output) {
  for (const std::string& line : lines_of(output)) {
    if (line.find("stoker: failed") == std::string::npos &&
        line.find("detected the following error") == std::string::npos)
      return line;
  }
  return "";
}

Status problem(int code, const job::Environment& wanted, std::string_view output) {
  const std::string words = first_error_line(output);
  const std::string tail = words.empty() ? "" : format(" ({})", words);
  switch (code) {
    case kNoModuleCommand:
      return not_found("environment.modules: there is no `module` command on this machine");
    case kModuleFailed: {
      const std::string name = failed_module(output);
      return not_found("environment.modules: '{}' cannot be loaded{}", name, tail)
          .cure("module avail {}", shell_quote(name.substr(0, name.find('/'))));
    }
    case kNoConda:
      return not_found("environment.conda: there is no conda on this machine{}",
                       wanted.modules.empty() ? "" : ", even with the job's modules")
          .cure("environment: {{modules: [miniforge]}}      (the name depends on the site)");
    case kCondaFailed:
      return not_found("environment.conda: '{}' cannot be activated{}", printable(wanted.conda.value_or("")),
                       tail)
          .cure("conda env list");
    default:
      return invalid("environment.modules: the shell that loads them ended with exit code {}{}", code, tail);
  }
}

Environment parse(std::string_view text, const Environment& base) {
  Environment variables;
  for (std::string_view entry : split(text, '\0')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = entry.substr(0, equals);
    if (std::find(kShellVariables.begin(), kShellVariables.end(), name) != kShellVariables.end()) continue;
    variables.emplace_back(name, entry.substr(equals + 1));
  }
  for (std::string_view name : kShellVariables) {
    const std::string value = variable(base, name);
    if (!value.empty()) variables.emplace_back(name, value);
  }
  return variables;
}

}  // namespace

Result<ShellEnvironment> load_environment(const job::Environment& wanted, Environment base,
                                          Deadline deadline) {
  if (wanted.modules.empty() && !wanted.conda) return ShellEnvironment{std::move(base), {}};
  Command command;
  command.argv = {"/bin/bash", "--noprofile", "--norc", "-c", kProgram, "stoker", wanted.conda.value_or("")};
  command.argv.insert(command.argv.end(), wanted.modules.begin(), wanted.modules.end());
  command.environment = base;
  const auto done = run_program(command, deadline);
  if (!done.ok()) return done.status().with_context("environment.modules");
  if (!done->exit.ok()) return problem(done->exit.shell_code(), wanted, done->err);
  return ShellEnvironment{parse(done->out, base), replacements(done->err)};
}

}  // namespace stoker::launch
