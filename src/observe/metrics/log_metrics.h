// Metrics in the output of a program: progress bars of tqdm and Lightning, lines of Hugging Face's Trainer
// and of Keras, JSON lines, or a regular expression. Read by the supervisor of a rank while it writes the
// log. One thread; bounded memory. Formats: docs/formats/metrics.md#log-lines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/status.h"

namespace re2 {
class RE2;
}

namespace stoker::observe {

/// Metrics of one line.
struct LineMetrics {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;
};

/// What the lines of a program have shown so far: lines without a step use it.
class LogMetrics {
 public:
  /// Known formats, or the named groups of an RE2 expression. Invalid for a bad expression.
  static Result<LogMetrics> create(std::string_view regex);
  LogMetrics(LogMetrics&&) noexcept;
  LogMetrics& operator=(LogMetrics&&) noexcept;
  ~LogMetrics();

  /// The metrics of a line, without its end and with its colours; nullopt if it has none.
  std::optional<LineMetrics> read(std::string_view line);
  /// A progress bar stays on an unfinished line: takes its step.
  void read_unfinished(std::string_view line);

 private:
  LogMetrics() = default;
  std::optional<LineMetrics> read_regex(std::string_view line);
  std::optional<LineMetrics> read_bar(std::string_view line);
  std::optional<LineMetrics> read_keras(std::string_view line);
  std::optional<LineMetrics> read_dict(std::string_view line);
  void read_epoch(std::string_view line);

  std::unique_ptr<re2::RE2> regex_;
  std::vector<std::pair<std::string, int>> groups_;  ///< names and numbers
  int step_group_ = 0;                               ///< 0: none
  std::int64_t lines_ = 0;                           ///< with metrics
  std::int64_t bar_total_ = 0;                       ///< of the bar of the training
  std::int64_t bar_done_ = 0;
  std::int64_t bar_rounds_ = 0;  ///< how often it began again
  std::optional<std::int64_t> bar_step_;
  std::int64_t epoch_ = 0;  ///< of "Epoch 3/10", from 0
};

/// Cuts a stream into lines, at carriage returns and backspaces too. Lines over 64 KiB are dropped.
class LineSplitter {
 public:
  /// Calls `visit` with each complete line.
  template <typename Visit>
  void feed(std::string_view bytes, const Visit& visit) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find_first_of("\n\r\b");
      append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (!is_too_long_ && !line_.empty()) visit(std::string_view(line_));
      line_.clear();
      is_too_long_ = false;
    }
  }
  /// The line without an end so far.
  std::string_view unfinished() const { return line_; }

 private:
  void append(std::string_view part) {
    constexpr std::size_t kLongest = 64 * 1024;
    is_too_long_ = is_too_long_ || line_.size() + part.size() > kLongest;
    if (!is_too_long_) line_ += part;
  }

  std::string line_;
  bool is_too_long_ = false;
};

}  // namespace stoker::observe
