// The names of sbatch's options: letters, long names, their beginnings, and what a mistyped one was likely
// meant to be. Used by what reads and checks options that people wrote. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::slurm {

/// The long name of an option as it was typed, without its value: "--output" for "-o" and for "--outp". A
/// word that is no option, or the beginning of several, comes back as it is. REQUIRES: it begins with '-' and
/// has two characters.
std::string long_option(std::string_view word);

/// How sbatch takes a long option's name.
enum class OptionName {
  known,      ///< an option, or the beginning of just one
  ambiguous,  ///< the beginning of several: refused
  unknown,    ///< refused, unless a plug-in of the site brings it
};
OptionName look_up_option(std::string_view name);

/// Whether the option of that long name has its value in the next word, as in "--time 2:00:00"; "--exclusive"
/// has one behind = alone, and "--hold" none. Of an unknown name: yes.
bool takes_next_word(std::string_view name);

/// Whether sbatch takes "-" and this letter.
bool is_option_letter(char letter);

/// sbatch's long option that was likely meant by `word` ("--ntaks-per-node", "--walltime"), or "".
std::string_view likely_option(std::string_view word);

/// Invalid when `option` is no option for sbatch, or one with which sbatch does not just submit ("--wrap",
/// "--wait", "--test-only", ...).
Status check_own_option(std::string_view option);

}  // namespace stoker::slurm
