// Signs in a single log line: its level, training progress, and whether a program reports that it finished,
// failed or continues after an error. Internal to this folder. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Whether the line states a computed number by its name: "pi = 3.1416  error 1e-9", "total energy: -76.02".
bool states_number(std::string_view line);

/// Whether the line is a warning, and no error: "UserWarning: text", "WARNING:root:text".
bool is_warning(std::string_view line);

/// Whether the line reports progress of a training: an epoch, step or loss with its number. A progress bar
/// does not count, because it is also drawn while the program exits.
bool is_progress(std::string_view line);

/// How far a training is, by a line with progress.
struct ProgressCount {
  std::string unit;         ///< "epoch", "step", "epoch step": counts of one unit can be compared
  std::int64_t number = 0;  ///< larger in later lines of one process
};
/// Reads "epoch 3 | step 20", "iter: 7"; nothing for a line without such a number.
std::optional<ProgressCount> progress_count(std::string_view line);

/// Whether the line reports an empty set of data: "found 0 images in /data/val".
bool reports_nothing_found(std::string_view line);

/// Whether the line states what failed, in any words: "solver: cannot open a.bin", "invalid size".
bool states_reason(std::string_view line);

/// Whether the line belongs to the report of a launcher about an end: "----", "NOTE: invoking MPI_ABORT".
bool is_of_launcher(std::string_view line);

/// Whether the line is a progress bar with a speed: "3%|3 | 9/300 [00:10<03:00, 1.2it/s]".
bool is_progress_bar(std::string_view line);

/// Whether the line reports that the program found a way around an error: "falling back to gloo".
bool reports_fallback(std::string_view line);

/// Whether the line reports what was left after others failed: "selected batch size 32".
bool reports_choice(std::string_view line);

/// Whether the line is about one of many attempts; a search expects some to fail: "trial 3: lr=0.1".
bool is_of_trial(std::string_view line);

/// Whether such a line reports a good result.
bool is_good_trial(std::string_view line);

/// Whether the line reports that the program continues without what failed: "retrying (1/3)", "skipping it".
bool reports_retry(std::string_view line);

/// Whether the line reports an error in words: "ERROR: no data", "failed to train".
bool reports_error(std::string_view line);

/// Whether the line is the report of a failure in the words of the program, with its reason: "CRITICAL no
/// such model", "sort: error: no chrM". A line that only announces the end does not count.
bool reports_own_error(std::string_view line);

/// The report without its time, level and logger: "no such model".
std::string_view own_words(std::string_view line);

/// Whether the line is the usage of a program: "Usage: tool CONFIG".
bool prints_usage(std::string_view line);

/// Whether the line reports the end of a part of a script, perhaps the last one: "stage-in complete", "OK".
bool reports_end_of_part(std::string_view line);

/// Whether the line reports that the whole program finished: "Training complete".
bool reports_success(std::string_view line);

/// Whether the line reports an exit code of 0, or that all tests passed: "3 passed, 1 xfailed in 2.1s".
bool reports_good_exit(std::string_view line);

/// Whether Lightning ends the training there because it has converged, as its early stopping is set.
bool reports_early_stop(std::string_view line);

/// Whether the line reports the end of the program and stresses its success: "completed successfully".
bool stresses_success(std::string_view line);

/// Whether a success above the line cannot be the last word of the program: "Configuring incomplete, errors
/// occurred!". Lines with a level, and ends of a part, do not count.
bool contradicts_success(std::string_view line);

/// Whether the line reports how much the program has done, perhaps at its end: "finished 30 steps", "Done. 3
/// files skipped". A program may print such lines repeatedly.
bool reports_amount(std::string_view line);

/// Whether the line has a measure of the program, which a script around it does not know: "best val_acc
/// 0.82".
bool has_measure(std::string_view line);

/// Whether bash reports there the end of a program that only accompanies the training: "Killed  sleep 300".
bool is_end_of_helper(std::string_view line);

/// Whether the command that bash reports as killed runs something else than the training: "tar", "rsync".
bool is_other_command(std::string_view command);

/// The line without its time, level and logger.
std::string_view without_head(std::string_view line);

/// Whether the line reports a result that a program usually prints at its end, but may print earlier: "wrote
/// model.txt", "Best model at epoch 12: 0.91", "Training time: 0:12:03".
bool reports_result(std::string_view line);

/// Whether the line reports a failed end: a nonzero exit code, a fatal signal.
bool reports_failed_end(std::string_view line);

}  // namespace stoker::diagnose
