// `stoker profile RUN|FILE...`: docs/commands/profile.md
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/explain/language.h"
#include "cli/remote/host.h"
#include "cli/runs.h"
#include "profile/file_profile.h"
#include "profile/print/json.h"
#include "profile/print/text.h"
#include "profile/run_profile.h"
#include "profile/tool/tool.h"

namespace stoker::cli {
namespace {

struct ProfileOptions {
  std::vector<std::string> what;
  std::string runs = "runs";
  std::int64_t attempt = 0;
  std::string steps;
  std::string tool;
  std::string ranks = "0";
  std::vector<std::string> command;
  std::string language = kLocaleLanguage;
  HostChoice host;
};

// A folder of a run is a run; any other path that exists is a file or a folder of files.
bool is_file(const std::string& word) {
  return path_exists(word) && !path_exists(Path(word) / "run.json") && !path_exists(Path(word) / "attempts");
}

Result<profile::Profile> make_profile(const ProfileOptions& o, const profile::StepSelection& selection) {
  if (!o.what.empty() && (o.what.size() > 1 || is_file(o.what[0])))
    return profile::profile_files(o.what, selection);
  STOKER_ASSIGN_OR_RETURN(run, find_run({.run = o.what.empty() ? "last" : o.what[0], .runs = o.runs}));
  STOKER_ASSIGN_OR_RETURN(attempt, find_attempt(run, o.attempt));
  return profile::profile_attempt(run, attempt, selection, run_reference(run));
}

// `stoker profile --tool TOOL -- COMMAND`.
int run_tool(const ProfileOptions& o, const profile::StepSelection& selection, Output& out) {
  if (o.tool.empty()) return out.fail(invalid("profile: a command needs a tool (--tool)"));
  if (!o.what.empty())
    return out.fail(invalid("profile: --tool takes a command after --, not '{}'", printable(o.what[0])));
  const auto request = profile::parse_tool_request(o.tool, o.ranks, selection, o.command);
  if (!request.ok()) return out.fail(request.error());
  const auto code = profile::run_with_tool(*request);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace

int profile_command(std::span<const std::string> words, Output& out) {
  ProfileOptions o;
  Arguments arguments("profile",
                      "Show where the time of a step goes, by part and rank, and what would gain most.");
  arguments.positional_list("RUN|FILE", &o.what,
                            "Run id or prefix, folder, 'last' [last]; or files and folders of files: traces "
                            "of torch.profiler (.json, "
                            ".json.gz), records of steps, logs with lines of NCCL");
  arguments.option("--steps", &o.steps, "FIRST..LAST", "Count these steps [all but the warm-up]");
  arguments.option("--attempt", &o.attempt, "N", "Profile this attempt of a run [the last]");
  arguments.option("--runs", &o.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.option("--tool", &o.tool, "TOOL", "Run COMMAND under this profiler, on the ranks of --ranks");
  arguments.choices(profile::kToolNames);
  arguments.option("--ranks", &o.ranks, "N,...", "Ranks that run under the tool; others run COMMAND alone");
  arguments.rest("COMMAND", &o.command, "Command to profile");
  add_language_option(arguments, &o.language);
  add_host_choice(arguments, &o.host);
  arguments.example("stoker profile last");
  arguments.example("stoker profile last --steps 100..500");
  arguments.example("stoker profile trace-rank0.json.gz trace-rank1.json.gz");
  arguments.example("stoker profile --tool py-spy -- python train.py");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto language = parse_language(o.language);
  if (!language.ok()) return out.fail(language.error());
  if (o.host.is_remote()) {  // the language is the one of this machine
    const std::vector<std::string> own = {"--lang", resolve_language_code(o.language)};
    return run_on_host(o.host, "profile", with_options(words, own), "", out);
  }
  profile::StepSelection selection;
  if (!o.steps.empty()) {
    const auto parsed = profile::parse_steps(o.steps);
    if (!parsed.ok()) return out.fail(parsed.status().with_context("profile: --steps"));
    selection = *parsed;
  }
  if (!o.tool.empty() || !o.command.empty()) return run_tool(o, selection, out);
  const auto found = make_profile(o, selection);
  if (!found.ok()) return out.fail(found.error());
  out.raw(profile::to_plain_text(*found, *language));
  out.json(profile::to_json(*found));
  return exit_code::kOk;
}

}  // namespace stoker::cli
