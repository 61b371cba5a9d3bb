#include "slurm/queue/batch_log.h"

#include <array>

#include "slurm/queue/job_table.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

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

bool is_slurm_line(std::string_view line) {
  return line.starts_with("slurmstepd") || line.starts_with("slurmd");
}

// Array tasks have a different raw id in their logs.
bool matches_any_job(std::string_view id) {
  return id.empty() || id.find_first_of("_+") != std::string_view::npos;
}

// Whether a line is about the job, or names no job: the log belongs to the job.
bool matches_job(std::string_view line, std::string_view id) {
  constexpr std::string_view kStep = "StepId=";
  const std::size_t at = line.find(kStep);
  if (at == std::string_view::npos || matches_any_job(id)) return true;
  const std::string_view step = line.substr(at + kStep.size());
  return step.starts_with(id) && step.substr(id.size()).starts_with(".");
}

// "(268435456 > 67108864)" as "268 MB of 67.1 MB", else "".
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
// slurmd; "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0 cgroup." and, since 23.02, "Detected
// 1 oom_kill event in StepId=7.0." of the kernel's limit.
std::optional<JobTermination> parse_memory(std::string_view line, std::string_view id) {
  constexpr std::array<std::string_view, 5> kWords = {"exceeded memory limit", "Exceeded job memory limit",
                                                      "Exceeded step memory limit", "oom-kill event",
                                                      "oom_kill event"};
  if (!is_slurm_line(line) || !matches_job(line, id)) return std::nullopt;
  for (std::string_view words : kWords) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) continue;
    return JobTermination{JobState::out_of_memory, std::nullopt, figures_of(line.substr(at))};
  }
  return std::nullopt;
}

// "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:13:52 DUE TO PREEMPTION ***". Older
// releases omit the node in the prefix.
std::optional<JobTermination> parse_line(std::string_view line, std::string_view id) {
  if (!is_slurm_line(line)) return std::nullopt;
  const std::size_t at = line.find(kStart);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kStart.size());
  const std::size_t on = rest.find(" ON ");
  if (on == std::string_view::npos || !is_job_id(rest.substr(0, on))) return std::nullopt;
  if (!matches_any_job(id) && rest.substr(0, on) != id) return std::nullopt;
  constexpr std::string_view kCancelled = " CANCELLED AT ";
  const std::size_t cancelled = rest.find(kCancelled);
  if (cancelled == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(cancelled + kCancelled.size());
  const std::size_t blank = std::min(rest.find(' '), rest.size());
  return JobTermination{state_of(trim(rest.substr(blank))), parse_slurm_time(rest.substr(0, blank)), ""};
}

}  // namespace

std::vector<JobTermination> parse_terminations(std::string_view log, std::string_view id) {
  std::vector<JobTermination> found;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    const bool has_memory = !found.empty() && found.back().state == JobState::out_of_memory;
    if (auto memory = parse_memory(line, id)) {
      // The first of several messages about one termination contains the figures.
      if (!has_memory || !memory->figures.empty()) found.push_back(*std::move(memory));
    } else if (auto ending = parse_line(line, id)) {
      const bool is_its_end = has_memory && ending->state == JobState::cancelled;
      if (!is_its_end) found.push_back(*std::move(ending));
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return found;
}

std::optional<JobTermination> last_termination(std::string_view log, std::string_view id) {
  const std::vector<JobTermination> all = parse_terminations(log, id);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

}  // namespace stoker::slurm
