// Names of sbatch's options: letters, long names, prefixes and suggestions for typos. Used by parsers and
// checks of user options. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::slurm {

/// The long name of an option without its value: "--output" for "-o" and "--outp". Returns unknown options
/// and ambiguous prefixes unchanged. REQUIRES: it begins with '-' and has two characters.
std::string long_option(std::string_view word);

/// Result of a lookup of a long option.
enum class OptionName {
  known,      ///< an option or its unique prefix
  ambiguous,  ///< an ambiguous prefix: sbatch rejects it
  unknown,    ///< sbatch rejects it, unless a site plug-in defines it
};
OptionName look_up_option(std::string_view name);

/// Whether the value of the option may be the next word, as in "--time 2:00:00". False for "--exclusive",
/// whose value needs =, and for "--hold", which has no value. True for an unknown name.
bool takes_next_word(std::string_view name);

/// Whether sbatch has this short option.
bool is_option_letter(char letter);

/// The long option that was probably meant by `word` ("--ntaks-per-node", "--walltime"), or "".
std::string_view suggest_option(std::string_view word);

/// Invalid if `option` is not an sbatch option, or makes sbatch do more than submit ("--wrap", "--wait",
/// "--test-only", ...).
Status check_user_option(std::string_view option);

}  // namespace stoker::slurm
