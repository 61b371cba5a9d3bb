#include "record/background_sync.h"

#include <utility>

namespace stoker::record {

BackgroundSync::BackgroundSync(std::vector<Path> files)
    : files_(std::move(files)), thread_([this](const StopToken& stop) { run(stop); }) {}

BackgroundSync::~BackgroundSync() {
  thread_.request_stop();
  {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  thread_.join();
}

void BackgroundSync::request() {
  const MutexLock lock(mutex_);
  requested_ += 1;
  changed_.notify_all();
}

Status BackgroundSync::wait(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (done_ < requested_) {
    if (deadline.passed()) return timeout("{}: not synced yet", files_.front());
    changed_.wait(mutex_, deadline);
  }
  return problem_;
}

void BackgroundSync::run(const StopToken& stop) {
  for (;;) {
    std::uint64_t requested = 0;
    {
      const MutexLock lock(mutex_);
      while (done_ == requested_ && !stop.stop_requested()) changed_.wait(mutex_, Deadline::never());
      if (stop.stop_requested()) return;
      requested = requested_;
    }
    Status synced = sync_files();
    const MutexLock lock(mutex_);
    done_ = requested;
    if (problem_.ok()) problem_ = std::move(synced);
    changed_.notify_all();
  }
}

Status BackgroundSync::sync_files() const {
  Status problem;
  for (const Path& file : files_) {
    auto opened = File::open_regular(file);
    const Status synced = opened.ok() ? opened->sync() : opened.status();
    if (problem.ok()) problem = synced;
  }
  return problem;
}

}  // namespace stoker::record
