// Values of options that sbatch refuses by their form alone. Parts of the rule option-value; internal to this
// folder.
#pragma once

#include <string_view>

#include "explain/script/rule.h"

namespace stoker::explain {

/// Left to be filled in, or replaced by a tool before it is submitted: other rules' business.
bool is_template(std::string_view value);

/// The same of a time and of an amount of memory, in which other letters stand, too.
bool is_time_form(std::string_view value);
bool is_memory_form(std::string_view value);

/// Options without the value that they need: "--nodes=", "--time" at a line's end.
void find_no_value(const Script& script, Report& report);

/// Options that take one of a few words, or none: "--signal", "--exclusive", "--nodes", "--requeue".
void find_bad_word(const Script& script, Report& report);

/// --gres and the like: "gpu:1:v100", "gpus:1", "v100:1".
void find_bad_gres(const Script& script, Report& report);

}  // namespace stoker::explain
