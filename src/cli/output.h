// The only way a command prints. Text for people or, with --json, exactly one JSON value, also on error.
// Belongs to the main thread, progress aside.
#pragma once

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "base/progress.h"
#include "base/status.h"

namespace stoker::cli {

enum class OutputMode { text, json };

/// What a process returns. DESIGN of the numbers: docs/exit-codes.md.
namespace exit_code {
constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kUnavailable = 3;
constexpr int kBug = 70;
constexpr int kStoppedAfterCheckpoint = 75;
constexpr int kInterrupted = 130;
/// The exit code of an error: invalid 2, unavailable 3, internal 70, cancelled 130, everything else 1.
int of(const Status& status);
}  // namespace exit_code

class Output {
 public:
  Output(OutputMode mode, std::FILE* out, std::FILE* err);

  bool is_json() const { return mode_ == OutputMode::json; }
  bool is_terminal() const { return is_terminal_; }
  /// Colour is allowed: a terminal, and NO_COLOR is not set.
  bool has_color() const { return has_color_; }

  /// A line on standard output. Nothing in JSON mode.
  template <typename... Args>
  void line(std::string_view pattern, const Args&... args) {
    print_line(format(pattern, args...));
  }
  /// A line on standard error, in both modes: warnings and what is being done.
  template <typename... Args>
  void note(std::string_view pattern, const Args&... args) {
    print_note(format(pattern, args...));
  }
  /// Aligned columns under a header; columns whose cells are all numbers are right-aligned. Nothing in JSON
  /// mode.
  void table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  /// A finding as people read it, told in the language of `words`. Nothing in JSON mode.
  void finding(const Finding& finding, const Words& words = Words());
  /// The one JSON value (already serialized). Nothing in text mode; a second call is a bug.
  void json(std::string_view value);
  /// Text as it is, without a line end added: logs, scripts, generated files. Nothing in JSON mode.
  void raw(std::string_view text);

  /// Prints the error (in JSON mode as {"error": {"code", "message", "cure"}}) and returns its exit code.
  int fail(const Status& status);

  /// A progress line on standard error ("packing ... 68 %  34 112 files  1.9 GB/s  ETA 2 s"), drawn at most
  /// ten times a second, only on a terminal and not in JSON mode; gone when the returned object is destroyed.
  std::unique_ptr<Progress> progress(std::string_view label);

 private:
  void print_line(const std::string& text);
  void print_note(const std::string& text);

  const OutputMode mode_;
  std::FILE* const out_;
  std::FILE* const err_;
  const bool is_terminal_;
  const bool has_color_;
  bool has_json_value_ = false;
};

/// Ctrl-C and SIGTERM ask for an orderly end from now on; a second one ends the process at once (exit 130).
void install_stop_signals();
/// True once SIGINT or SIGTERM has come.
bool stop_requested();

/// The same for as long as it lives; after it these signals do what they did before.
class StopSignalsMeanwhile {
 public:
  StopSignalsMeanwhile();
  ~StopSignalsMeanwhile();
  StopSignalsMeanwhile(const StopSignalsMeanwhile&) = delete;
  StopSignalsMeanwhile& operator=(const StopSignalsMeanwhile&) = delete;

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
};

}  // namespace stoker::cli
