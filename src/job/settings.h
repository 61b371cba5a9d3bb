// Every key a job file may have. The reader, validation, help, docs/job-file.md and the effective file derive
// from this list. Constants.
#pragma once

#include <span>

#include "config/schema.h"

namespace stoker::job {

/// The job file's keys.
const config::Schema& schema();

/// Those below `train`, in a source of their own.
std::span<const config::Setting> train_settings();

}  // namespace stoker::job
