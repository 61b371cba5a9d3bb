// Where the output of ranks goes: a log file that takes everything, and a terminal (or pipe, or file) that
// may be slow, stuck or gone and must never hold a training up for long. Each object belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::rank {

/// Bytes on their way to a descriptor that may not take them. What waits is bounded: beyond it `has_room` is
/// false and the source should not be read, so that a slow reader slows the writer as it would without us. A
/// reader that takes nothing at all for `patience` is no longer waited for: what comes then is left out here
/// and counted, until it reads again. A reader that is gone takes nothing for ever; that is no error.
class Sink {
 public:
  struct Options {
    Duration patience{0};
    std::size_t most_waiting = 256 * 1024;
  };
  /// `fd` stays the caller's. Pipes and terminals are opened once more without blocking, so that the
  /// descriptor shared with other programs keeps its mode.
  Sink(int fd, Options options);

  void push(std::string_view bytes);
  /// A whole line of ours: on a line of its own even where a rank's output stopped in the middle of one.
  void push_line(std::string_view line);
  bool has_room() const { return waiting_.size() < options_.most_waiting || skipping_ || closed_; }
  bool wants_write() const { return !waiting_.empty() && !closed_; }
  int fd() const { return fd_.get(); }
  /// Writes what goes without blocking, and judges the reader's patience.
  void flush(MonoTime now);
  /// Until all is written, the reader is gone, or it takes nothing for `patience`.
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

/// Cuts a stream into lines with "[<rank>] " before each. Of a line that carriage returns overwrite (progress
/// bars) the last state is kept, as a terminal would show it. Lines over 64 KiB come out in pieces.
class LineMarker {
 public:
  explicit LineMarker(std::string prefix) : prefix_(std::move(prefix)) {}
  /// The lines that are complete now.
  std::string feed(std::string_view bytes);
  /// What is left, ended with a line end.
  std::string finish();

 private:
  void end_line(std::string* out);

  std::string prefix_;
  std::string line_;
};

/// Lets a stream through as it is, but keeps the beginning of a line back for a moment, so that lines of
/// others do not land in the middle of it.
class LineKeeper {
 public:
  /// What may go on now: everything up to the last line end, or all of it when a line grows over 64 KiB.
  std::string feed(std::string_view bytes, MonoTime now);
  /// The beginning of a line that nobody has ended for 50 ms: a prompt, a progress bar.
  std::string overdue(MonoTime now);
  std::string finish() { return std::exchange(kept_, {}); }
  bool is_keeping() const { return !kept_.empty(); }

 private:
  std::string kept_;
  MonoTime since_;
};

/// A rank's log. A write that fails (disk full) loses those bytes, is counted, and is tried again at the next
/// one.
class LogFile {
 public:
  static Result<LogFile> open(const Path& path);
  void write(std::string_view bytes);
  /// "rank-0001.log: 12 MB are missing (no space left on device)", or "".
  std::string complaint() const;

 private:
  explicit LogFile(File file) : file_(std::move(file)) {}

  File file_;
  std::uint64_t lost_ = 0;
  Status first_error_;
};

/// Remembers how a stream ends: its last line with something on it, for messages.
class Tail {
 public:
  void feed(std::string_view bytes);
  /// At most 200 bytes, printable; "" if there is none.
  std::string last_line() const;

 private:
  std::string kept_;
};

}  // namespace stoker::rank
