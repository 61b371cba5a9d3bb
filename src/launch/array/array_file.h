// What the tasks of an array are made of, beside the attempt that submitted them: attempts/<n>/array.json.
// Each job of the array finds its tasks in it and needs neither the job file nor the table any more. Format:
// docs/formats/array.md. Thread-safe: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/job.h"
#include "job/tasks.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// The content of array.json.
struct ArrayFile {
  std::string job_file;      ///< its name, for messages
  std::string text;          ///< of the job file
  Path folder;               ///< absolute; where its relative paths start
  job::LoadOptions options;  ///< what was laid over it; `task` is empty
  std::vector<job::ArrayTask> tasks;
  std::vector<std::uint32_t> chosen;  ///< numbers of the tasks that this attempt runs, from 1, ascending
  std::uint32_t bundle = 1;           ///< tasks of one job
  std::uint32_t links = 0;            ///< jobs that each task has at most, as a chain; 0: none is one

  /// Jobs that the array needs, of each link.
  std::uint32_t jobs() const;
  /// The tasks of job `index`, which counts from 1; empty when there is no such job.
  std::vector<std::uint32_t> tasks_of(std::uint32_t index) const;
  /// The job of one task, as `stoker submit` read it, without the table. REQUIRES: 1 <= task <= tasks.size().
  Result<job::Job> job_of(std::uint32_t task) const;
};

Path array_path(const record::Attempt& attempt);
Status write_array_file(const record::Attempt& attempt, const ArrayFile& array);
/// NotFound when the attempt is none of an array, Corrupt when the file is not what was written.
Result<ArrayFile> read_array_file(const record::Attempt& attempt);
/// From memory; `name` is for messages.
Result<ArrayFile> parse_array_file(std::string_view name, std::string_view text);

/// Whether an attempt is one of an array.
bool is_array(const record::Attempt& attempt);

}  // namespace stoker::launch
