#include "rank/member/program.h"

#include <algorithm>
#include <unistd.h>

#include "net/probe/interface.h"
#include "slurm/allocation.h"
#include "slurm/node_list.h"

namespace stoker::rank {
namespace {

constexpr std::string_view kGpus = "CUDA_VISIBLE_DEVICES";

int threads_of(const Invitation& invitation, const Place& place) {
  return cores_per_rank(invitation.cpus, place, slurm::cpus_on_node(slurm::process_environment()));
}

// An interface that is not there ends gloo and NCCL with words that name neither it nor the variable. What
// nobody has chosen is looked at by nobody here.
Status check_interfaces(const Environment& base) {
  const std::string gloo = variable(base, "GLOO_SOCKET_IFNAME");
  // Without a GPU NCCL talks to nobody.
  const std::string nccl = variable(base, kGpus).empty() ? "" : variable(base, "NCCL_SOCKET_IFNAME");
  if (gloo.empty() && nccl.empty()) return {};
  const std::vector<net::Interface> interfaces = net::interfaces();
  std::string problem = net::gloo_choice(gloo, {}, interfaces).problem;
  if (problem.empty()) problem = net::nccl_choice(nccl, interfaces).problem;
  if (problem.empty()) return {};
  std::vector<std::string> names;
  for (const net::Interface& one : interfaces) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  return unavailable("{} (there are {}; left out, it is chosen for you)", problem, join(names, ", "));
}

// The interpreter of a Python script has the torch that the script imports; else the first torchrun is taken.
std::vector<std::string> torchrun_of(const std::vector<std::string>& command) {
  const std::string program = Path(command[0]).filename();
  if (program.starts_with("python")) return {command[0], "-m", "torch.distributed.run"};
  return {"torchrun"};
}

// Static: the numbers of nodes and of their ranks are known and stay.
Program torchrun(const Invitation& invitation, const std::vector<std::string>& command,
                 const Rendezvous& rendezvous, Environment environment, const Path& own) {
  const Place& node = invitation.place;
  const auto counts = slurm::expand_per_node(invitation.ranks_of_node);
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
  // torchrun would set 1 where nothing is set.
  set_threads(program.environment, threads_of(invitation, {node.rank, node.world_size, 0, ranks, node.node}));
  set_variable(program.environment, kWorldVariable, invitation.ranks_world);
  set_variable(program.environment, kPlaceVariable, std::string(kPlaceByTorchrun));
  unset_variable(program.environment, kRanksWorldVariable);
  set_variable(program.environment, kPortVariable, variable(program.environment, "MASTER_PORT"));
  set_variable(program.environment, kErrorsVariable, format("/proc/{}/fd/2", ::getpid()));
  return program;
}

}  // namespace

Status check_program(const Invitation& invitation, const Environment& base) {
  if (invitation.role == Role::node) return {};
  RETURN_IF_ERROR(check_interfaces(base));
  if (invitation.ranks_per_gpu < 2) return {};
  return shared_gpu(variable(base, kGpus), invitation.place, invitation.ranks_per_gpu).status();
}

Program program_of(const Invitation& invitation, const std::vector<std::string>& command,
                   const Rendezvous& rendezvous, const Environment& base, const Path& own) {
  if (invitation.role == Role::node) return torchrun(invitation, command, rendezvous, base, own);
  const Place& place = invitation.place;
  Program program{.argv = command, .environment = {}};
  if (invitation.role == Role::torchrun_rank) {
    // The port that torchrun names is its own store's, which only PyTorch in Python knows how to share: every
    // program can listen on one that is kept for it.
    program.environment = without_ours(base);
    set_variable(program.environment, "TORCHELASTIC_USE_AGENT_STORE", "False");
    set_variable(program.environment, "MASTER_ADDR", rendezvous.address);
    set_variable(program.environment, "MASTER_PORT", std::to_string(rendezvous.port));
  } else {
    program.environment = rank_environment(base, place, rendezvous, threads_of(invitation, place));
  }
  if (!invitation.is_under_srun) speak_slurm(program.environment, place, invitation.ranks_of_node);
  // The places of this step's tasks are none of an srun that the command may call.
  if (Path(variable(base, "SLURM_HOSTFILE")).parent_path() == invitation.attempt)
    unset_variable(program.environment, "SLURM_HOSTFILE");
  set_variable(program.environment, "NODE_RANK", std::to_string(place.node));
  const std::string staged = staged_folder(variable(base, kStageVariable), place.node);
  if (!staged.empty()) set_variable(program.environment, "STOKER_STAGE_DIR", staged);
  if (invitation.ranks_per_gpu < 2) return program;
  auto gpu = shared_gpu(variable(base, kGpus), place, invitation.ranks_per_gpu);
  if (gpu.ok()) set_variable(program.environment, kGpus, std::move(*gpu));
  return program;
}

}  // namespace stoker::rank
