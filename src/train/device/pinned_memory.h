// Page-locked host memory, from which a GPU copies without the CPU. Thread-safe.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "stoker/loader.h"

namespace stoker::train {

/// For the batches of a loader whose consumer copies them to `device`. Null for CPUs: the heap.
std::shared_ptr<loader::BatchAllocator> pinned_batches(at::Device device);

/// An uninitialised contiguous tensor on the host, page-locked unless `device` is a CPU. Throws libtorch's
/// exceptions.
at::Tensor pinned_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Device device);

}  // namespace stoker::train
