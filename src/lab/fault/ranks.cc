#include "lab/fault/ranks.h"

#include <algorithm>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/daemons.h"

namespace stoker::lab::fault {
namespace {

std::optional<int> number(std::string_view text) {
  std::int64_t value = 0;
  if (!parse_number(text, &value) || value < 0 || value > 1'000'000) return std::nullopt;
  return static_cast<int>(value);
}

Place place_of_process(pid_t pid) {
  const auto environ = read_pseudo_file(format("/proc/{}/environ", pid));
  return environ ? place_of(*environ) : Place{};
}

}  // namespace

Place place_of(std::string_view environ) {
  Place place;
  std::optional<int> task;
  bool is_numbered = false;
  for (const std::string_view variable : split(environ, '\0')) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    const std::string_view value = variable.substr(equals + 1);
    if (name == "SLURM_JOB_ID") place.job = value;
    if (name == "RANK") place.rank = number(value);
    if (name == "SLURM_PROCID") task = number(value);
    // Batch scripts have no step id, interactive steps one near 2^32.
    if (name == "SLURM_STEP_ID") is_numbered = number(value).has_value();
  }
  if (is_numbered) place.task = task;
  return place;
}

std::map<int, RankProcesses> ranks_of(const Lab& lab, const std::string& job) {
  std::map<int, RankProcesses> by_rank;
  std::map<int, RankProcesses> by_task;
  for (const Member& member : members(lab)) {
    if (member.program == "slurmstepd" || member.program == "slurmd" || member.program == "srun") continue;
    const Place place = place_of_process(member.pid);
    if (place.job != job) continue;
    const auto add = [&](std::map<int, RankProcesses>& ranks, int number) {
      ranks[number].node = member.node;
      ranks[number].pids.push_back(member.pid);
    };
    if (place.rank) add(by_rank, *place.rank);
    if (place.task) add(by_task, *place.task);
  }
  return by_rank.empty() ? by_task : by_rank;
}

int signal_rank(const RankProcesses& processes, const std::string& job, int signal) {
  int reached = 0;
  for (const pid_t pid : processes.pids) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // Looked at again after it is held: its number may have gone to another process meanwhile.
    if (!process || place_of_process(pid).job != job) continue;
    if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) ++reached;
  }
  return reached;
}

}  // namespace stoker::lab::fault
