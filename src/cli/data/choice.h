// Options of commands on datasets that take one of a few words. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::cli {

/// The position of `word` among `choices`. Invalid "<command>: <option>: unknown value 'scna'; did you mean
/// 'scan'?", or
/// "... is needed (a, b)" for an empty word.
Result<std::size_t> choice(std::string_view command, std::string_view option, std::string_view word,
                           std::span<const std::string_view> choices);

/// Invalid "<command>: --for: is empty", or of a name, where a word of the command line is: most often a
/// variable of a script that was not set.
Status no_empty_words(std::string_view command, std::span<const std::string> words);

}  // namespace stoker::cli
