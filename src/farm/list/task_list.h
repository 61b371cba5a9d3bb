// The tasks of a farm from a file: one command a line, a table with a command template, or a YAML list. Used
// by all of this room. Thread-compatible; a loaded list is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "farm/list/command_line.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::farm {

/// The position of a task in its list, from 0.
using TaskIndex = std::uint32_t;

/// What a task needs while it runs.
struct TaskNeeds {
  std::uint32_t cores = 1;
  std::uint32_t gpus = 0;
  std::optional<ByteCount> memory;
  std::optional<Duration> time;  ///< a task that runs longer is stopped
};

/// Settings of a task that only a YAML file has.
struct TaskExtras {
  std::string name;
  std::string command;
  TaskNeeds needs;
  std::vector<TaskIndex> after;  ///< tasks that must be done first
  std::vector<Path> makes;       ///< files that it writes
  std::vector<Path> inputs;      ///< files that it reads
};

/// Where in the file a task is.
struct TaskSpan {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

class TaskList {
 public:
  /// Reads the file. With a `command`, each row of a table (.csv, .tsv with a header) or each line is a task;
  /// without, each line is a command, or the file is a YAML list (.yaml, .yml, .json). `defaults` are the
  /// needs of a task that does not set them.
  static Result<TaskList> load(const Path& file, const std::vector<std::string>& command,
                               const TaskNeeds& defaults);
  /// As load(); `name` is in messages and decides the format.
  static Result<TaskList> parse(const std::string& name, std::string text,
                                const std::vector<std::string>& command, const TaskNeeds& defaults);

  std::size_t size() const { return extras_.empty() ? spans_.size() : extras_.size(); }
  /// The command line, for a shell.
  std::string command(TaskIndex task) const;
  /// Its name in a YAML file, its case number, or its number in the list from 1.
  std::string name(TaskIndex task) const;
  /// The task of that name or number.
  std::optional<TaskIndex> find(std::string_view name) const;
  const TaskNeeds& needs(TaskIndex task) const;
  /// Null unless the file is a YAML list.
  const TaskExtras* extras(TaskIndex task) const { return extras_.empty() ? nullptr : &extras_[task]; }
  /// Identifies a task across changes of the file: a hash of its name, its command, and how many equal ones
  /// come before.
  std::uint64_t key(TaskIndex task) const { return keys_[task]; }
  /// Identifies the list.
  std::uint64_t digest() const { return digest_; }

 private:
  Status read_lines(const std::string& name);
  Status read_rows(const std::string& name);
  Status check_placeholders(const std::string& name) const;
  void make_keys();
  std::string_view line(TaskIndex task) const;
  std::optional<std::string> value_of(TaskIndex task, std::string_view placeholder) const;

  std::string text_;
  std::vector<TaskSpan> spans_;
  std::vector<TaskExtras> extras_;
  std::vector<std::uint64_t> keys_;
  std::uint64_t digest_ = 0;
  TaskNeeds defaults_;
  std::optional<CommandPattern> pattern_;
  std::vector<std::string> columns_;  // of a table
  char separator_ = 0;                // of a table; 0 for lines
  bool has_case_numbers_ = false;
};

}  // namespace stoker::farm
