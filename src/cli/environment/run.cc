// `stoker environment run`: docs/commands/environment-run.md
#include "base/process.h"
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
