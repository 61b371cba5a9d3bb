// User scripts: the options that sbatch reads from them, and a wrapper script that contains all of them. The
// #SBATCH lines are copied verbatim, so that Slurm's parser decides about them. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::slurm {

/// One option of a #SBATCH line.
struct SbatchOption {
  std::string name;             ///< the long name if known: "--output" for "-o"
  std::string value;            ///< "" without a value
  int line = 0;                 ///< in the script, from 1
  std::string typed;            ///< as written: "-o", "--ntaks-per-node"
  std::size_t begin = 0;        ///< byte offsets in the line: of the option,
  std::size_t value_begin = 0;  ///< of its value with quotes,
  std::size_t end = 0;          ///< and of their end
  bool has_equals = false;      ///< "--output=..."
  std::string stray;            ///< the StrayWord after it, or ""
};

/// A stray word in a #SBATCH line: neither an option nor its value. sbatch rejects the script since 19.05,
/// and ignored the rest of the line before.
struct StrayWord {
  std::string text;
  std::size_t begin = 0;  ///< byte offsets in the line, with quotes
  std::size_t end = 0;
  bool is_open = false;  ///< an unclosed quote; sbatch rejects it in a value, too
};

/// The parts of a script that sbatch reads.
struct UserScript {
  std::vector<std::string> header;    ///< the lines with sbatch options, verbatim
  std::vector<SbatchOption> options;  ///< their options in order

  /// The last option with this name, which is the effective one, or null.
  const SbatchOption* find(std::string_view name) const;
};

/// Slurm's limit (max_script_size).
constexpr std::size_t kLargestScript = std::size_t{4} << 20;

/// Whether the text is a script instead of a job file: it begins with "#!".
bool is_script(std::string_view text);

/// Parses a script like sbatch: options end at the first line that is not a comment. Invalid for scripts that
/// sbatch rejects: without "#!", with Windows line ends, empty or too large. `name` is the file name for
/// messages.
Result<UserScript> read_user_script(std::string_view name, std::string_view text);

/// The options of a line that begins with "#SBATCH".
std::vector<SbatchOption> read_option_line(std::string_view line, int number);

/// The stray words of such a line.
std::vector<StrayWord> stray_words(std::string_view line);

/// The wrapper around a user script.
struct Wrapping {
  std::string title;     ///< a comment line at the top
  std::string job_name;  ///< used if the script has none
  std::string comment;   ///< used if the script has none
  std::string log;       ///< log file pattern, escaped for Slurm (log_pattern); "" if the script sets one
  std::vector<std::string> extra;    ///< additional sbatch options that override the script
  std::vector<std::string> command;  ///< the batch script executes it with exec
};

/// The wrapper script: defaults, then the user script's lines, then `extra`, then the command. Invalid if a
/// value cannot be quoted.
Result<std::string> wrap_user_script(const UserScript& script, const Wrapping& wrapping);

/// The folder that must exist for a log file pattern ("logs" for "logs/%x-%j.out"); "" if none is needed, or
/// if it contains a %.
std::string log_folder(std::string_view pattern);

/// Number of tasks of an array specification ("1-10%1": 10), 0 if it is malformed.
std::size_t count_tasks(std::string_view array);

/// Parses Slurm's memory notation: "118GB", "32000M", "1T"; nullopt if malformed.
std::optional<ByteCount> parse_slurm_memory(std::string_view text);

/// Parses Slurm's time limit notation: "90", "90:00", "1:30:00", "2-12", "2-12:30:00"; nullopt for
/// "UNLIMITED" and malformed text.
std::optional<Duration> parse_slurm_limit(std::string_view text);

}  // namespace stoker::slurm
