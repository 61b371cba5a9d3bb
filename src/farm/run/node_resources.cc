#include "farm/run/node_resources.h"

#include <algorithm>
#include <limits>
#include <sched.h>
#include <sys/sysinfo.h>

#include "base/language/counted.h"
#include "observe/gpu.h"
#include "rank/process/process_tree.h"

namespace stoker::farm {

namespace {

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

// Without cgroups Slurm does not confine a job to its cores. Several tasks of a step divide them.
void limit_to_job(std::vector<int>& cores, const slurm::Lookup& env) {
  const auto limit = slurm::cpus_on_node(env);
  if (!limit) return;
  auto most = static_cast<std::size_t>(*limit);
  const auto task = slurm::current_task(env);
  if (task && *task)
    most = std::max<std::size_t>(most / static_cast<std::size_t>((*task)->local_world_size), 1);
  if (cores.size() > most) cores.resize(most);
}

std::vector<std::string> visible_gpus(const slurm::Lookup& env) {
  std::vector<std::string> gpus;
  if (const auto visible = env("CUDA_VISIBLE_DEVICES")) {
    for (std::string_view id : split(*visible, ',')) {
      if (trim(id).empty() || id == "-1" || id == "NoDevFiles") break;
      gpus.emplace_back(trim(id));
    }
    return gpus;
  }
  const std::size_t count = observe::GpuReader::open().devices().size();
  for (std::size_t i = 0; i < count; ++i) gpus.push_back(format("{}", i));
  return gpus;
}

ByteCount available_memory(const slurm::Lookup& env) {
  struct sysinfo facts{};
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (::sysinfo(&facts) == 0) bytes = static_cast<std::uint64_t>(facts.totalram) * facts.mem_unit;
  if (const std::uint64_t limit = rank::memory_kills().limit_bytes; limit > 0) bytes = std::min(bytes, limit);
  std::uint64_t megabytes = 0;
  if (const auto text = env("SLURM_MEM_PER_NODE");
      text && parse_number(*text, &megabytes) && megabytes > 0 && megabytes < (bytes >> 20))
    bytes = megabytes << 20;
  return {bytes};
}

// Marks `count` free entries as used and passes their indices on.
template <typename Use>
void use_free(std::vector<bool>& in_use, std::size_t count, Use use) {
  for (std::size_t i = 0; i < in_use.size() && count > 0; ++i) {
    if (in_use[i]) continue;
    in_use[i] = true;
    use(i);
    --count;
  }
}

}  // namespace

MachineResources machine_resources(const slurm::Lookup& env) {
  MachineResources machine{
      .cores = allowed_cores(), .gpus = visible_gpus(env), .memory = available_memory(env)};
  limit_to_job(machine.cores, env);
  return machine;
}

Status check_needs(const TaskNeeds& needs, const MachineResources& machine) {
  if (needs.cores > machine.cores.size())
    return invalid("cores: {} (here: {})", needs.cores, machine.cores.size());
  if (needs.gpus > machine.gpus.size())
    return invalid("gpus: {} (here: {})", needs.gpus, machine.gpus.size());
  if (needs.memory && *needs.memory > machine.memory)
    return invalid("memory: {} (here: {})", to_text(*needs.memory), rounded(machine.memory));
  return {};
}

NodeResources::NodeResources(MachineResources machine, std::size_t at_once, const TaskNeeds& usual)
    : machine_(std::move(machine)), usual_(usual) {
  usual_.cores = std::max<std::uint32_t>(usual_.cores, 1);
  core_in_use_.resize(std::max(machine_.cores.size(), at_once * usual_.cores));
  gpu_in_use_.resize(machine_.gpus.size());
  cores_free_ = core_in_use_.size();
  gpus_free_ = gpu_in_use_.size();
  memory_free_ = machine_.memory.value;
  at_once_ = at_once > 0 ? at_once : core_in_use_.size();
}

std::size_t NodeResources::slots() const {
  std::size_t slots = std::min(at_once_, core_in_use_.size() / usual_.cores);
  if (usual_.gpus > 0) slots = std::min(slots, machine_.gpus.size() / usual_.gpus);
  if (usual_.memory && usual_.memory->value > 0)
    slots = std::min<std::size_t>(slots, machine_.memory.value / usual_.memory->value);
  return std::max<std::size_t>(slots, 1);
}

std::optional<Grant> NodeResources::take(const TaskNeeds& needs) {
  const std::uint64_t memory = needs.memory.value_or(ByteCount{}).value;
  if (tasks_ >= at_once_ || needs.cores > cores_free_ || needs.gpus > gpus_free_ || memory > memory_free_)
    return std::nullopt;
  Grant grant{.cores = {}, .gpus = {}, .memory = {memory}};
  use_free(core_in_use_, needs.cores, [&](std::size_t i) { grant.cores.push_back(static_cast<int>(i)); });
  use_free(gpu_in_use_, needs.gpus,
           [&](std::size_t i) { grant.gpus.push_back(static_cast<std::uint32_t>(i)); });
  cores_free_ -= needs.cores;
  gpus_free_ -= needs.gpus;
  memory_free_ -= memory;
  ++tasks_;
  return grant;
}

void NodeResources::give_back(const Grant& grant) {
  for (const int core : grant.cores) core_in_use_[static_cast<std::size_t>(core)] = false;
  for (const std::uint32_t gpu : grant.gpus) gpu_in_use_[gpu] = false;
  cores_free_ += grant.cores.size();
  gpus_free_ += grant.gpus.size();
  memory_free_ += grant.memory.value;
  --tasks_;
}

}  // namespace stoker::farm
