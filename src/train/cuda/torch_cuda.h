// The CudaPart of a torch for CUDA. Compiled with CUDA's headers. Used by device/cuda_part.cc, which declares
// or looks up these functions itself.
#pragma once

#include "train/device/cuda_part.h"

namespace stoker::train {

const CudaPart& torch_cuda();

}  // namespace stoker::train

/// In stoker-train-cuda.so.
extern "C" __attribute__((visibility("default"))) const stoker::train::CudaPart* stoker_train_cuda_part();
