// The process beside a run that sends its points to the trackers of the job file: `stoker track push
// --follow`. The supervisor on the first node starts it before the ranks and ends it after them. The run
// never waits for it before its end, and then only for a moment. Belongs to the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

class TrackerProcess {
 public:
  /// The points to send.
  struct Part {
    const record::RunFolder& run;
    const record::Attempt& attempt;
    std::uint32_t task = 0;  ///< only this task of an array; 0: the run
  };
  /// Nullopt if the job names no tracker, or if the process cannot be started: `problem` then has the reason.
  static std::optional<TrackerProcess> start(const job::Job& job, const Part& part, const Path& stoker,
                                             std::string* problem);
  TrackerProcess(TrackerProcess&&) = default;
  TrackerProcess& operator=(TrackerProcess&&) = delete;
  /// Ends the process.
  ~TrackerProcess();

  pid_t pid() const { return child_->pid(); }
  /// Gives it a moment for the last points, and ends it. Returns lines for the user about points that are not
  /// delivered. Call it after the last event of the attempt.
  std::vector<std::string> finish();

 private:
  TrackerProcess(Child child, Fd answers, Path log, std::string run)
      : child_(std::make_unique<Child>(std::move(child))),
        answers_(std::move(answers)),
        log_(std::move(log)),
        run_(std::move(run)) {}

  std::unique_ptr<Child> child_;  // null in an object that was moved from
  Fd answers_;
  Path log_;
  std::string run_;
};

}  // namespace stoker::launch
