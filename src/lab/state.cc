#include "lab/state.h"

#include <algorithm>

#include "lab/launch.h"
#include "slurm/node_list.h"

namespace stoker::lab {
namespace {

constexpr auto kAskTime = std::chrono::seconds(5);

std::string query_slurm(const Lab& lab, std::vector<std::string> argv, bool* has_answer) {
  auto answer = run_program(client_command(lab, std::move(argv)), Deadline::after(kAskTime));
  *has_answer = answer && answer->exit.ok();
  return *has_answer ? std::move(answer->out) : std::string();
}

NodeState* find(std::vector<NodeState>& nodes, std::string_view name) {
  const auto found = std::ranges::find(nodes, name, &NodeState::name);
  return found == nodes.end() ? nullptr : &*found;
}

// "n1|idle|0/2/0/2|none": name, state, CPUs (allocated/idle/other/total), reason.
void read_nodes(std::string_view text, std::vector<NodeState>& nodes) {
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() < 4) continue;
    NodeState* node = find(nodes, trim(fields[0]));
    if (node == nullptr) continue;
    node->state = fields[1];
    const auto cpus = split(fields[2], '/');
    if (cpus.size() == 4) node->cpus = format("{}/{}", cpus[0], cpus[3]);
    if (fields[3] != "none") node->reason = fields[3];
  }
}

// "12|RUNNING|n[1-2]"
void read_jobs(std::string_view text, LabState& state) {
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() < 3) continue;
    (fields[1] == "PENDING" ? state.pending : state.running) += 1;
    if (fields[1] == "PENDING") continue;
    const auto names = slurm::expand_node_list(trim(fields[2]));
    if (!names) continue;
    for (const std::string& name : *names) {
      if (NodeState* node = find(state.nodes, name)) node->jobs.emplace_back(fields[0]);
    }
  }
}

}  // namespace

LabState query_state(const Lab& lab) {
  LabState state;
  for (const LabNode& node : lab.nodes) {
    state.nodes.push_back({node.name, "unknown", format("-/{}", lab.cpus), "", is_running(node.slurmd), {}});
  }
  const auto add = [&](const char* name, pid_t pid) {
    if (pid != 0) state.daemons.push_back({name, pid, is_running(pid)});
  };
  add("munged", lab.munged);
  add("mariadbd", lab.database);
  add("slurmdbd", lab.accounting);
  add("slurmctld", lab.controller);
  const std::string nodes = query_slurm(
      lab, {"sinfo", "--noheader", "--partition=cpu", "--Node", "--format=%N|%T|%C|%E"}, &state.is_answering);
  if (!state.is_answering) return state;
  read_nodes(nodes, state.nodes);
  bool has_jobs = false;
  read_jobs(query_slurm(lab, {"squeue", "--noheader", "--array", "--format=%i|%T|%N"}, &has_jobs), state);
  return state;
}

}  // namespace stoker::lab
