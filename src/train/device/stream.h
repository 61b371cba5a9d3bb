// Streams of work on a device, and points in them. On CPUs all of it does nothing: work is done when a call
// returns. Used by the trainer. Needs no CUDA header.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace stoker::train {

/// A separate stream; the default stream on CPUs.
c10::Stream new_stream(at::Device device);

/// Makes a stream the current one of this thread, and its device the current device, while it exists.
class StreamScope {
 public:
  explicit StreamScope(c10::Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  c10::Stream before_;
};

/// A point in a stream: everything launched before it. Belongs to one thread, except wait() and is_reached().
class StreamPoint {
 public:
  enum class Timing { off, on };

  /// Not recorded yet: reached.
  explicit StreamPoint(at::Device device, Timing timing = Timing::off);

  /// Here, in the current stream of this thread.
  void record();
  /// Later work of the current stream of this thread begins after it.
  void block_current_stream() const;
  bool is_reached() const;
  /// Blocks this thread until it is reached.
  void wait() const;
  /// Seconds between two reached points with timing; 0 on CPUs.
  double seconds_since(const StreamPoint& earlier) const;

 private:
  at::Device device_;
  std::optional<c10::Event> event_;  ///< empty on CPUs
  bool is_recorded_ = false;
};

}  // namespace stoker::train
