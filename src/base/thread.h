// Threads, locks and annotations for clang's -Wthread-safety. libc++ 19 has jthread only as an experiment, so
// this header has a small one.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "stoker/time.h"

#if defined(__clang__)
#define STOKER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define STOKER_THREAD_ANNOTATION(x)
#endif
#define STOKER_CAPABILITY(x) STOKER_THREAD_ANNOTATION(capability(x))
#define STOKER_SCOPED_CAPABILITY STOKER_THREAD_ANNOTATION(scoped_lockable)
#define STOKER_GUARDED_BY(x) STOKER_THREAD_ANNOTATION(guarded_by(x))
#define STOKER_REQUIRES_LOCK(...) STOKER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define STOKER_ACQUIRES(...) STOKER_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define STOKER_RELEASES(...) STOKER_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define STOKER_EXCLUDES_LOCK(...) STOKER_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace stoker {

/// A mutex with thread-safety annotations. Lock it with MutexLock.
class STOKER_CAPABILITY("mutex") Mutex {
 public:
  void lock() STOKER_ACQUIRES() { mutex_.lock(); }
  void unlock() STOKER_RELEASES() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds a Mutex for its lifetime.
class STOKER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) STOKER_ACQUIRES(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() STOKER_RELEASES() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Every wait has a deadline.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }
  /// Waits for a notification or the deadline and releases `mutex` meanwhile. May wake spuriously: call it in
  /// a loop. False after the deadline.
  bool wait(Mutex& mutex, Deadline deadline) STOKER_REQUIRES_LOCK(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    // Bounded slices: the maximum of steady_clock overflows in some implementations of wait_until.
    condition_.wait_for(lock, std::min<Duration>(deadline.left(), std::chrono::hours(1)));
    lock.release();
    return !deadline.passed();
  }

 private:
  std::condition_variable condition_;
};

/// Stop request of a Thread, for its body.
class StopToken {
 public:
  bool stop_requested() const { return flag_ && flag_->load(std::memory_order_acquire); }

 private:
  friend class Thread;
  explicit StopToken(std::shared_ptr<std::atomic<bool>> flag) : flag_(std::move(flag)) {}
  // Shared by the Thread and its body.
  std::shared_ptr<std::atomic<bool>> flag_;
};

/// A thread that is stopped and joined by its destructor. The body takes a StopToken and returns soon after a
/// stop request. The owner of a condition that the body waits on notifies it after request_stop().
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
  /// Requests a stop and waits for the body to return.
  void join() {
    request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::shared_ptr<std::atomic<bool>> stop_;
  std::thread thread_;
};

}  // namespace stoker
