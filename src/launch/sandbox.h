// A folder with a job file and its runs, and a fake scheduler. For tests of this room; belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "launch/fake_scheduler.h"
#include "launch/start/run.h"
#include "record/run_folder.h"

namespace stoker::launch {

class LaunchSandbox {
 public:
  /// A request to submit a job file with a name, a command and `more`. CHECK-fails for an invalid job file.
  Request request(const std::string& more = "") const {
    STOKER_CHECK(write_file(box_ / "job.yaml", "name: digits\nrun: sleep 9\n" + more).ok());
    auto job = job::load(box_ / "job.yaml", {.current_directory = box_.path()});
    STOKER_CHECK(job.ok());
    Request request{.job = std::move(*job)};
    request.stoker = "/opt/stoker";
    return request;
  }
  std::vector<record::RunFolder> runs() const {
    std::vector<record::RunFolder> folders;
    const auto listed = record::list_runs(box_ / "runs");
    STOKER_CHECK(listed.ok());
    for (const record::ListedRun& run : *listed) folders.push_back(*run.run);
    return folders;
  }

  FakeScheduler scheduler;

 private:
  TempDirectory box_;
};

inline Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

}  // namespace stoker::launch
