#include "rank/member/program.h"

#include <algorithm>
#include <unistd.h>

#include "net/interface.h"
#include "rank/gpu_binding.h"
#include "record/run_folder.h"
#include "slurm/allocation.h"
#include "slurm/node_list.h"

namespace stoker::rank {
namespace {

constexpr std::string_view kGpus = "CUDA_VISIBLE_DEVICES";

VisibleGpus visible_gpus(const Environment& base) {
  const auto found =
      std::find_if(base.begin(), base.end(), [](const auto& entry) { return entry.first == kGpus; });
  return found == base.end() ? VisibleGpus() : VisibleGpus(found->second);
}

// Scripts for torchrun select GPU LOCAL_RANK of all GPUs of the node.
Result<VisibleGpus> own_gpus(const RankConfig& config, const Environment& base) {
  const int own = config.role == Role::torchrun_rank ? 0 : config.gpus_per_rank;
  return gpus_of_rank({own, config.ranks_per_gpu, config.is_in_step}, visible_gpus(base), config.place);
}

int threads_of(const RankConfig& config, const RankPlacement& place) {
  return cores_per_rank(config.cpus, place, slurm::cpus_on_node(slurm::process_environment()));
}

// With a missing interface, gloo and NCCL fail with errors that name neither it nor the variable. Defaults
// are not checked here.
Status check_interfaces(const Environment& base) {
  const std::string gloo = variable(base, "GLOO_SOCKET_IFNAME");
  // NCCL needs a GPU.
  const std::string nccl = variable(base, kGpus).empty() ? "" : variable(base, "NCCL_SOCKET_IFNAME");
  if (gloo.empty() && nccl.empty()) return {};
  const std::vector<net::Interface> interfaces = net::interfaces();
  std::string problem = net::choose_gloo_interface(gloo, {}, interfaces).problem;
  if (problem.empty()) problem = net::choose_nccl_interface(nccl, interfaces).problem;
  if (problem.empty()) return {};
  std::vector<std::string> names;
  for (const net::Interface& one : interfaces) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  return unavailable("{} (there are {}; unset it to choose automatically)", problem, join(names, ", "));
}

// NCCL's watchdog then leaves each rank's last collectives in the attempt, for `stoker explain`. Torch warns
// about the older names of these variables.
void set_torch_flight(Environment& environment, const Path& attempt) {
  const auto set = [&](std::string_view name, std::string_view older, std::string value) {
    if (variable(environment, name).empty() && (older.empty() || variable(environment, older).empty()))
      set_variable(environment, name, std::move(value));
  };
  if (attempt.empty()) return;
  set("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
      record::Attempt(attempt, 0).torch_flight_prefix().string());
  set("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
  set("TORCH_NCCL_DUMP_ON_TIMEOUT", "", "1");
}

// A Python script's own interpreter has the torch that the script imports; otherwise the first torchrun is
// used.
std::vector<std::string> torchrun_of(const std::vector<std::string>& command) {
  const std::string program = Path(command[0]).filename();
  if (program.starts_with("python")) return {command[0], "-m", "torch.distributed.run"};
  return {"torchrun"};
}

// Static rendezvous: the numbers of nodes and of their ranks are fixed.
Program torchrun(const RankConfig& config, const std::vector<std::string>& command,
                 const Rendezvous& rendezvous, Environment environment, const Path& own) {
  const RankPlacement& node = config.place;
  const auto counts = slurm::expand_per_node(config.ranks_of_node);
  const auto index = static_cast<std::size_t>(node.rank.value);
  const int ranks = counts.ok() && index < counts->size() ? (*counts)[index] : 1;
  Program program;
  program.argv = torchrun_of(command);
  program.argv.insert(program.argv.end(),
                      {format("--nnodes={}", node.world_size.value),
                       format("--node-rank={}", node.rank.value), format("--nproc-per-node={}", ranks),
                       "--master-addr=" + rendezvous.address, format("--master-port={}", rendezvous.port),
                       "--max-restarts=0", "--no-python", own.string(), "rank", "--"});
  program.argv.insert(program.argv.end(), command.begin(), command.end());
  program.environment = without_torchrun(std::move(environment));
  // torchrun would set 1 if it is unset.
  set_threads(program.environment, threads_of(config, {node.rank, node.world_size, 0, ranks, node.node}));
  set_variable(program.environment, kWorldVariable, config.ranks_world);
  set_variable(program.environment, kPlaceVariable, std::string(kPlaceByTorchrun));
  unset_variable(program.environment, kRanksWorldVariable);
  set_variable(program.environment, kPortVariable, variable(program.environment, "MASTER_PORT"));
  set_variable(program.environment, kErrorsVariable, format("/proc/{}/fd/2", ::getpid()));
  return program;
}

}  // namespace

Status check_program(const RankConfig& config, const Environment& base) {
  if (config.role == Role::node) return {};
  STOKER_RETURN_IF_ERROR(check_interfaces(base));
  return own_gpus(config, base).status();
}

Program program_of(const RankConfig& config, const std::vector<std::string>& command,
                   const Rendezvous& rendezvous, const Environment& base, const Path& own) {
  if (config.role == Role::node) return torchrun(config, command, rendezvous, base, own);
  const RankPlacement& place = config.place;
  Program program{.argv = command, .environment = {}};
  if (config.role == Role::torchrun_rank) {
    // The port in torchrun's variables belongs to its own store, which only PyTorch in Python can share.
    // Every program can listen on a separately reserved port.
    program.environment = without_stoker_variables(base);
    set_variable(program.environment, "TORCHELASTIC_USE_AGENT_STORE", "False");
    set_variable(program.environment, "MASTER_ADDR", rendezvous.address);
    set_variable(program.environment, "MASTER_PORT", std::to_string(rendezvous.port));
  } else {
    program.environment = rank_environment(base, place, rendezvous, threads_of(config, place));
  }
  set_tracker_variables(program.environment, place.rank.value);
  if (!config.is_under_srun) set_slurm_variables(program.environment, place, config.ranks_of_node);
  // The host file of this step does not apply to an srun that the command may call.
  if (Path(variable(base, "SLURM_HOSTFILE")).parent_path() == config.attempt)
    unset_variable(program.environment, "SLURM_HOSTFILE");
  set_variable(program.environment, "NODE_RANK", std::to_string(place.node));
  set_torch_flight(program.environment, config.attempt);
  const std::string staged = staged_folder(variable(base, kStageVariable), place.node);
  if (!staged.empty()) {
    set_variable(program.environment, "STOKER_STAGE_DIR", staged);
    set_staged_data(program.environment, staged);
    if (const std::string venv = variable(base, kStagedVenvVariable); !venv.empty())
      use_staged_venv(program.environment, program.argv, Path(staged) / venv);
  }
  // Which of the visible ones are its own.
  if (config.gpus_per_rank > 0)
    set_variable(program.environment, kOwnGpusVariable, std::to_string(config.gpus_per_rank));
  auto gpus = own_gpus(config, base);
  if (gpus.ok() && *gpus) set_variable(program.environment, kGpus, *std::move(*gpus));
  return program;
}

}  // namespace stoker::rank
