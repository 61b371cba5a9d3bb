// Whether an earlier error may have led to a later one: what both speak of. Internal to this folder.
// Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker::diagnose {

/// Whether two messages name the same thing: a file, a host, a module, a variable, or the GPU. Words of prose
/// do not count.
bool share_a_subject(std::string_view a, std::string_view b);

/// Whether the message names something: a file, a quoted value, a number.
bool names_a_subject(std::string_view message);

/// Whether the exception is of a kind that usually has its reason in the program: "KeyError: 'val'".
bool is_program_error(std::string_view exception);

}  // namespace stoker::diagnose
