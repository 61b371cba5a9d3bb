#include "observe/job_termination.h"

#include <algorithm>
#include <csignal>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kRead = 256 * 1024;

// The number in "run 2026-..._digits_ab12   attempt 2, from the start", the first line of `stoker run`; 0 for
// any other line.
int parse_attempt_header(std::string_view line, std::string_view run_id) {
  constexpr std::string_view kRun = "run ";
  constexpr std::string_view kAttempt = "   attempt ";
  if (!line.starts_with(kRun)) return 0;
  line.remove_prefix(kRun.size());
  if (run_id.empty() || !line.starts_with(run_id)) return 0;
  line.remove_prefix(run_id.size());
  if (!line.starts_with(kAttempt)) return 0;
  line.remove_prefix(kAttempt.size());
  std::int64_t number = 0;
  return parse_number(line.substr(0, line.find(',')), &number) && number > 0 && number < 1'000'000
             ? static_cast<int>(number)
             : 0;
}

// The attempt whose folder contains the log: the attempt itself, or the one that was submitted before it.
std::optional<record::Attempt> owner_of_log(const record::RunFolder& run, const record::Attempt& attempt) {
  if (path_exists(attempt.batch_log())) return attempt;
  const auto attempts = run.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto other = attempts->rbegin(); other != attempts->rend(); ++other) {
    if (other->number() < attempt.number() && path_exists(other->batch_log())) return *other;
  }
  return std::nullopt;
}

}  // namespace

std::string_view attempt_section(std::string_view log, std::string_view run_id, int first, int number) {
  int current = first;
  std::size_t begin = first == number ? 0 : std::string_view::npos;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    if (const int begun = parse_attempt_header(log.substr(at, end - at), run_id)) {
      // Text before the first header in the end of a log belongs to the previous attempt.
      if (current == 0 && begun == number + 1) return log.substr(0, at);
      if (current == number && begun != number) return log.substr(begin, at - begin);
      if (begun == number) begin = at;
      current = begun;
    }
    at = end + 1;
  }
  // No header in the end of a longer log: all of it belongs to the last attempt.
  if (current == 0) return log;
  return current == number && begin != std::string_view::npos ? log.substr(begin) : std::string_view{};
}

std::optional<slurm::JobTermination> job_termination(const record::RunFolder& run,
                                                     const record::Attempt& attempt, std::string_view id) {
  const auto owner = owner_of_log(run, attempt);
  if (!owner || id.empty()) return std::nullopt;
  const auto log = File::open_regular(owner->batch_log());
  if (!log.ok()) return std::nullopt;
  const auto size = log->size();
  if (!size.ok()) return std::nullopt;
  std::string end(std::min(*size, kRead), '\0');
  if (!log->read_at(*size - end.size(), std::as_writable_bytes(std::span(end))).ok()) return std::nullopt;
  const int first = *size > kRead ? 0 : owner->number();
  return slurm::last_termination(attempt_section(end, run.id(), first, attempt.number()), id);
}

bool explains_end(const slurm::JobTermination& message, double ended, std::optional<int> exit_code) {
  // Slurm's timestamps are whole seconds.
  if (!message.time || ended <= 0 || ended >= *message.time - 1) return true;
  return message.state == slurm::JobState::preempted && exit_code == 128 + SIGTERM;
}

std::string_view termination_text(slurm::JobState state) {
  // scontrol requeue, or an automatic restart by Slurm.
  if (state == slurm::JobState::pending) return "requeued";
  return slurm::to_text(state);
}

}  // namespace stoker::observe
