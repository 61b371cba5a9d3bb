// `stoker notebook`: docs/commands/notebook.md
#include "rank/notebook/notebook.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "launch/notebook/session.h"
#include "net/port.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

struct NotebookArguments {
  std::string ports;
  std::vector<std::string> command_prefix;
};

// Scratch space for a private folder.
Path scratch_here() {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    const auto folder = environment_value(name);
    if (folder && folder_exists(*folder)) return *folder;
  }
  return "/tmp";
}

std::string job_here() {
  const auto here = slurm::current_allocation(slurm::process_environment());
  return here.ok() && *here ? (*here)->job_id : "";
}

}  // namespace

int notebook(std::span<const std::string> words, Output& out) {
  NotebookArguments o;
  Arguments arguments(
      "notebook", "Run a Jupyter server on this node until standard input closes, and print its address.");
  arguments.option("--ports", &o.ports, "A-B",
                   "Listen on a port of this range (default: below the ephemeral ports)");
  arguments.rest("WORD", &o.command_prefix, "Command prefix that enters the environment with Jupyter");
  arguments.example("stoker notebook --ports 21000-21999 -- ch-run image --");
  if (const auto code = arguments.parse(words, out)) return *code;
  rank::NotebookOptions options;
  options.command_prefix = o.command_prefix;
  options.environment = current_environment();
  options.client_address = environment_value("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  options.scratch = scratch_here();
  if (!o.ports.empty()) options.ports = net::parse_port_range(o.ports);
  if (!o.ports.empty() && !options.ports)
    return out.fail(
        invalid("notebook: --ports {}: not a port range (as in 21000-21999)", printable(o.ports)));
  const auto ended = rank::run_notebook(options, [&](const rank::Notebook& server) {
    const launch::NotebookEndpoint place{
        .program = server.program,
        .host = environment_value("SLURMD_NODENAME").value_or(net::host_name()),
        .address = server.address,
        .port = server.port,
        .token = server.token,
        .job = job_here()};
    out.line("{}", to_line(place));
    std::fflush(stdout);
  });
  return ended.ok() ? ended->shell_code() : out.fail(ended.error());
}

}  // namespace stoker::cli
