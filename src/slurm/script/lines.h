// The lines of a batch script as they are put together: comments, and options quoted as sbatch reads them.
// Used by what writes batch scripts in this folder. Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace stoker::slurm {

/// A script that grows line by line. The first value that no #SBATCH line can hold makes finish() fail.
class Lines {
 public:
  void text(std::string_view line) { text_ += std::string(line) + "\n"; }
  void because(std::string_view why) { text_ += "# " + std::string(why) + "\n"; }
  void option(std::string_view name, std::string_view value);
  void option_if(std::string_view name, std::string_view value);
  void option_if(std::string_view name, int value);
  /// An option as people type it: "--constraint=v100", "-C v100", "--exclusive".
  void typed_option(std::string_view option);
  Result<std::string> finish() &&;

 private:
  std::string text_;
  Status problem_;
};

/// sbatch reads a line of a script into a buffer of 8 KiB (BUFSIZ).
constexpr std::size_t kLongestValue = 4096;

bool has_control_character(std::string_view text);

/// "--constraint=v100", "--constraint v100" and "-C v100" as option and value.
std::pair<std::string_view, std::string_view> split_option(std::string_view option);

/// A path as the pattern of a log: Slurm replaces %j and the like in it. Invalid with a backslash, which
/// would switch that off and vanish itself.
Result<std::string> log_pattern(const Path& log);

/// Adds "exec" and the words, as bash reads them back. Invalid with a zero byte.
Status add_exec(Lines& lines, const std::vector<std::string>& words);

}  // namespace stoker::slurm
