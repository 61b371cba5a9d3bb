#include "track/push/push.h"

#include <algorithm>
#include <chrono>

#include "track/push/pusher.h"

namespace stoker::track {

using namespace std::chrono_literals;

void PushControl::finish_by(Deadline deadline) {
  const std::int64_t wanted = deadline.time().time_since_epoch().count();
  std::int64_t known = finish_ns_.load();
  while (wanted < known && !finish_ns_.compare_exchange_weak(known, wanted)) {
  }
}

bool PushControl::must_end() const {
  return RealClock().mono().time_since_epoch().count() >= finish_ns_.load();
}

void PushControl::wait(Duration duration) const {
  constexpr Duration kSlice = 100ms;
  const bool was_finishing = is_finishing();
  const Deadline deadline = Deadline::after(duration);
  while (!deadline.passed() && !must_end() && is_finishing() == was_finishing)
    RealClock().sleep(std::min(kSlice, deadline.left()));
}

Push::Push(PushOptions options)
    : options_(std::move(options)), results_(options_.trackers.size()), running_(options_.trackers.size()) {
  for (std::size_t i = 0; i < options_.trackers.size(); ++i) {
    threads_.emplace_back([this, i](const StopToken&) {
      const NoteSink note = [this](const std::string& line) {
        const MutexLock lock(note_mutex_);
        options_.note(line);
      };
      results_[i] = Pusher(options_, control_, note).run(options_.trackers[i]);
      --running_;
    });
  }
}

Push::~Push() { control_.stop(); }

bool Push::is_done() const { return running_ == 0; }

std::vector<PushResult> Push::finish() {
  for (Thread& thread : threads_) thread.join();
  return std::move(results_);
}

}  // namespace stoker::track
