// Every key a job file may have. The reader, validation, help, docs/job-file.md and the effective file derive
// from this list. Constants.
#pragma once

#include "config/schema.h"

namespace stoker::job {

/// The job file's keys.
const config::Schema& schema();

/// The keys as the table of docs/job-file.md.
std::string settings_markdown();
/// The keys for a terminal, only `prefix` and below it; empty if there is no such key.
std::string settings_text(std::string_view prefix);

}  // namespace stoker::job
