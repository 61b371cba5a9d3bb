// Every key of a job file. The reader, validation, help, docs/job-file.md and the effective file are derived
// from this list. Constants.
#pragma once

#include "config/schema.h"

namespace stoker::job {

/// The job file's keys.
const config::Schema& schema();

}  // namespace stoker::job
