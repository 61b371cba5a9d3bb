// Copies tensors of a GPU to the host for a save, while its steps continue: first on the GPU, then to
// page-locked memory on a separate stream. The save itself runs on a thread. Used by CheckpointManager. One
// object belongs to one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/thread.h"
#include "stoker/model_state.h"
#include "stoker/status.h"
#include "train/device/stream.h"

namespace stoker::train {

class DeviceSave {
 public:
  explicit DeviceSave(at::Device device);
  /// Waits for the running save.
  ~DeviceSave() { thread_.join(); }

  /// Host memory for these tensors under the same names, contiguous: always the same for a name. Throws
  /// libtorch's exceptions.
  NamedTensors host_memory(const NamedTensors& tensors);

  /// Copies the values that `from` has at this point of the current stream to `to`, from host_memory(). Then
  /// calls `save` on a thread. Returns before that, unless the GPU lacks memory for the first copy. REQUIRES:
  /// wait() has returned. Throws libtorch's exceptions.
  void begin(const NamedTensors& from, const NamedTensors& to, std::function<Status()> save);
  /// Whether a save is running.
  bool is_running() const;
  /// Waits for it. Its error, once.
  Status wait();

 private:
  struct Outcome {
    mutable Mutex mutex;
    bool has_ended STOKER_GUARDED_BY(mutex) = true;
    Status status STOKER_GUARDED_BY(mutex);
  };
  std::vector<at::Tensor> snapshot(const NamedTensors& from) const;
  void copy_to_host(const StreamPoint& copied, const std::vector<at::Tensor>& copies,
                    const NamedTensors& to) const;

  const at::Device device_;
  const c10::Stream stream_;
  std::map<std::string, at::Tensor, std::less<>> memory_;
  Outcome outcome_;
  Thread thread_;  ///< last: it uses the members above
};

/// Host tensors with the values of `tensors`, which are shared if they are on the host and contiguous
/// already.
NamedTensors host_copies(const NamedTensors& tensors);
/// Copies values back to the tensors that host_copies() has not shared.
void copy_values(const NamedTensors& from, const NamedTensors& to);

}  // namespace stoker::train
