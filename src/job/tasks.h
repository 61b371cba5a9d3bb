// The table behind `array.over`: one task a row, with the values that make it differ from the others. Read by
// load and by who submits an array. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace stoker::job {

/// One row.
struct ArrayTask {
  std::vector<std::pair<std::string, std::string>> values;  ///< as the table names them
  std::vector<std::string> settings;                        ///< "key.path=value", for LoadOptions::task
};

/// The table.
struct ArrayTasks {
  std::string name;              ///< how messages name it: "configs.csv"
  std::vector<ArrayTask> tasks;  ///< at least one; counted from 1 for people
};

constexpr std::size_t kMostTasks = 100'000;

/// Reads `file` by its suffix: .csv with a header line, .json with a list of objects, .yaml or .yml with a
/// list of maps. A name that is a key of the job file sets that key, any other one the parameter of that
/// name; an empty cell or null leaves what the job file says. Invalid names line and column of what is wrong,
/// and keys that all tasks of an array share (resources, slurm, ...).
Result<ArrayTasks> read_tasks(const Path& file);

/// The same from memory. `suffix`: ".csv", ".json", ".yaml".
Result<ArrayTasks> parse_tasks(std::string_view name, std::string_view suffix, std::string_view text);

}  // namespace stoker::job
