// Every key a job file may have. The reader, validation, help, docs/job-file.md and the effective file derive
// from this list. Constants.
#pragma once

#include <span>

#include "config/schema.h"

namespace stoker::job {

/// The job file's keys.
const config::Schema& schema();

/// Parts of it, in sources of their own. Below `train`: what is trained, on which data and for how long
/// (train_settings.cc);
std::span<const config::Setting> train_task_settings();
/// how it learns: optimizer, schedule, regularization (learning_settings.cc);
std::span<const config::Setting> train_learning_settings();
/// in which numbers it computes, on which form of a sample, and how ranks exchange (train_settings.cc).
std::span<const config::Setting> train_computing_settings();
/// How a submitted run becomes several jobs of the queue: chain, restart, array, after (queue_settings.cc).
std::span<const config::Setting> queue_settings();

}  // namespace stoker::job
