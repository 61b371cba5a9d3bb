#include "rank/process/output.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stopwatch.h"
#include "stoker/bytes.h"

namespace stoker::rank {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
// Teardown warnings of torch with their stack frames take several KiB after the error.
constexpr std::size_t kTailBytes = 32 * 1024;
// poll(2) guarantees that a pipe accepts this much at once: larger writes may block.
constexpr std::size_t kSafeWrite = 4096;

// Reopens the pipe or terminal, so that O_NONBLOCK is not shared with other processes.
Fd reopen(int fd, bool* may_block) {
  struct stat info{};
  if (::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
    const std::string path = format("/proc/self/fd/{}", fd);
    Fd own(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (own) {
      *may_block = false;
      return own;
    }
  }
  *may_block = true;
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

// A warning, its source line or its stack frames: libraries print them at exit, after the error.
bool is_warning(std::string_view line) {
  for (const std::string_view start :
       {"warnings.warn(", "[W", "frame #", "Exception raised from ", "<omitting "}) {
    if (line.starts_with(start)) return true;
  }
  for (const std::string_view word : {"Warning: ", "WARNING: ", "]:[W", " WARNING ", "leaked semaphore",
                                      "]: frame #", "]:frame #", "HeartbeatMonitor"}) {
    if (line.find(word) != line.npos) return true;
  }
  return false;
}

// "[rank0]: ValueError: no" -> "ValueError: no".
std::string_view without_rank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const std::size_t end = line.find("]:");
  return end == line.npos ? line : trim(line.substr(end + 2));
}

// The last line of a Python traceback: "ValueError: no", "torch.OutOfMemoryError: CUDA", "KeyboardInterrupt".
bool is_exception(std::string_view line) {
  std::string_view name = line.substr(0, line.find(':'));
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') return false;
  }
  if (const std::size_t dot = name.rfind('.'); dot != name.npos) name.remove_prefix(dot + 1);
  for (const std::string_view end : {"Error", "Exception", "Interrupt", "Exit"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

LineWorth worth_of(std::string_view line) {
  if (line.empty()) return LineWorth::none;
  if (is_warning(line)) return LineWorth::warning;
  line = without_rank(line);
  if (is_exception(line)) return LineWorth::error;
  for (const std::string_view word : {" error: ", "Error: ", "ERROR: ", "fatal: ", "FATAL: ", "what(): "}) {
    if (line.find(word) != line.npos) return LineWorth::error;
  }
  const bool is_error = line.starts_with("error: ") || line.starts_with("[E");
  return is_error ? LineWorth::error : LineWorth::plain;
}

}  // namespace

Sink::Sink(int fd, Options options) : options_(options), last_progress_(mono_now()) {
  fd_ = reopen(fd, &may_block_);
  closed_ = !fd_;
}

void Sink::push(std::string_view bytes) {
  if (bytes.empty() || closed_) return;
  if (skipping_) {
    left_out_ += bytes.size();
    total_left_out_ += bytes.size();
    return;
  }
  if (waiting_.empty()) last_progress_ = mono_now();
  waiting_ += bytes;
  at_line_start_ = bytes.back() == '\n';
}

void Sink::push_line(std::string_view line) { push(format("{}{}\n", at_line_start_ ? "" : "\n", line)); }

void Sink::write_some(MonoTime time) {
  while (wants_write()) {
    if (may_block_) {
      pollfd ready{fd_.get(), POLLOUT, 0};
      if (::poll(&ready, 1, 0) <= 0) return;
    }
    const std::size_t most = may_block_ ? kSafeWrite : waiting_.size();
    const ssize_t n = ::write(fd_.get(), waiting_.data(), std::min(waiting_.size(), most));
    if (n > 0) {
      waiting_.erase(0, static_cast<std::size_t>(n));
      last_progress_ = time;
    } else if (n < 0 && errno == EAGAIN) {
      return;
    } else if (n < 0 && errno != EINTR) {
      closed_ = true;  // the reader is gone; the logs have everything
      waiting_.clear();
    }
  }
}

void Sink::flush(MonoTime time) {
  write_some(time);
  if (skipping_ && waiting_.empty() && !closed_) {
    skipping_ = false;
    push_line(format("({} dropped here: the reader was blocked for {}; the logs are complete)",
                     rounded(ByteCount{left_out_}), rounded_duration(options_.write_timeout)));
    left_out_ = 0;
    write_some(time);
  }
  if (!skipping_ && waiting_.size() >= options_.max_pending &&
      time - last_progress_ > options_.write_timeout) {
    skipping_ = true;
  }
}

void Sink::drain() {
  last_progress_ = mono_now();
  while (wants_write() && mono_now() - last_progress_ <= options_.write_timeout) {
    pollfd ready{fd_.get(), POLLOUT, 0};
    ::poll(&ready, 1, 100);
    flush(mono_now());
  }
}

std::string LinePrefixer::feed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = kLongestLine - line_.size();
    const std::size_t taken = std::min({end, room, bytes.size()});
    line_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (taken == end) {
      bytes.remove_prefix(1);
      end_line(&out);
    } else if (line_.size() >= kLongestLine) {
      end_line(&out);
    }
  }
  return out;
}

std::string LinePrefixer::finish() {
  std::string out;
  if (!line_.empty()) end_line(&out);
  return out;
}

void LinePrefixer::end_line(std::string* out) {
  std::string_view shown = line_;
  while (shown.ends_with('\r')) shown.remove_suffix(1);
  if (const std::size_t back = shown.rfind('\r'); back != std::string_view::npos)
    shown.remove_prefix(back + 1);
  *out += prefix_;
  *out += shown;
  *out += '\n';
  line_.clear();
}

std::string LineBuffer::feed(std::string_view bytes, MonoTime now) {
  if (kept_.empty()) since_ = now;
  kept_ += bytes;
  const std::size_t end = kept_.rfind('\n');
  if (end == std::string::npos) return kept_.size() > kLongestLine ? finish() : std::string();
  since_ = now;
  std::string out = kept_.substr(0, end + 1);
  kept_.erase(0, end + 1);
  return out;
}

std::string LineBuffer::overdue(MonoTime now) {
  constexpr std::chrono::milliseconds kPatience{50};
  return now - since_ >= kPatience ? finish() : std::string();
}

Result<LogFile> LogFile::open(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
  return LogFile(std::move(file));
}

void LogFile::write(std::string_view bytes) {
  const Status status = file_.write(bytes);
  if (status.ok()) return;
  if (lost_ == 0) first_error_ = status;
  lost_ += bytes.size();
}

std::string LogFile::error_summary() const {
  if (lost_ > 0)
    return format("{}; {} of output are missing", first_error_.message(), rounded(ByteCount{lost_}));
  struct stat info{};
  const bool is_unlinked = ::fstat(file_.fd(), &info) == 0 && info.st_nlink == 0;
  // Some FUSE filesystems report no links for existing files.
  if (!is_unlinked || path_exists(file_.path())) return "";
  return format("{}: was removed during the run; its output is lost", printable(file_.path().string()));
}

void Tail::feed(std::string_view bytes) {
  kept_ += bytes.substr(bytes.size() - std::min(bytes.size(), kTailBytes));
  if (kept_.size() > 2 * kTailBytes) kept_.erase(0, kept_.size() - kTailBytes);
}

FinalLine Tail::final_line() const {
  constexpr std::size_t kShown = 200;
  FinalLine best;
  for (std::string_view line : split(kept_, '\n')) {
    line = trim(line);
    if (const std::size_t back = line.rfind('\r'); back != line.npos) line = trim(line.substr(back + 1));
    const LineWorth worth = worth_of(line);
    if (worth == LineWorth::none || worth < best.worth) continue;
    best = {worth, printable(line.substr(0, kShown))};
  }
  return best;
}

std::string explaining_line(const Tail& standard_error, const Tail& standard_output) {
  FinalLine error = standard_error.final_line();
  FinalLine output = standard_output.final_line();
  return std::move(output.worth > error.worth ? output.text : error.text);
}

}  // namespace stoker::rank
