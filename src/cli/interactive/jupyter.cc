// `stoker jupyter [JOB]`: docs/commands/jupyter.md
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/interactive/allocation.h"
#include "cli/running.h"
#include "launch/interactive/interactive.h"
#include "launch/new_run.h"
#include "launch/notebook/session.h"

namespace stoker::cli {
namespace {

struct JupyterOptions {
  JobChoice choice{.job = "job.yaml"};
  std::optional<std::int64_t> port;
  std::string login;
};

std::string login_of(const JupyterOptions& o) {
  if (!o.login.empty()) return o.login;
  return launch::login_from_outside(launch::full_host_name(), launch::user_name(),
                                    environment_value("SSH_CONNECTION"));
}

void tell(const launch::NotebookPlace& place, const JupyterOptions& o, Output& out) {
  const int port = static_cast<int>(o.port.value_or(place.port));
  const std::string tunnel = launch::tunnel_command(place, port, login_of(o));
  out.line("{} on {}, job {}", place.program, printable(place.host), printable(place.job));
  out.line("  tunnel  {}         on your own machine", tunnel);
  out.line("  open    {}", place.url(port));
  out.line("  end     Ctrl-C here gives the allocation back");
  out.json(json_text(nlohmann::ordered_json{{"program", place.program},
                                            {"job", place.job},
                                            {"host", place.host},
                                            {"address", place.address},
                                            {"port", place.port},
                                            {"token", place.token},
                                            {"tunnel", tunnel},
                                            {"url", place.url(port)}}));
  std::fflush(stdout);
}

int hold(const JupyterOptions& o, const launch::Request& request, std::vector<std::string> words,
         Output& out) {
  auto environment = environment_of(request.job);
  if (!environment.ok()) return out.fail(environment.error());
  const Status there = launch::check_notebook(request.job, *environment);
  if (!there.ok()) return out.fail(there);
  bool is_told = false;
  launch::HoldOptions options{.command = std::move(words),
                              .environment = std::move(*environment),
                              .directory = request.job.working_directory,
                              .ready = {},
                              .should_stop = stop_requested};
  options.ready = [&](const launch::NotebookPlace& place) {
    is_told = true;
    tell(place, o, out);
  };
  install_stop_signals();
  const auto ended = launch::hold_notebook(options);
  if (!ended.ok()) return out.fail(without_salloc(ended.error(), o.choice.job));
  if (is_told && (ended->ok() || stop_requested())) return exit_code::kOk;
  if (stop_requested()) return out.fail(cancelled("jupyter: interrupted before it was there"));
  // What went wrong on the node it has said itself.
  if (is_told) return ended->shell_code();
  return out.fail(unavailable("jupyter: ended before it was there ({})", to_text(*ended)));
}

}  // namespace

int jupyter(std::span<const std::string> words, Output& out) {
  JupyterOptions o;
  Arguments arguments(
      "jupyter", "Starts a Jupyter server in an allocation of Slurm with a job's resources and environment.");
  arguments.optional_positional("JOB", &o.choice.job, "the job file [job.yaml]");
  arguments.option("--set", &o.choice.set, "KEY=VALUE",
                   "lays a value over the job file: --set resources.time=1h");
  arguments.option("--port", &o.port, "N", "of your own machine, in the tunnel; else the server's");
  arguments.option("--login", &o.login, "USER@HOST", "how you reach this machine, in the tunnel's command");
  arguments.flag("--dry-run", &o.choice.dry_run, "show the command line, and ask for nothing");
  arguments.example("stoker jupyter job.yaml --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.port && (*o.port < 1 || *o.port > 65535))
    return out.fail(invalid("jupyter: --port {}: must be from 1 to 65535", *o.port));
  if (const Status outside = check_outside("jupyter", o.choice); !outside.ok()) return out.fail(outside);
  auto request = request_of(o.choice, "jupyter", words);
  if (!request.ok()) return out.fail(request.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request->stoker = *program;
  auto line = launch::notebook_arguments(*request);
  if (!line.ok()) return out.fail(line.error());
  if (o.choice.dry_run) return show_command(*line, out);
  return hold(o, *request, std::move(*line), out);
}

}  // namespace stoker::cli
