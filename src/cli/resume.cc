// `stoker resume RUN`: docs/commands/resume.md
#include "cli/running.h"
#include "cli/runs.h"

namespace stoker::cli {
namespace {

struct Options {
  RunChoice choice;
  std::vector<std::string> set;
  bool dry_run = false;
};

}  // namespace

int resume(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("resume", "Goes on with a run from its last valid checkpoint, as its next attempt.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--set", &o.set, "KEY=VALUE", "changes a value of the job from here on");
  arguments.flag("--dry-run", &o.dry_run, "show what would be started, and start nothing");
  arguments.example("stoker resume last");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto folder = find_run(o.choice);
  if (!folder.ok()) return out.fail(folder.error());
  auto request = launch::resume_request(*folder, o.set);
  if (!request.ok()) return out.fail(request.error());
  request->typed = {"stoker", "resume"};
  request->typed.insert(request->typed.end(), words.begin(), words.end());
  return run_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
