// The table in `array.over`: one task per row, with its own values. Read by load and by the submission of an
// array. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/status.h"

namespace stoker::job {

/// One row.
struct ArrayTask {
  std::vector<std::pair<std::string, std::string>> values;  ///< as in the table
  std::vector<std::string> settings;                        ///< "key.path=value", for LoadOptions::task
};

/// The table.
struct ArrayTasks {
  std::string name;              ///< name in messages: "configs.csv"
  std::vector<ArrayTask> tasks;  ///< at least one; messages count from 1
};

constexpr std::size_t kMaxTasks = 100'000;

/// Reads `file` by its suffix: .csv with a header line, .json with a list of objects, .yaml or .yml with a
/// list of maps. A name that is a key of the job file sets that key, any other name sets a parameter; an
/// empty cell or null keeps the job file's value. Invalid gives line and column of the error; keys that all
/// tasks of an array share (resources, slurm, ...) are errors.
Result<ArrayTasks> read_tasks(const Path& file);

/// Same, from memory. `suffix`: ".csv", ".json", ".yaml".
Result<ArrayTasks> parse_tasks(std::string_view name, std::string_view suffix, std::string_view text);

}  // namespace stoker::job
