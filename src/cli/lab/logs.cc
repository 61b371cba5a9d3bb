// `stoker lab logs [DAEMON...]`: docs/commands/lab-logs.md
#include <algorithm>

#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"
#include "lab/lab.h"

namespace stoker::cli {
namespace {

struct LabLogsOptions {
  std::string name = "lab1";
  std::vector<std::string> daemons;
  std::int64_t lines = 20;
};

// Daemons with output: log/<daemon>.log, or .out for a daemon that exited before it opened its log.
std::vector<std::string> daemons_of(const lab::Lab& lab) {
  std::vector<std::string> names;
  const auto files = list_directory(lab.log_folder());
  if (!files) return names;
  for (const std::string& file : *files) {
    const std::string name = Path(file).stem().string();
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
  std::vector<std::string_view> all = split(trim(text), '\n');
  if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
  std::vector<std::string> lines;
  for (const std::string_view line : all) lines.push_back(printable(line));
  return lines;
}

std::vector<std::string> log_of(const lab::Lab& lab, const std::string& daemon, std::size_t count) {
  for (const char* ending : {".log", ".out"}) {
    const auto text = read_file(lab.log_folder() / (daemon + ending));
    if (text && !trim(*text).empty()) return last_lines(*text, count);
  }
  return {};
}

Status show(const LabLogsOptions& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(lab, lab::open(o.name));
  const std::vector<std::string> all = daemons_of(lab);
  std::vector<std::string> chosen = o.daemons.empty() ? all : o.daemons;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::string& daemon : chosen) {
    if (lab.find(daemon) != nullptr) daemon = "slurmd-" + daemon;
    if (std::ranges::find(all, daemon) == all.end()) {
      return not_found("{}: no log of '{}' (available: {})", lab.name, printable(daemon), join(all, ", "));
    }
  }
  for (const std::string& daemon : chosen) {
    const std::vector<std::string> lines = log_of(lab, daemon, static_cast<std::size_t>(o.lines));
    json[daemon] = lines;
    for (const std::string& line : lines) {
      if (chosen.size() == 1) out.line("{}", line);
      if (chosen.size() > 1) out.line("[{}] {}", daemon, line);
    }
  }
  out.json(json_text(json));
  return {};
}

}  // namespace

int lab_logs(std::span<const std::string> words, Output& out) {
  LabLogsOptions o;
  Arguments arguments("lab logs", "Show the logs of a lab's daemons.");
  arguments.positional_list("DAEMON", &o.daemons, "Node, slurmctld, slurmdbd, munged, ... (default: all)");
  add_lab_name(arguments, &o.name);
  arguments.option("-n,--lines", &o.lines, "N", "Show the last N lines of each log");
  arguments.example("stoker lab logs n1");
  arguments.example("stoker lab logs slurmctld -n 100");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.lines < 1) return out.fail(invalid("lab: --lines {}: must be at least 1", o.lines));
  const Status status = show(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
