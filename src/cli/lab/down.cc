// `stoker lab down`: docs/commands/lab-down.md
#include "base/json/json.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"
#include "lab/up.h"

namespace stoker::cli {

int lab_down(std::span<const std::string> words, Output& out) {
  std::string name = "lab1";
  Arguments arguments("lab down", "Takes a lab away with all that is in it: jobs, files, network.");
  add_lab_name(arguments, &name);
  arguments.example("stoker lab down");
  arguments.example("stoker lab down --name acct");
  if (const auto code = arguments.parse(words, out)) return *code;
  const Stopwatch watch;
  const auto removed = lab::down(name);
  if (!removed) return out.fail(removed.error());
  const double seconds = watch.seconds();
  if (removed->nothing()) {
    out.line("{}: not there; nothing to take away", name);
  } else {
    out.line("{}: gone after {:.1f} s ({} processes ended)", name, seconds, removed->processes);
  }
  const nlohmann::ordered_json json = {{"name", name},
                                       {"processes", removed->processes},
                                       {"mounts", removed->mounts},
                                       {"namespaces", removed->namespaces},
                                       {"links", removed->links},
                                       {"folder", removed->folder},
                                       {"seconds", seconds}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
