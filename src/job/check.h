// What must hold between the settings of a job, beyond the range of each. Used by load.cc; what a name and a
// port are, wherever people choose them.
#pragma once

#include "config/layers.h"
#include "job/job.h"

namespace stoker::job {

/// Whether `c` may stand in a run's name.
bool is_name_character(char c);

/// Whether ranks can meet there: a number from 1 to 65535.
bool is_port(std::string_view text);

/// False, and a mistake, where both `run` and `train` are written: what either lacks is then worth no word.
bool runs_one_thing(const config::Effective& effective, config::Mistakes& mistakes);

/// Fills in defaults that depend on other settings and tells every contradiction. `file` is where a mistake
/// of the whole file is placed. What needs other values is only judged when `mistakes` is empty so far.
/// REQUIRES: runs_one_thing.
void complete_and_check(const config::Effective& effective, const config::Origin& file, Job& job,
                        config::Mistakes& mistakes);

/// The same for `train`. REQUIRES: job.train.
void complete_and_check_train(const config::Effective& effective, Job& job, config::Mistakes& mistakes);

}  // namespace stoker::job
