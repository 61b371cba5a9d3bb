// Batch scripts that people wrote: what sbatch would read in them, and a script around one that keeps all of
// it. The #SBATCH lines are copied as they stand, so that Slurm's own parser is the only judge of them.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::slurm {

/// One option of a #SBATCH line.
struct OwnOption {
  std::string name;             ///< the long one where it is known here: "--output" for "-o"
  std::string value;            ///< "" for one without
  int line = 0;                 ///< of the script, from 1
  std::string typed;            ///< as the script has it: "-o", "--ntaks-per-node"
  std::size_t begin = 0;        ///< bytes of the line: where the option begins,
  std::size_t value_begin = 0;  ///< its value, quotes included,
  std::size_t end = 0;          ///< and where both end
  bool has_equals = false;      ///< "--output=..."
  std::string stray;            ///< a word behind it that belongs to nothing: see StrayWord
};

/// A word of a #SBATCH line that is no option and no value of one. sbatch refuses the script for it
/// from 19.05 on, and read no further options before.
struct StrayWord {
  std::string text;
  std::size_t begin = 0;  ///< bytes of the line, quotes included
  std::size_t end = 0;
  bool is_open = false;  ///< its quote has no end; sbatch refuses that of an option's value, too
};

/// What sbatch sees of a script.
struct OwnScript {
  std::vector<std::string> header;  ///< the lines with options for sbatch, as they stand in the script
  std::vector<OwnOption> options;   ///< what is in them, in order

  /// The last one of that name, which is the one that counts; null when there is none.
  const OwnOption* find(std::string_view name) const;
};

/// Slurm's own limit (max_script_size).
constexpr std::size_t kLargestScript = std::size_t{4} << 20;

/// Whether the text is a script and not a job file: it begins with "#!".
bool is_script(std::string_view text);

/// Reads a script as sbatch does: options count down to the first line that is no comment. Invalid for what
/// sbatch refuses: no "#!", line ends of DOS, an empty or too large file; `name` is the file's, for the
/// message.
Result<OwnScript> read_own_script(std::string_view name, std::string_view text);

/// The options of one line that begins with "#SBATCH", wherever it stands.
std::vector<OwnOption> read_option_line(std::string_view line, int number);

/// What else stands in it.
std::vector<StrayWord> stray_words(std::string_view line);

/// What is put around a script.
struct Wrapping {
  std::string title;     ///< one line of comment at the top
  std::string job_name;  ///< unless the script has one
  std::string comment;   ///< unless the script has one
  std::string log;  ///< pattern of the log, quoted for Slurm already (log_pattern); "": the script names one
  std::vector<std::string> extra;  ///< options for sbatch that win over the script's own, as people type them
  std::vector<std::string> command;  ///< what the batch script becomes (exec)
};

/// The batch script: defaults, then the script's own lines, then `extra`, then the command. Invalid when a
/// value cannot stand in one.
Result<std::string> wrap_own_script(const OwnScript& script, const Wrapping& wrapping);

/// The folder that must be there for a log of this pattern to be opened ("logs" for "logs/%x-%j.out"); ""
/// when it needs none, or when Slurm alone knows it (a % in it).
std::string folder_of_pattern(std::string_view pattern);

/// How many tasks an array of this description has ("1-10%1": 10), 0 when it is none.
std::size_t count_tasks(std::string_view array);

/// "118GB", "32000M", "1T": an amount of memory as Slurm reads it; nothing when it is none.
std::optional<ByteCount> parse_slurm_memory(std::string_view text);

/// "90", "90:00", "1:30:00", "2-12", "2-12:30:00": a time limit as Slurm writes and reads it; nothing for
/// "UNLIMITED", and for what is none.
std::optional<Duration> parse_slurm_limit(std::string_view text);

}  // namespace stoker::slurm
