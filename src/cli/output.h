// The output of a command: text or, with --json, exactly one JSON value, also on error. For the main thread
// only, except progress.
#pragma once

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "base/finding.h"
#include "base/language/translator.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::manual {
struct CommandText;
}

namespace stoker::cli {

enum class OutputMode { text, json };

class Output {
 public:
  Output(OutputMode mode, std::FILE* out, std::FILE* err);
  /// An output that receives the description of a command: Arguments::parse stores it and ends the command.
  explicit Output(manual::CommandText* description);

  /// Where Arguments::parse stores the description; null for an output that prints.
  manual::CommandText* description() const { return description_; }

  bool is_json() const { return mode_ == OutputMode::json; }
  bool is_terminal() const { return is_terminal_; }
  /// Whether color is allowed: on a terminal, unless NO_COLOR is set.
  bool has_color() const { return has_color_; }

  /// Shows `stoker COMMAND` in all lines with these options, for a user on another machine: "--host
  /// login:exp".
  void show_commands_with(std::string host_options) { host_options_ = std::move(host_options); }

  /// A line on standard output. Nothing in JSON mode.
  template <typename... Args>
  void line(std::string_view pattern, const Args&... args) {
    print_line(format(pattern, args...));
  }
  /// A line on standard error in both modes: warnings and progress.
  template <typename... Args>
  void note(std::string_view pattern, const Args&... args) {
    print_note(format(pattern, args...));
  }
  /// A table as table_text() formats it. Nothing in JSON mode.
  void table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  /// A finding as text, in the language of `words`. Nothing in JSON mode.
  void finding(const Finding& finding, const Translator& words = Translator());
  /// The one JSON value (already serialized). Nothing in text mode; a second call is a bug.
  void json(std::string_view value);
  /// Text unchanged, without a newline: logs, scripts, generated files. Nothing in JSON mode.
  void raw(std::string_view text);

  /// Prints the error (in JSON mode as {"error": {"code", "message", "cure"}}) and returns its exit code.
  int fail(const Status& status);

  /// A progress line on standard error ("packing ... 68 %  34 112 files  1.9 GB/s  ETA 2 s"), drawn at most
  /// ten times a second, only on a terminal and not in JSON mode; removed when the returned object is
  /// destroyed.
  std::unique_ptr<Progress> progress(std::string_view label);

 private:
  void print_line(const std::string& text);
  void print_note(const std::string& text);
  std::string shown(const std::string& text) const;

  const OutputMode mode_;
  std::FILE* const out_;
  std::FILE* const err_;
  const bool is_terminal_;
  const bool has_color_;
  bool has_json_value_ = false;
  std::string host_options_;  // empty: the user is on this machine
  manual::CommandText* const description_ = nullptr;
};

/// Ctrl-C and SIGTERM request an orderly stop from now on; a second one exits at once (130).
void install_stop_signals();
/// Whether SIGINT or SIGTERM was received.
bool stop_requested();

/// Installs the handlers for its lifetime and restores the previous ones.
class ScopedStopSignals {
 public:
  ScopedStopSignals();
  ~ScopedStopSignals();
  ScopedStopSignals(const ScopedStopSignals&) = delete;
  ScopedStopSignals& operator=(const ScopedStopSignals&) = delete;

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
};

}  // namespace stoker::cli
