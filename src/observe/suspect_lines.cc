#include "observe/suspect_lines.h"

#include <algorithm>

#include <re2/re2.h>

#include "observe/log_reader.h"
#include "record/lines.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kMaxRead = 4u << 20;
constexpr std::size_t kLongestDoubt = 4096;
constexpr std::size_t kMaxRanks = 8;

// bash: "job.sh: line 4: trainer: command not found", "job.sh: line 5: 123 Killed   python train.py"; dash:
// "job.sh: 4: trainer: not found". The following text may be on the same line, because a shell writes its
// newline separately.
constexpr const char* kFailures =
    R"(^\S+: line \d+: \S+: (command not found|No such file or directory|Permission denied|cannot execute)|)"
    R"(^\S+: line \d+:\s+\d+ (Killed|Segmentation fault|Aborted|Bus error|Illegal instruction)\b|)"
    R"(^\S+: \d+: \S+: (not found|Permission denied)|)"
    R"(^(srun|slurmstepd[^:]*): error: .*(Exited with exit code|Killed|Segmentation fault|launch failed|)"
    R"(execve\(\)|couldn't chdir|Unable to create step)|)"
    R"(^Lmod has detected the following error|^ModuleCmd_Load.*ERROR|)"
    R"(^(tar|cp|mv|mkdir|rsync|unzip|cat): .*(No such file or directory|[Cc]annot |Permission denied|failed)|)"
    R"(: (No space left on device|Disk quota exceeded)$)";
// The last line of a Python traceback: "ModuleNotFoundError: No module named 'torch'".
constexpr const char* kException = R"(^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b)";

bool matches(std::string_view line, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern);
}

}  // namespace

std::vector<SuspectLine> find_suspect_lines(const Path& log, std::size_t at_most) {
  static const RE2 kFailure(kFailures);
  static const RE2 kRaised(kException);
  std::vector<SuspectLine> suspects;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  bool is_in_traceback = false;
  (void)record::visit_lines(log, kLongestDoubt, [&](std::string_view line, record::LineKind) {
    ++number;
    bytes += line.size() + 1;
    if (line == "Traceback (most recent call last):") {
      is_in_traceback = true;
    } else if (is_in_traceback ? matches(line, kRaised) : matches(line, kFailure)) {
      suspects.push_back({log, number, printable(line.substr(0, 300))});
      is_in_traceback = false;
    } else if (!line.starts_with(' ')) {
      is_in_traceback = false;
    }
    return suspects.size() < at_most && bytes < kMaxRead;
  });
  return suspects;
}

std::vector<SuspectLine> attempt_suspect_lines(const record::Attempt& attempt, std::size_t at_most) {
  std::vector<SuspectLine> suspects;
  const auto ranks = ranks_with_logs(attempt);
  const std::size_t count = ranks.ok() ? std::min(ranks->size(), kMaxRanks) : 0;
  for (std::size_t i = 0; i < count && suspects.size() < at_most; ++i) {
    for (SuspectLine& doubt : find_suspect_lines(attempt.log((*ranks)[i]), at_most - suspects.size()))
      suspects.push_back(std::move(doubt));
  }
  // The script's log repeats the output of the ranks.
  return suspects.empty() ? find_suspect_lines(attempt.batch_log(), at_most) : suspects;
}

}  // namespace stoker::observe
