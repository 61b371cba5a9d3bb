// `stoker lab status`: docs/commands/lab-status.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"
#include "lab/state.h"

namespace stoker::cli {
namespace {

std::string phase_text(const lab::Lab& lab, const lab::LabState& state) {
  if (lab.phase == lab::LabPhase::starting) return "starting, or interrupted during start";
  return state.is_answering ? "up" : "slurmctld does not answer";
}

void print(const lab::Lab& lab, const lab::LabState& state, Output& out) {
  const Duration age =
      std::chrono::duration_cast<Duration>(Seconds(unix_seconds(RealClock().wall()) - lab.started));
  out.line("{}: {}, {} mode, Slurm {}, {}, started {} ago", lab.name, counted(lab.nodes.size(), "node"),
           lab::to_text(lab.mode), lab.slurm_version, phase_text(lab, state), rounded_duration(age));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < lab.nodes.size(); ++i) {
    const lab::NodeState& node = state.nodes[i];
    std::string note = node.has_daemon ? node.reason : "slurmd is not running";
    rows.push_back({node.name, lab.nodes[i].address, node.state, node.cpus,
                    node.jobs.empty() ? "-" : join(node.jobs, ","), note});
  }
  out.table({"NODE", "ADDRESS", "STATE", "CPUS", "JOBS", "NOTE"}, rows);
  out.line("jobs: {} running, {} pending", state.running, state.pending);
  for (const lab::DaemonState& daemon : state.daemons) {
    if (!daemon.is_running)
      out.line("{}: exited (stoker lab logs --name {} {})", daemon.name, lab.name, daemon.name);
  }
}

nlohmann::ordered_json to_json(const lab::Lab& lab, const lab::LabState& state) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < lab.nodes.size(); ++i) {
    const lab::NodeState& node = state.nodes[i];
    nodes.push_back({{"name", node.name},
                     {"address", lab.nodes[i].address},
                     {"state", node.state},
                     {"cpus", node.cpus},
                     {"reason", node.reason},
                     {"daemon", node.has_daemon},
                     {"jobs", node.jobs}});
  }
  nlohmann::ordered_json daemons = nlohmann::ordered_json::object();
  for (const lab::DaemonState& daemon : state.daemons) daemons[daemon.name] = daemon.is_running;
  return {{"name", lab.name},
          {"phase", lab.phase == lab::LabPhase::up ? "up" : "starting"},
          {"mode", lab::to_text(lab.mode)},
          {"slurm", lab.slurm_version},
          {"folder", lab.folder.string()},
          {"started", lab.started},
          {"answering", state.is_answering},
          {"daemons", daemons},
          {"running", state.running},
          {"pending", state.pending},
          {"nodes", nodes}};
}

}  // namespace

int lab_status(std::span<const std::string> words, Output& out) {
  std::string name;
  Arguments arguments("lab status", "Show the labs, their nodes and jobs.");
  arguments.option("--name", &name, "NAME", "Show only this lab");
  arguments.example("stoker lab status");
  arguments.example("stoker lab status --name lab1 --json");
  if (const auto code = arguments.parse(words, out)) return *code;
  std::vector<lab::Lab> labs;
  if (name.empty()) {
    auto all = lab::list();
    if (!all) return out.fail(all.error());
    labs = *std::move(all);
    if (labs.empty()) out.line("no lab (stoker lab up starts one)");
  } else {
    auto one = lab::open(name);
    if (!one) return out.fail(one.error());
    labs.push_back(*std::move(one));
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const lab::Lab& lab : labs) {
    const lab::LabState state = lab::query_state(lab);
    if (&lab != &labs.front()) out.line("");
    print(lab, state, out);
    json.push_back(to_json(lab, state));
  }
  out.json(json_text(nlohmann::ordered_json{{"labs", json}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
