// `stoker fetch RUN --host HOST`: docs/commands/fetch.md
#include <filesystem>

#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/remote/host.h"
#include "cli/runs.h"

namespace stoker::cli {
namespace {

struct FetchOptions {
  RunChoice choice;
  HostChoice host;
  std::string there;
  bool has_checkpoints = false;
};

}  // namespace

int fetch(std::span<const std::string> words, Output& out) {
  FetchOptions o;
  Arguments arguments("fetch",
                      "Brings a run of another machine here: its records, logs, metrics and results.");
  add_run_choice(arguments, &o.choice);
  add_host_choice(arguments, &o.host);
  arguments.option("--there", &o.there, "DIR",
                   "folder that holds the runs there, where it is not that of --runs");
  arguments.flag("--checkpoints", &o.has_checkpoints, "the checkpoints in the run's folder, too");
  arguments.example("stoker fetch last --host login.cluster");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!o.host.is_elsewhere())
    return out.fail(
        invalid("fetch: from where? (--host)").cure("stoker fetch {} --host login.cluster", o.choice.run));
  const auto host = host_of(o.host);
  if (!host.ok()) return out.fail(host.error());
  launch::RemoteRequest request{.kind = launch::RemoteRequest::Kind::fetch,
                                .words = {o.choice.run},
                                .folder = host->folder,
                                .runs = o.there.empty() ? o.choice.runs : o.there,
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
  const launch::Fetched& run = **fetched;
  out.line("fetched {} from {}: {} files, {}{}", run.folder.filename(), host->host, grouped(run.files),
           rounded(ByteCount{run.bytes}), run.is_again ? ", in place of an older copy" : "");
  out.line("  next  stoker report {}", shell_quote(near(run.folder)));
  out.json(json_text(nlohmann::ordered_json{{"run", run.folder.filename().string()},
                                            {"folder", std::filesystem::absolute(run.folder).string()},
                                            {"host", host->host},
                                            {"files", run.files},
                                            {"bytes", run.bytes}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
