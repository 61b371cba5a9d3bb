// The JSON Schema of a job file, for editors and validators. Pure function of the settings' declarations.
#pragma once

#include <string>

namespace stoker::job {

/// A schema of draft 2020-12, indented. It accepts every job file that the reader accepts as far as a file
/// decides alone: required keys may come from --set or the environment, and ranges of sizes and durations are
/// in the descriptions only. YAML 1.2 decides what is a number.
std::string json_schema();

}  // namespace stoker::job
