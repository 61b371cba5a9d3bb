#include "report/next_request.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stoker::report {
namespace {

constexpr double kReserve = 1.25;
constexpr double kLittle = 0.5;
constexpr double kNearlyAll = 0.95;

bool is_done(const RunFacts& facts) { return facts.state_word == "done" && facts.efficiency.has_value(); }

}  // namespace

NextRequest next_time(const RunFacts& facts) {
  if (!is_done(facts)) return {};
  const Efficiency& use = *facts.efficiency;
  if (!(use.time_limit > 0) || !(use.seconds > 0) || use.seconds >= kLittle * use.time_limit) return {};
  // Whole 5 minutes; below an hour shorter limits gain nothing in the queue.
  const double wanted = std::max(kReserve * use.seconds, use.seconds + 300);
  const auto minutes = static_cast<std::int64_t>(std::ceil(wanted / 300)) * 5;
  if (static_cast<double>(minutes) * 60 >= use.time_limit) return {};
  return {format("resources.time: {}m", minutes),
          format("#SBATCH --time={:02}:{:02}:00", minutes / 60, minutes % 60)};
}

NextRequest next_memory(const RunFacts& facts) {
  if (!is_done(facts)) return {};
  const Efficiency& use = *facts.efficiency;
  if (use.is_memory_limit || !(use.memory_asked > 0) || !(use.memory_peak > 0)) return {};
  const double share = use.memory_peak / use.memory_asked;
  if (share >= kLittle && share <= kNearlyAll) return {};
  // Slurm's G is 1024 MiB; so is the request.
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const auto size = static_cast<std::int64_t>(std::ceil(kReserve * use.memory_peak / kGiB));
  if (share < kLittle && static_cast<double>(size) * kGiB >= use.memory_asked) return {};
  return {format("resources.memory_per_node: {}GiB", size), format("#SBATCH --mem={}G", size)};
}

NextRequest next_cpus(const RunFacts& facts) {
  if (!facts.efficiency || !facts.job || !facts.job->resources.cpus_per_rank) return {};
  const Efficiency& use = *facts.efficiency;
  const double asked = *facts.job->resources.cpus_per_rank;
  if (!(use.cpu_reserved_s > 0) || !std::isfinite(use.cpu_used_s)) return {};
  const double share = use.cpu_used_s / use.cpu_reserved_s;
  const double wanted = std::max(1.0, std::ceil(kReserve * share * asked));
  if (share >= kLittle || wanted >= asked) return {};
  return {format("resources.cpus_per_rank: {:.0f}", wanted),
          format("#SBATCH --cpus-per-task={:.0f}", wanted)};
}

}  // namespace stoker::report
