#include "train/device/cuda_part.h"

namespace stoker::train {

#ifdef STOKER_CUDA
const CudaPart& torch_cuda();  // train/cuda/torch_cuda.h, which includes this folder
#endif

const CudaPart* cuda_part() {
#ifdef STOKER_CUDA
  return &torch_cuda();
#else
  return nullptr;
#endif
}

}  // namespace stoker::train
