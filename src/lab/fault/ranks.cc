#include "lab/fault/ranks.h"

#include <algorithm>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/processes.h"

namespace stoker::lab::fault {
namespace {

std::optional<int> number(std::string_view text) {
  std::int64_t value = 0;
  if (!parse_number(text, &value) || value < 0 || value > 1'000'000) return std::nullopt;
  return static_cast<int>(value);
}

RankIdentity read_rank_identity(pid_t pid) {
  const auto environ = read_pseudo_file(format("/proc/{}/environ", pid));
  return environ ? parse_rank_identity(*environ) : RankIdentity{};
}

}  // namespace

RankIdentity parse_rank_identity(std::string_view environ) {
  RankIdentity identity;
  std::optional<int> task;
  bool is_numbered = false;
  for (const std::string_view variable : split(environ, '\0')) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    const std::string_view value = variable.substr(equals + 1);
    if (name == "SLURM_JOB_ID") identity.job = value;
    if (name == "RANK") identity.rank = number(value);
    if (name == "SLURM_PROCID") task = number(value);
    // Batch scripts have no step id, interactive steps have an id near 2^32.
    if (name == "SLURM_STEP_ID") is_numbered = number(value).has_value();
  }
  if (is_numbered) identity.task = task;
  return identity;
}

std::map<int, RankProcesses> ranks_of(const Lab& lab, const std::string& job) {
  std::map<int, RankProcesses> by_rank;
  std::map<int, RankProcesses> by_task;
  for (const LabProcess& process : lab_processes(lab)) {
    if (process.program == "slurmstepd" || process.program == "slurmd" || process.program == "srun") continue;
    const RankIdentity identity = read_rank_identity(process.pid);
    if (identity.job != job) continue;
    const auto add = [&](std::map<int, RankProcesses>& ranks, int number) {
      ranks[number].node = process.node;
      ranks[number].pids.push_back(process.pid);
    };
    if (identity.rank) add(by_rank, *identity.rank);
    if (identity.task) add(by_task, *identity.task);
  }
  return by_rank.empty() ? by_task : by_rank;
}

int signal_rank(const RankProcesses& processes, const std::string& job, int signal) {
  int reached = 0;
  for (const pid_t pid : processes.pids) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // Checked again through the pidfd: the pid may have been reused.
    if (!process || read_rank_identity(pid).job != job) continue;
    if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) ++reached;
  }
  return reached;
}

}  // namespace stoker::lab::fault
