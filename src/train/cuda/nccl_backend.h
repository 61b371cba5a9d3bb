// c10d's NCCL backend. A separate source, because its header takes ten seconds to compile.
#pragma once

#include "train/device/cuda_part.h"

namespace stoker::train {

/// As CudaPart::check_nccl().
Status check_nccl_version();

/// As CudaPart::make_nccl_backend().
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const NcclOptions& options);

}  // namespace stoker::train
