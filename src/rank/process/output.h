// Destinations of the ranks' output: a log file that accepts everything, and a terminal (or pipe, or file)
// that may be slow, stuck or closed and must not block a training. Each object belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

/// Writes to a descriptor that may block. The pending data is bounded: when `has_capacity` is false, the
/// source should not be read, so that a slow reader slows the writer as usual. If a reader accepts nothing
/// for `write_timeout`, further data is dropped and counted until it reads again. A closed reader is no
/// error.
class Sink {
 public:
  struct Options {
    Duration write_timeout{0};
    std::size_t max_pending = 256 * 1024;
  };
  /// `fd` stays the caller's. Pipes and terminals are reopened without blocking, so that a descriptor shared
  /// with other programs keeps its mode.
  Sink(int fd, Options options);

  void push(std::string_view bytes);
  /// A whole line of Stoker's, on a separate line even if a rank's output ended mid-line.
  void push_line(std::string_view line);
  bool has_capacity() const { return waiting_.size() < options_.max_pending || skipping_ || closed_; }
  bool wants_write() const { return !waiting_.empty() && !closed_; }
  int fd() const { return fd_.get(); }
  /// Writes as much as possible without blocking, and checks the write timeout.
  void flush(MonoTime now);
  /// Until all is written, the reader is gone, or it accepts nothing for `write_timeout`.
  void drain();
  std::uint64_t left_out() const { return total_left_out_; }

 private:
  void write_some(MonoTime now);

  Options options_;
  Fd fd_;
  bool may_block_ = true;
  std::string waiting_;
  bool at_line_start_ = true;
  bool skipping_ = false;
  bool closed_ = false;
  std::uint64_t left_out_ = 0;
  std::uint64_t total_left_out_ = 0;
  MonoTime last_progress_;
};

/// Splits a stream into lines and prefixes each with "[<rank>] ". For a line overwritten with carriage
/// returns (progress bars), keeps the last state, like a terminal. Splits lines over 64 KiB.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  /// Returns the complete lines.
  std::string feed(std::string_view bytes);
  /// The rest, ended with a line end.
  std::string finish();

 private:
  void end_line(std::string* out);

  std::string prefix_;
  std::string line_;
};

/// Forwards a stream, but holds an incomplete line back for a moment, so that output of other ranks does not
/// interleave with it.
class LineBuffer {
 public:
  /// The data to forward now: everything up to the last line end, or all of it when a line exceeds 64 KiB.
  std::string feed(std::string_view bytes, MonoTime now);
  /// An incomplete line after 50 ms: a prompt, a progress bar.
  std::string overdue(MonoTime now);
  std::string finish() { return std::exchange(kept_, {}); }
  bool has_pending() const { return !kept_.empty(); }

 private:
  std::string kept_;
  MonoTime since_;
};

/// A rank's log. A failed write (disk full) loses its bytes and counts them; the next write is attempted
/// anyway.
class LogFile {
 public:
  static Result<LogFile> open(const Path& path);
  void write(std::string_view bytes);
  /// "rank-0001.log: no space left on device; 12 MB of output are missing", "rank-0001.log: was removed
  /// during the run; its output is lost", or "".
  std::string error_summary() const;

 private:
  explicit LogFile(File file) : file_(std::move(file)) {}

  File file_;
  std::uint64_t lost_ = 0;
  Status first_error_;
};

/// How much a line of output explains a failure, from least to most.
enum class LineWorth {
  none,     ///< no line
  warning,  ///< libraries print such lines at exit, after the error
  plain,
  error,  ///< an exception, or a message that names an error
};

/// A line of output and its worth.
struct FinalLine {
  LineWorth worth = LineWorth::none;
  std::string text;  ///< at most 200 bytes, printable
};

/// Keeps the end of a stream for messages about a failure: its last error, else its last nonblank line.
class Tail {
 public:
  void feed(std::string_view bytes);
  /// The last line of the highest worth.
  FinalLine final_line() const;

 private:
  std::string kept_;
};

/// The line that explains a failure best; standard error if both are equal.
std::string explaining_line(const Tail& standard_error, const Tail& standard_output);

}  // namespace stoker::rank
