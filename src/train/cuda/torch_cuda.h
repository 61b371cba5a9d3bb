// The CudaPart of a torch for CUDA. Compiled with CUDA's headers; device/cuda_part.cc alone includes it.
#pragma once

#include "train/device/cuda_part.h"

namespace stoker::train {

const CudaPart& torch_cuda();

}  // namespace stoker::train
