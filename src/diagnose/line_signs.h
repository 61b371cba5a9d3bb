// Signs in a single log line: its level, training progress, and whether a program reports that it finished,
// failed or continues after an error. Internal to this folder. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker::diagnose {

/// The level of a line that a logging library printed.
enum class LogLevel {
  none,     ///< printed without one, for example by print() or the Python interpreter
  info,     ///< also debug
  warning,  ///< also error and critical: the program may have handled it
};

/// Reads "INFO:root:", "2025-11-21 10:03:11 ERROR text", "[WARNING]", "I1121 10:03:11.25", "(raylet) ".
LogLevel level_of(std::string_view line);

/// Whether the line reports progress of a training: an epoch, step or loss with its number. A progress bar
/// does not count, because it is also drawn while the program exits.
bool is_progress(std::string_view line);

/// Whether the line is a progress bar with a speed: "3%|3 | 9/300 [00:10<03:00, 1.2it/s]".
bool is_progress_bar(std::string_view line);

/// Whether the line reports that the program found a way around an error: "falling back to gloo".
bool reports_fallback(std::string_view line);

/// Whether the line reports that the program continues without what failed: "retrying (1/3)", "skipping it".
bool reports_retry(std::string_view line);

/// Whether the line reports an error in words: "ERROR: no data", "failed to train".
bool reports_error(std::string_view line);

/// Whether the line reports that the whole program finished: "Training complete".
bool reports_success(std::string_view line);

/// Whether the line reports a result that a program usually prints at its end, but may print earlier: "wrote
/// model.txt", "Best model at epoch 12: 0.91", "Training time: 0:12:03".
bool reports_result(std::string_view line);

/// Whether the line reports a failed end: a nonzero exit code, a fatal signal.
bool reports_failed_end(std::string_view line);

}  // namespace stoker::diagnose
