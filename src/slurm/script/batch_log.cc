#include "slurm/script/batch_log.h"

#include "base/text.h"
#include "slurm/queue/job_table.h"

namespace stoker::slurm {
namespace {

JobState state_of(std::string_view why) {
  if (why.starts_with("DUE TO TIME LIMIT")) return JobState::timeout;
  if (why.starts_with("DUE TO PREEMPTION")) return JobState::preempted;
  if (why.starts_with("DUE TO NODE FAILURE")) return JobState::node_failed;
  if (why.starts_with("DUE TO JOB REQUEUE")) return JobState::pending;
  return JobState::cancelled;
}

// "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:13:52 DUE TO PREEMPTION ***"; the name of
// the node is part of the program's only from some releases on.
std::optional<BatchEnding> parse_line(std::string_view line, std::string_view id) {
  if (!line.starts_with("slurmstepd") && !line.starts_with("slurmd")) return std::nullopt;
  const std::string start = format("*** JOB {} ON ", id);
  const std::size_t at = line.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + start.size());
  constexpr std::string_view kCancelled = " CANCELLED AT ";
  const std::size_t cancelled = rest.find(kCancelled);
  if (cancelled == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(cancelled + kCancelled.size());
  const std::size_t blank = std::min(rest.find(' '), rest.size());
  return BatchEnding{state_of(trim(rest.substr(blank))), parse_slurm_time(rest.substr(0, blank))};
}

}  // namespace

std::optional<BatchEnding> last_ending(std::string_view log, std::string_view id) {
  std::optional<BatchEnding> last;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (const auto ending = parse_line(log.substr(0, end), id)) last = ending;
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return last;
}

}  // namespace stoker::slurm
