// Writes batch scripts line by line: comments, and options quoted for sbatch. Internal to this folder.
// Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/status.h"

namespace stoker::slurm {

/// finish() fails after the first value that no #SBATCH line can contain.
class ScriptWriter {
 public:
  void text(std::string_view line) { text_ += std::string(line) + "\n"; }
  void add_comment(std::string_view why) { text_ += "# " + std::string(why) + "\n"; }
  void option(std::string_view name, std::string_view value);
  void option_if(std::string_view name, std::string_view value);
  void option_if(std::string_view name, int value);
  /// An option as typed by the user: "--constraint=v100", "-C v100", "--exclusive".
  void raw_option(std::string_view option);
  Result<std::string> finish() &&;

 private:
  std::string text_;
  Status problem_;
};

/// sbatch reads script lines into a buffer of 8 KiB (BUFSIZ).
constexpr std::size_t kLongestValue = 4096;

bool has_control_character(std::string_view text);

/// Splits "--constraint=v100", "--constraint v100" and "-C v100" into option and value.
std::pair<std::string_view, std::string_view> split_option(std::string_view option);

/// A path as a log file pattern, in which Slurm replaces %j and others. Invalid with a backslash, which would
/// disable the replacement and disappear.
Result<std::string> log_pattern(const Path& log);

/// Adds "exec" and the quoted arguments. Invalid with a zero byte.
Status add_exec(ScriptWriter& lines, const std::vector<std::string>& words);

}  // namespace stoker::slurm
