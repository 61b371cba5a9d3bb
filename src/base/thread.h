// Threads, locks and the annotations with which clang checks them (-Wthread-safety). libc++ 19 has no jthread
// outside an experimental library, hence our own small one.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/time.h"

#if defined(__clang__)
#define STOKER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define STOKER_THREAD_ANNOTATION(x)
#endif
#define CAPABILITY(x) STOKER_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY STOKER_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) STOKER_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES_LOCK(...) STOKER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRES(...) STOKER_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASES(...) STOKER_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EXCLUDES_LOCK(...) STOKER_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace stoker {

/// A mutex the compiler knows. Lock it with MutexLock.
class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRES() { mutex_.lock(); }
  void unlock() RELEASES() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds a Mutex while it lives.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRES(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASES() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable over Mutex; every wait has a deadline.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }
  /// Waits for a notification or the deadline, releasing `mutex` meanwhile; may wake for nothing: test in a
  /// loop. False once the deadline has passed.
  bool wait(Mutex& mutex, Deadline deadline) REQUIRES_LOCK(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    // Bounded slices: steady_clock's end of time overflows inside some wait_until implementations.
    condition_.wait_for(lock, std::min<Duration>(deadline.left(), std::chrono::hours(1)));
    lock.release();
    return !deadline.passed();
  }

 private:
  std::condition_variable condition_;
};

/// Asked by a Thread's body whether it should end.
class StopToken {
 public:
  bool stop_requested() const { return flag_ && flag_->load(std::memory_order_acquire); }

 private:
  friend class Thread;
  explicit StopToken(std::shared_ptr<std::atomic<bool>> flag) : flag_(std::move(flag)) {}
  // Shared between the Thread and its body.
  std::shared_ptr<std::atomic<bool>> flag_;
};

/// A thread that is asked to stop and joined when destroyed. The body takes a StopToken and returns soon
/// after it is set; whoever owns a condition the body waits on notifies it after request_stop().
class Thread {
 public:
  Thread() = default;
  template <typename Body>
  explicit Thread(Body body)
      : stop_(std::make_shared<std::atomic<bool>>(false)),
        thread_([body = std::move(body), token = StopToken(stop_)]() mutable { body(token); }) {}
  Thread(Thread&&) = default;
  Thread& operator=(Thread&& other) {
    join();
    stop_ = std::move(other.stop_);
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~Thread() { join(); }

  void request_stop() {
    if (stop_) stop_->store(true, std::memory_order_release);
  }
  /// Asks to stop, and waits for the body's end.
  void join() {
    request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::shared_ptr<std::atomic<bool>> stop_;
  std::thread thread_;
};

}  // namespace stoker
