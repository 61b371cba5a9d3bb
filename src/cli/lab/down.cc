// `stoker lab down`: docs/commands/lab-down.md
#include "lab/down.h"

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"

namespace stoker::cli {

int lab_down(std::span<const std::string> words, Output& out) {
  std::string name = "lab1";
  Arguments arguments("lab down", "Remove a lab with its jobs, files and network.");
  add_lab_name(arguments, &name);
  arguments.example("stoker lab down");
  arguments.example("stoker lab down --name acct");
  if (const auto code = arguments.parse(words, out)) return *code;
  const Stopwatch watch;
  const auto removed = lab::down(name);
  if (!removed) return out.fail(removed.error());
  const double seconds = watch.seconds();
  if (removed->nothing()) {
    out.line("{}: not found; nothing to remove", name);
  } else {
    out.line("{}: removed in {:.1f} s ({} killed)", name, seconds,
             counted(static_cast<std::uint64_t>(removed->processes), "process", "processes"));
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
