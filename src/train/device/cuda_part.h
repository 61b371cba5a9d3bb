// What only code that is compiled with CUDA's headers can do: graphs, NCCL, the driver's own words. Streams,
// events and memory need no CUDA header (stream.h, pinned_memory.h). Implemented by the folder
// src/train/cuda: linked in a build against a torch for CUDA, else stoker-train-cuda.so beside the program,
// which is loaded when the torch at run time is one for CUDA. Used by the trainer and by ProcessGroup.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "stoker/status.h"
#include "stoker/text.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace stoker::train {

/// Kernels that were recorded once and can be launched together. Belongs to one thread.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Launches all kernels in the current stream, and does not wait for them. They use the memory that they
  /// used when they were captured. Throws libtorch's exceptions.
  virtual void replay() = 0;
};

struct NcclOptions {
  int rank = 0;
  int world_size = 1;
  std::chrono::milliseconds timeout{};  ///< of a collective
};

/// Thread-safe: no state.
class CudaPart {
 public:
  virtual ~CudaPart() = default;

  /// Ok if this process can use a GPU. Unavailable with the driver's reason: "no CUDA-capable device is
  /// detected".
  virtual Status check() const = 0;
  /// "NVIDIA H200, 140 GiB".
  virtual std::string description(at::Device gpu) const = 0;
  /// Identifies a GPU on its host: its UUID as text. The same for two indexes or two processes that share it.
  virtual std::string identity(at::Device gpu) const = 0;
  /// Bytes of free memory on the GPU, and the most that this process has reserved there.
  virtual std::uint64_t free_memory(at::Device gpu) const = 0;
  virtual std::uint64_t peak_memory(at::Device gpu) const = 0;
  /// Ok if this torch was built with the version of NCCL whose headers this part was compiled with: its
  /// objects have that version's layout. Unavailable names both.
  virtual Status check_nccl() const = 0;

  /// Captures what `body` launches in the current stream, which must not be the default stream. Nothing runs
  /// yet. Throws what `body` throws, and libtorch's exceptions for operations that cannot be captured.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& body) const = 0;
  /// Whether the current stream is being captured.
  virtual bool is_capturing() const = 0;

  /// Connects to all peers through `store`, in the first collective. The current device is used.
  virtual c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                              const NcclOptions& options) const = 0;
};

/// Null where no_cuda_part_reason() is an error.
const CudaPart* cuda_part();
/// "stoker-train-cuda.so: cannot open shared object file". Ok if cuda_part() is not null.
Status no_cuda_part_reason();

/// Loads the part from a shared library that stays loaded. Unavailable with the loader's reason.
Result<const CudaPart*> load_cuda_part(const Path& library);

}  // namespace stoker::train
