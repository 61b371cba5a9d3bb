// Values that sbatch rejects because of their form. Parts of the rule option-value; internal to this folder.
#pragma once

#include <string_view>

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// A placeholder or a template value, which other rules report.
bool is_template(std::string_view value);

/// The same for a time and for an amount of memory, which allow other letters.
bool is_time_form(std::string_view value);
bool is_memory_form(std::string_view value);

/// Options without their value: "--nodes=", "--time" at the end of a line.
void find_no_value(const Script& script, FindingReport& report);

/// Options with a fixed set of values, or without one: "--signal", "--exclusive", "--nodes", "--requeue".
void find_bad_word(const Script& script, FindingReport& report);

/// --gres: "gpu:1:v100", "gpus:1", "v100:1".
void find_bad_gres(const Script& script, FindingReport& report);

}  // namespace stoker::script_lint
