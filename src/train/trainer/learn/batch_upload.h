// Copies the loader's batches to the model's device. Used by training and validation. One object belongs to
// one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include <ATen/core/Tensor.h>

#include "stoker/loader.h"
#include "stoker/status.h"
#include "train/device/stream.h"
#include "train/trainer/learn/batch_tensors.h"

namespace stoker::train {

/// A batch whose tensors are on the model's device.
struct DeviceBatch {
  BatchTensors tensors;
  std::int64_t samples = 0;
  std::shared_ptr<loader::Batch> memory;  ///< of tensors on the host; null on a GPU
};

class BatchUploader {
 public:
  BatchUploader(at::Device device, const BatchForm& form);
  /// Waits for the copies.
  ~BatchUploader();
  BatchUploader(const BatchUploader&) = delete;
  BatchUploader& operator=(const BatchUploader&) = delete;

  /// On a CPU: views of the batch. On a GPU: copies on a separate stream, after which the batch is
  /// released; this thread does not wait, later work of its current stream does. The copies are overwritten
  /// by the second next call: all work that reads them must have been launched in this stream by the next
  /// one. Errors as tensors_of(). Throws libtorch's exceptions.
  Result<DeviceBatch> upload(loader::Batch batch);

 private:
  struct Copy {
    loader::Batch batch;
    BatchTensors host;
    StreamPoint done;
  };
  /// Memory on the device for batches of one size, used in turns.
  struct Memory {
    BatchTensors tensors;
    StreamPoint launched;  ///< all work that reads it
  };
  Memory& next_memory(const BatchTensors& host);
  void release_done();

  const at::Device device_;
  const BatchForm form_;
  const c10::Stream stream_;
  std::deque<Copy> copies_;
  std::deque<Memory> memory_;  ///< the last one was used last
};

}  // namespace stoker::train
