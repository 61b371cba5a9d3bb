// The outputs of the tasks of a worker: while a task runs in a separate file, then in one file for all.
// Used by worker.cc. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "farm/ledger/farm_state.h"
#include "stoker/status.h"

namespace stoker::farm {

/// The file of a running task.
class OutputSpool {
 public:
  OutputSpool() = default;
  explicit OutputSpool(File file) : file_(std::move(file)) {}
  int fd() const { return file_.fd(); }

 private:
  friend class OutputFile;
  File file_;
};

class OutputFile {
 public:
  /// Opens or creates output/<worker>.out. REQUIRES: no other process writes it.
  static Result<OutputFile> open(const Path& farm, const std::string& worker);
  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = default;
  /// Removes the files of running tasks.
  ~OutputFile();

  /// An empty file for a task that starts: running/<worker>-<n>.out.
  Result<OutputSpool> take_spool();
  /// Makes the file of a task that did not start available again.
  void give_back(OutputSpool spool) { free_.push_back(std::move(spool)); }
  /// Appends what the task wrote, and makes its file available again. NoSpace when the disk is full.
  Result<OutputPlace> keep(OutputSpool spool);

 private:
  OutputFile() = default;

  File file_;
  std::uint64_t size_ = 0;
  Path running_;
  std::string worker_;
  std::vector<OutputSpool> free_;
  std::vector<Path> spools_;
};

}  // namespace stoker::farm
