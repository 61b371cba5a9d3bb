// The CudaPart of a torch for CUDA. Compiled with CUDA's headers. Used by device/cuda_part.cc, which declares
// it itself.
#pragma once

#include "train/device/cuda_part.h"

namespace stoker::train {

const CudaPart& torch_cuda();

}  // namespace stoker::train
