// `stoker environment run`: docs/commands/environment-run.md
#include <cerrno>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "rank/venv/node_venv.h"

namespace stoker::cli {
namespace {

struct RunOptions {
  std::string requirements;
  std::string wheelhouse;
  std::optional<Duration> within = std::chrono::minutes(20);
  std::vector<std::string> command;
};

// Replaces this process by the command, searched in the new PATH. Returns only on failure.
Status exec_command(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  for (const auto& [name, value] : environment) {
    if (name == "PATH") ::setenv("PATH", value.c_str(), 1);
  }
  ::execvpe(argv[0], argv.data(), envp.data());
  return posix_error(printable(command.front()), errno);
}

}  // namespace

int environment_run(std::span<const std::string> words, Output& out) {
  RunOptions o;
  Arguments arguments(
      "environment run",
      "Run a command in a virtual environment on the node-local disk; create the environment if necessary.");
  arguments.option("--requirements", &o.requirements, "FILE", "Install this requirements file");
  arguments.option("--wheelhouse", &o.wheelhouse, "DIR", "Install packages only from this directory");
  arguments.option("--within", &o.within, "TIME", "Limit the time to create the environment or wait for it");
  arguments.rest("COMMAND", &o.command, "Command to run");
  arguments.example("stoker environment run --requirements requirements.txt -- python train.py");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.requirements.empty() || o.command.empty())
    return out.fail(invalid("environment run: --requirements FILE and a command after -- are required"));
  rank::VenvRequest request{.requirements = o.requirements, .wheelhouse = o.wheelhouse};
  request.environment = current_environment();
  const auto venv = rank::make_venv(request, Deadline::after(*o.within));
  if (!venv.ok()) return out.fail(venv.error());
  if (!venv->note.empty()) out.note("environment: {}", venv->note);
  if (venv->is_new) out.note("environment: created {} in {:.1f} s", venv->folder, venv->seconds);
  return out.fail(exec_command(o.command, rank::with_venv(request.environment, venv->folder)));
}

}  // namespace stoker::cli
