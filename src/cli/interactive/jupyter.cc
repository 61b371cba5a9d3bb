// `stoker jupyter [JOB]`: docs/commands/jupyter.md
#include "base/json/json.h"
#include "base/user.h"
#include "cli/commands.h"
#include "cli/interactive/allocation.h"
#include "cli/run_request.h"
#include "launch/interactive/interactive.h"
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
  return launch::external_login(launch::full_host_name(), user_name(), environment_value("SSH_CONNECTION"));
}

void print_server(const launch::NotebookEndpoint& place, const JupyterOptions& o, Output& out) {
  const int port = static_cast<int>(o.port.value_or(place.port));
  const std::string tunnel = launch::tunnel_command(place, port, login_of(o));
  out.line("{} on {}, job {}", place.program, printable(place.host), printable(place.job));
  out.line("  tunnel  {}         on your machine", tunnel);
  out.line("  open    {}", place.url(port));
  out.line("  stop    Ctrl-C here releases the allocation");
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

int run_server(const JupyterOptions& o, const launch::Request& request, std::vector<std::string> words,
               Output& out) {
  auto environment = load_interactive_environment(request.job);
  if (!environment.ok()) return out.fail(environment.error());
  const Status status = launch::check_notebook(request.job, *environment);
  if (!status.ok()) return out.fail(status);
  bool is_announced = false;
  launch::NotebookSessionOptions options{.command = std::move(words),
                                         .environment = std::move(*environment),
                                         .directory = request.job.working_directory,
                                         .ready = {},
                                         .should_stop = stop_requested};
  options.ready = [&](const launch::NotebookEndpoint& place) {
    is_announced = true;
    print_server(place, o, out);
  };
  install_stop_signals();
  const auto ended = launch::run_notebook_session(options);
  if (!ended.ok()) return out.fail(explain_missing_salloc(ended.error(), o.choice.job));
  if (is_announced && (ended->ok() || stop_requested())) return exit_code::kOk;
  if (stop_requested()) return out.fail(cancelled("jupyter: interrupted before the server started"));
  // The server printed its own error.
  if (is_announced) return ended->shell_code();
  return out.fail(unavailable("jupyter: exited before the server started ({})", to_text(*ended)));
}

}  // namespace

int jupyter(std::span<const std::string> words, Output& out) {
  JupyterOptions o;
  Arguments arguments("jupyter",
                      "Start a Jupyter server in a Slurm allocation with a job's resources and environment.");
  arguments.optional_positional("JOB", &o.choice.job, "Job file [job.yaml]");
  arguments.option("--set", &o.choice.set, "KEY=VALUE", "Override a job file value: --set resources.time=1h");
  arguments.option("--port", &o.port, "N", "Use this local port for the tunnel (default: the server's)");
  arguments.option("--login", &o.login, "USER@HOST",
                   "Use this ssh address of the login node in the tunnel command");
  arguments.flag("--dry-run", &o.choice.dry_run, "Show the salloc command, allocate nothing");
  arguments.example("stoker jupyter job.yaml --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.port && (*o.port < 1 || *o.port > 65535))
    return out.fail(invalid("jupyter: --port {}: must be from 1 to 65535", *o.port));
  if (const Status outside = check_not_in_allocation("jupyter", o.choice); !outside.ok())
    return out.fail(outside);
  auto request = request_of(o.choice, "jupyter", words);
  if (!request.ok()) return out.fail(request.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request->stoker = *program;
  auto line = launch::notebook_arguments(*request);
  if (!line.ok()) return out.fail(line.error());
  if (o.choice.dry_run) return show_command(*line, out);
  return run_server(o, *request, std::move(*line), out);
}

}  // namespace stoker::cli
