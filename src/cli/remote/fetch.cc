// `stoker fetch RUN --host HOST`: docs/commands/fetch.md
#include "launch/remote/fetch.h"

#include <filesystem>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/commands.h"
#include "cli/remote/host.h"
#include "cli/runs.h"

namespace stoker::cli {
namespace {

struct FetchOptions {
  RunChoice choice;
  HostChoice host;
  std::string remote_runs;
  bool has_checkpoints = false;
};

}  // namespace

int fetch(std::span<const std::string> words, Output& out) {
  FetchOptions o;
  Arguments arguments("fetch", "Copy a run from a remote machine: records, logs, metrics and results.");
  add_run_choice(arguments, &o.choice);
  add_host_choice(arguments, &o.host);
  arguments.option("--remote-runs", &o.remote_runs, "DIR",
                   "Folder with the runs on the remote machine (default: --runs)");
  arguments.flag("--checkpoints", &o.has_checkpoints, "Also copy the checkpoints in the run folder");
  arguments.example("stoker fetch last --host login.cluster");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!o.host.is_remote())
    return out.fail(
        invalid("fetch: --host is required").cure("stoker fetch {} --host login.cluster", o.choice.run));
  const auto host = resolve_host(o.host);
  if (!host.ok()) return out.fail(host.error());
  launch::RemoteRequest request{.kind = launch::RemoteRequest::Kind::fetch,
                                .words = {o.choice.run},
                                .folder = host->folder,
                                .runs = o.remote_runs.empty() ? o.choice.runs : o.remote_runs,
                                .has_checkpoints = o.has_checkpoints,
                                .sent_below = "",
                                .files = {}};
  install_stop_signals();
  auto call = launch::RemoteCall::open(*host, stop_requested);
  if (!call.ok()) return out.fail(call.error());
  int code = exit_code::kOk;
  const auto fetched = launch::fetch_run(*call, request, *host, o.choice.runs, &code);
  if (!fetched.ok()) return out.fail(fetched.error());
  if (!*fetched) return code;
  const launch::FetchResult& run = **fetched;
  out.line("fetched {} from {}: {}, {}{}", run.folder.filename(), host->host, counted(run.files, "file"),
           rounded(ByteCount{run.bytes}), run.replaced_older ? ", replacing an older copy" : "");
  out.line("  next  stoker report {}", shell_quote(display_path(run.folder)));
  out.json(json_text(nlohmann::ordered_json{{"run", run.folder.filename().string()},
                                            {"folder", std::filesystem::absolute(run.folder).string()},
                                            {"host", host->host},
                                            {"files", run.files},
                                            {"bytes", run.bytes}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
