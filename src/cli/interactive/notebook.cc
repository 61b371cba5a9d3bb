// `stoker notebook`: docs/commands/notebook.md
#include "rank/notebook/notebook.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "launch/notebook/session.h"
#include "net/port.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

struct NotebookOptions {
  std::string ports;
  std::vector<std::string> around;
};

// Nothing but a folder that nobody can look into lies there.
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
  NotebookOptions o;
  Arguments arguments(
      "notebook",
      "Runs a Jupyter server on this node until its standard input closes, and says where it is.");
  arguments.option("--ports", &o.ports, "A-B", "listen on one of these; else on one below those of clients");
  arguments.rest("WORD", &o.around, "what starts a command in the environment that has Jupyter");
  arguments.example("stoker notebook --ports 21000-21999 -- ch-run image --");
  if (const auto code = arguments.parse(words, out)) return *code;
  rank::NotebookOptions options;
  options.in_environment = o.around;
  options.environment = current_environment();
  options.seen_from = environment_value("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  options.scratch = scratch_here();
  if (!o.ports.empty()) options.ports = net::parse_port_range(o.ports);
  if (!o.ports.empty() && !options.ports)
    return out.fail(invalid("notebook: --ports {}: no range (as in 21000-21999)", printable(o.ports)));
  const auto ended = rank::run_notebook(options, [&](const rank::Notebook& server) {
    const launch::NotebookPlace place{.program = server.program,
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
