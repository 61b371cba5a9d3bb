// Constraints between the settings of a job, beyond the range of each. Used by read_job.cc. Also defines
// valid names and ports for other inputs.
#pragma once

#include "config/layers.h"
#include "job/job.h"

namespace stoker::job {

/// Whether `c` is allowed in a run's name.
bool is_name_character(char c);

/// Whether `text` is a port number, 1 to 65535.
bool is_port(std::string_view text);

/// Adds an error and returns false if both or neither of `run` and `train` are set; other checks would then
/// be meaningless.
bool check_run_or_train(const config::EffectiveConfig& effective, config::ErrorList& errors);

/// Fills in defaults that depend on other settings and reports every contradiction. `file` is the position of
/// errors that concern the whole file. Skips checks that depend on other values if `errors` is not empty.
/// REQUIRES: check_run_or_train.
void complete_and_check(const config::EffectiveConfig& effective, const config::Origin& file, Job& job,
                        config::ErrorList& errors);

/// Same, for `train`. REQUIRES: job.train.
void complete_and_check_train(const config::EffectiveConfig& effective, Job& job, config::ErrorList& errors);

}  // namespace stoker::job
