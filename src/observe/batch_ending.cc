#include "observe/batch_ending.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kRead = 256 * 1024;

// The number in "run 2026-..._digits_ab12   attempt 2, from the start", which `stoker run` says first; 0 for
// any other line.
int begun_attempt(std::string_view line, std::string_view run_id) {
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

// The attempt in whose folder the log of this one is: its own, or that of the submission before it.
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

std::string_view part_of_attempt(std::string_view log, std::string_view run_id, int first, int number) {
  int current = first;
  std::size_t begin = first == number ? 0 : std::string_view::npos;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    if (const int begun = begun_attempt(log.substr(at, end - at), run_id)) {
      // What stands before the first mark of a log's end is of the attempt before it.
      if (current == 0 && begun == number + 1) return log.substr(0, at);
      if (current == number && begun != number) return log.substr(begin, at - begin);
      if (begun == number) begin = at;
      current = begun;
    }
    at = end + 1;
  }
  // No mark in the end of a log that is longer: all of it is of the last attempt.
  if (current == 0) return log;
  return current == number && begin != std::string_view::npos ? log.substr(begin) : std::string_view{};
}

std::optional<slurm::BatchEnding> batch_ending(const record::RunFolder& run, const record::Attempt& attempt,
                                               std::string_view id) {
  const auto owner = owner_of_log(run, attempt);
  if (!owner || id.empty()) return std::nullopt;
  const auto log = File::open_regular(owner->batch_log());
  if (!log.ok()) return std::nullopt;
  const auto size = log->size();
  if (!size.ok()) return std::nullopt;
  std::string end(std::min(*size, kRead), '\0');
  if (!log->read_at(*size - end.size(), std::as_writable_bytes(std::span(end))).ok()) return std::nullopt;
  const int first = *size > kRead ? 0 : owner->number();
  return slurm::last_ending(part_of_attempt(end, run.id(), first, attempt.number()), id);
}

std::string_view ending_word(slurm::JobState state) {
  // scontrol requeue, and what Slurm starts again by itself.
  if (state == slurm::JobState::pending) return "requeued";
  return slurm::to_text(state);
}

}  // namespace stoker::observe
