#include "observe/suspect_lines.h"

#include <algorithm>
#include <optional>
#include <utility>

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
// A line of a logging call, which may print a traceback of an exception that the program handled.
constexpr const char* kLogMessage =
    R"((?:^|[\s\[|:(])(?:ERROR|WARNING|CRITICAL|EXCEPTION|INFO|DEBUG)(?:[\s\]|:)]|$))";
constexpr const char* kException = R"(^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b)";

bool matches(std::string_view line, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern);
}

// Reports of exceptions that do not end the program.
constexpr std::string_view kLoggingError = "--- Logging error";
constexpr std::string_view kIgnored = "Exception ignored ";
constexpr std::size_t kLongestPrevious = 1024;

// Finds suspect lines among the lines of a log, in order.
class SuspectScan {
 public:
  explicit SuspectScan(const Path& log) : log_(log) {}

  void add(std::string_view line) {
    static const RE2 kFailure(kFailures);
    static const RE2 kRaised(kException);
    static const RE2 kMessage(kLogMessage);
    ++number_;
    if (!line.empty()) logged_.reset();  // the program continued
    if (line == "Traceback (most recent call last):") {
      is_in_traceback_ = true;
      is_logged_ = matches(previous_, kMessage);
    } else if (line.starts_with(kLoggingError)) {
      report_ = Report::logging;
    } else if (line.starts_with(kIgnored)) {
      report_ = Report::ignored;
    } else if (is_in_traceback_ ? matches(line, kRaised)
                                : report_ != Report::logging && matches(line, kFailure)) {
      add_suspect(line);
      is_in_traceback_ = false;
    } else if (!line.starts_with(' ')) {
      is_in_traceback_ = false;
    }
    const bool is_end = report_ == Report::ignored
                            ? !is_in_traceback_ && !line.starts_with(kIgnored)
                            : line.starts_with("Arguments: ") || line.starts_with("--- End of logging error");
    if (is_end) report_ = Report::none;
    previous_ = line.substr(0, kLongestPrevious);
  }

  std::size_t count() const { return found_.size(); }

  std::vector<SuspectLine> finish() {
    if (logged_) found_.push_back(*std::move(logged_));
    return std::move(found_);
  }

 private:
  enum class Report { none, logging, ignored };

  void add_suspect(std::string_view line) {
    if (is_in_traceback_ && report_ != Report::none) return;
    SuspectLine suspect{log_, number_, printable(line.substr(0, 300))};
    if (is_in_traceback_ && is_logged_) {
      logged_ = std::move(suspect);
    } else {
      found_.push_back(std::move(suspect));
    }
  }

  const Path& log_;
  std::vector<SuspectLine> found_;
  std::optional<SuspectLine> logged_;  // an exception that a logging call printed as the last line so far
  std::uint64_t number_ = 0;
  std::string previous_;
  Report report_ = Report::none;
  bool is_in_traceback_ = false;
  bool is_logged_ = false;  // a logging call printed the traceback
};

}  // namespace

std::vector<SuspectLine> find_suspect_lines(const Path& log, std::size_t at_most) {
  SuspectScan scan(log);
  std::uint64_t bytes = 0;
  (void)record::visit_lines(log, kLongestDoubt, [&](std::string_view line, record::LineKind) {
    bytes += line.size() + 1;
    scan.add(line);
    return scan.count() < at_most && bytes < kMaxRead;
  });
  std::vector<SuspectLine> found = scan.finish();
  if (found.size() > at_most) found.resize(at_most);
  return found;
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
