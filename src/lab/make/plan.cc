#include "lab/make/plan.h"

#include <algorithm>
#include <functional>
#include <sched.h>

#include "lab/make/network.h"

namespace stoker::lab {
namespace {

constexpr int kMaxNodes = 64;
constexpr int kMemoryOfNodeMb = 4000;
constexpr int kNodePort = 6818;  // Slurm's default; each node has its own address

Status check_range(std::string_view option, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return invalid("lab: {} {}: must be {} to {}", option, value, least, most);
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

Result<std::uint16_t> reserve(LabPlan& plan, std::uint64_t seed) {
  STOKER_ASSIGN_OR_RETURN(port, net::PortReservation::find(seed));
  const std::uint16_t number = port.port();
  plan.ports.push_back(std::move(port));
  return number;
}

Lab described(const Options& options, const Path& folder) {
  Lab lab;
  lab.name = options.name;
  lab.folder = folder;
  lab.mode = options.mode;
  lab.cpus = options.cpus;
  lab.gpus = options.gpus;
  lab.memory_mb = kMemoryOfNodeMb;
  lab.max_array_size = options.max_array_size;
  lab.has_accounting = options.has_accounting;
  lab.owner = options.owner;
  return lab;
}

}  // namespace

Status check_options(const Options& options) {
  STOKER_RETURN_IF_ERROR(check_name(options.name));
  STOKER_RETURN_IF_ERROR(check_range("--nodes", options.nodes, 1, kMaxNodes));
  STOKER_RETURN_IF_ERROR(check_range("--cpus", options.cpus, 1, 256));
  STOKER_RETURN_IF_ERROR(check_range("--gpus", options.gpus, 0, 16));
  return check_range("--max-array-size", options.max_array_size, 2, 4'000'001);
}

Result<LabPlan> make_plan(const Options& options, const Path& folder) {
  LabPlan plan;
  plan.lab = described(options, folder);
  Lab& lab = plan.lab;
  const std::vector<int> cores = usable_cores();
  const bool has_network = options.mode == LabMode::namespaces;
  std::string subnet;
  if (has_network) {
    STOKER_ASSIGN_OR_RETURN(free, free_subnet());
    subnet = free;
    lab.bridge = lab.name;
  }
  lab.host_address = has_network ? subnet + ".254" : "127.0.0.1";
  std::uint64_t seed = std::hash<std::string>()(folder.string());
  STOKER_ASSIGN_OR_RETURN(controller_port, reserve(plan, seed++));
  lab.controller_port = controller_port;
  if (lab.has_accounting) {
    STOKER_ASSIGN_OR_RETURN(database_port, reserve(plan, seed++));
    lab.database_port = database_port;
  }
  for (int i = 1; i <= options.nodes; ++i) {
    LabNode node;
    node.name = format("n{}", i);
    node.address = has_network ? format("{}.{}", subnet, i) : "127.0.0.1";
    if (has_network) {
      node.port = kNodePort;
      node.network_namespace = node.link = format("{}-{}", lab.name, node.name);
    } else {
      STOKER_ASSIGN_OR_RETURN(port, reserve(plan, seed++));
      node.port = port;
    }
    if (options.is_pinned) node.core = cores[static_cast<std::size_t>(i - 1) % cores.size()];
    lab.nodes.push_back(node);
  }
  return plan;
}

}  // namespace stoker::lab
