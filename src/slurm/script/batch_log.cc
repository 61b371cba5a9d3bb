#include "slurm/script/batch_log.h"

#include <array>

#include "base/bytes.h"
#include "base/text.h"
#include "slurm/queue/job_table.h"

namespace stoker::slurm {
namespace {

constexpr std::string_view kStart = "*** JOB ";

JobState state_of(std::string_view why) {
  if (why.starts_with("DUE TO TIME LIMIT")) return JobState::timeout;
  if (why.starts_with("DUE TO PREEMPTION")) return JobState::preempted;
  if (why.starts_with("DUE TO NODE FAILURE")) return JobState::node_failed;
  if (why.starts_with("DUE TO JOB REQUEUE")) return JobState::pending;
  return JobState::cancelled;
}

bool is_of_slurm(std::string_view line) {
  return line.starts_with("slurmstepd") || line.starts_with("slurmd");
}

// The tasks of an array have numbers of their own in their logs.
bool is_any(std::string_view id) { return id.empty() || id.find_first_of("_+") != std::string_view::npos; }

// Of the job with that id, or of no job by name: the log is the job's. The tasks of an array have numbers of
// their own there.
bool may_be_of(std::string_view line, std::string_view id) {
  constexpr std::string_view kStep = "StepId=";
  const std::size_t at = line.find(kStep);
  if (at == std::string_view::npos || is_any(id)) return true;
  const std::string_view step = line.substr(at + kStep.size());
  return step.starts_with(id) && step.substr(id.size()).starts_with(".");
}

// "(268435456 > 67108864)" as "268 MB of 67.1 MB"; "" when it is not that.
std::string figures_of(std::string_view line) {
  const std::size_t open = line.find('(');
  const std::size_t mark = line.find(" > ", open);
  const std::size_t close = line.find(')', mark);
  std::uint64_t taken = 0;
  std::uint64_t limit = 0;
  if (close == std::string_view::npos || !parse_number(line.substr(open + 1, mark - open - 1), &taken) ||
      !parse_number(line.substr(mark + 3, close - mark - 3), &limit))
    return "";
  return format("{} of {}", rounded(ByteCount{taken}), rounded(ByteCount{limit}));
}

// "slurmstepd: error: StepId=7.0 exceeded memory limit (268435456 > 67108864), being killed" of a sampling
// slurmd; "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0 cgroup." and, from 23.02 on,
// "Detected 1 oom_kill event in StepId=7.0." of the kernel's limit.
std::optional<BatchEnding> parse_memory(std::string_view line, std::string_view id) {
  constexpr std::array<std::string_view, 5> kWords = {"exceeded memory limit", "Exceeded job memory limit",
                                                      "Exceeded step memory limit", "oom-kill event",
                                                      "oom_kill event"};
  if (!is_of_slurm(line) || !may_be_of(line, id)) return std::nullopt;
  for (std::string_view words : kWords) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) continue;
    return BatchEnding{JobState::out_of_memory, std::nullopt, figures_of(line.substr(at))};
  }
  return std::nullopt;
}

// "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:13:52 DUE TO PREEMPTION ***"; the name of
// the node is part of the program's only from some releases on.
std::optional<BatchEnding> parse_line(std::string_view line, std::string_view id) {
  if (!is_of_slurm(line)) return std::nullopt;
  const std::size_t at = line.find(kStart);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kStart.size());
  const std::size_t on = rest.find(" ON ");
  if (on == std::string_view::npos || !is_job_id(rest.substr(0, on))) return std::nullopt;
  if (!is_any(id) && rest.substr(0, on) != id) return std::nullopt;
  constexpr std::string_view kCancelled = " CANCELLED AT ";
  const std::size_t cancelled = rest.find(kCancelled);
  if (cancelled == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(cancelled + kCancelled.size());
  const std::size_t blank = std::min(rest.find(' '), rest.size());
  return BatchEnding{state_of(trim(rest.substr(blank))), parse_slurm_time(rest.substr(0, blank)), ""};
}

}  // namespace

std::vector<BatchEnding> endings(std::string_view log, std::string_view id) {
  std::vector<BatchEnding> found;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    const bool has_memory = !found.empty() && found.back().state == JobState::out_of_memory;
    if (auto memory = parse_memory(line, id)) {
      // The first of several words about one end has the figures.
      if (!has_memory || !memory->figures.empty()) found.push_back(*std::move(memory));
    } else if (auto ending = parse_line(line, id)) {
      const bool is_its_end = has_memory && ending->state == JobState::cancelled;
      if (!is_its_end) found.push_back(*std::move(ending));
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return found;
}

std::optional<BatchEnding> last_ending(std::string_view log, std::string_view id) {
  const std::vector<BatchEnding> all = endings(log, id);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

}  // namespace stoker::slurm
