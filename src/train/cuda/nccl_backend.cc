#include "train/cuda/nccl_backend.h"

#include <cstdint>

#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace stoker::train {

// Of torch's build, not of the library that is loaded: ncclConfig_t, which torch's options contain, grows
// with minor versions.
Status check_nccl_version() {
  const std::uint64_t version = torch::cuda::nccl::version();
  const auto major = static_cast<int>(version >> 32);
  const auto minor = static_cast<int>((version >> 16) & 0xffff);
  if (major == NCCL_MAJOR && minor == NCCL_MINOR) return {};
  return unavailable("this torch is built with NCCL {}.{}, stoker-train with {}.{}", major, minor, NCCL_MAJOR,
                     NCCL_MINOR)
      .cure("stoker build-trainer, or train.backend: gloo");
}

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const NcclOptions& options) {
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank, options.world_size, nccl);
}

}  // namespace stoker::train
