// The tasks of an array, stored with the attempt that submitted them: attempts/<n>/array.json. Each job of
// the array reads its tasks from it and needs neither the job file nor the table. Format:
// docs/formats/array.md. Thread-safe: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/tasks.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The content of array.json.
struct TaskArrayFile {
  std::string job_file;      ///< its name, for messages
  std::string text;          ///< the text of the job file
  Path folder;               ///< absolute; where its relative paths start
  job::LoadOptions options;  ///< the settings applied to it; `task` is empty
  std::vector<job::ArrayTask> tasks;
  std::vector<std::uint32_t> chosen;  ///< numbers of the tasks of this attempt, from 1, ascending
  std::uint32_t bundle = 1;           ///< tasks per job
  std::uint32_t links = 0;            ///< most jobs per task, as a chain; 0: no chains

  /// The number of jobs per link.
  std::uint32_t jobs() const;
  /// The tasks of job `index`, which counts from 1; empty when there is no such job.
  std::vector<std::uint32_t> tasks_of(std::uint32_t index) const;
  /// The job of one task, as `stoker submit` read it, without the table. REQUIRES: 1 <= task <= tasks.size().
  Result<job::Job> job_of(std::uint32_t task) const;
};

Path array_path(const record::Attempt& attempt);
Status write_array_file(const record::Attempt& attempt, const TaskArrayFile& array);
/// NotFound when the attempt has no array, Corrupt for an invalid file.
Result<TaskArrayFile> read_array_file(const record::Attempt& attempt);
/// Parses text; `name` is for messages.
Result<TaskArrayFile> parse_array_file(std::string_view name, std::string_view text);

/// Whether an attempt belongs to an array.
bool is_array(const record::Attempt& attempt);

}  // namespace stoker::launch
