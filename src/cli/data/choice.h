// Parsing of enumerated options of `stoker data`. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::cli {

/// The index of `word` in `choices`. Invalid "<command>: <option>: unknown value 'scna'; did you mean
/// 'scan'?", or
/// "... is needed (a, b)" for an empty word.
Result<std::size_t> parse_choice(std::string_view command, std::string_view option, std::string_view word,
                                 std::span<const std::string_view> choices);

/// Invalid if an argument or option value is empty, most often because of an unset variable in a script.
Status check_no_empty_arguments(std::string_view command, std::span<const std::string> words);

}  // namespace stoker::cli
