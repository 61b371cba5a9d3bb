#include "train/trainer/learn/batch_upload.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ops/empty_like.h>

#include "train/device/pinned_memory.h"

namespace stoker::train {

namespace {

// One batch is copied while the one before is read.
constexpr std::size_t kTurns = 2;

}  // namespace

BatchUploader::BatchUploader(at::Device device, const BatchForm& form)
    : device_(device), form_(form), stream_(new_stream(device)) {}

// After an error of the GPU nothing there can be waited for or released.
BatchUploader::~BatchUploader() {
  try {
    for (const Copy& copy : copies_) copy.done.wait();
    StreamPoint launched(device_);
    launched.record();
    launched.wait();
  } catch (const std::exception&) {
    static_cast<void>(new std::pair(std::move(memory_), std::move(copies_)));
  }
}

Result<DeviceBatch> BatchUploader::upload(loader::Batch batch) {
  const std::int64_t samples = batch.count();
  if (device_.is_cpu()) {
    auto memory = std::make_shared<loader::Batch>(std::move(batch));
    STOKER_ASSIGN_OR_RETURN(views, tensors_of(*memory, form_));
    return DeviceBatch{views, samples, std::move(memory)};
  }
  release_done();
  STOKER_ASSIGN_OR_RETURN(host, tensors_of(batch, form_));
  // Labels are on the heap, from which copies would wait for each other.
  const at::Tensor labels = pinned_tensor(host.labels.sizes(), host.labels.scalar_type(), device_);
  labels.copy_(host.labels);
  host.labels = labels;
  Memory& memory = next_memory(host);
  StreamPoint done(device_);
  {
    const StreamScope copying(stream_);
    memory.launched.block_current_stream();
    memory.tensors.input.copy_(host.input, /*non_blocking=*/true);
    memory.tensors.labels.copy_(host.labels, /*non_blocking=*/true);
    done.record();
  }
  done.block_current_stream();
  copies_.push_back({std::move(batch), std::move(host), std::move(done)});
  return DeviceBatch{memory.tensors, samples, nullptr};
}

// What was launched until now includes all that reads the batch before, but not this one.
BatchUploader::Memory& BatchUploader::next_memory(const BatchTensors& host) {
  if (!memory_.empty()) memory_.back().launched.record();
  const auto fits = [&](const Memory& memory) { return memory.tensors.input.sizes() == host.input.sizes(); };
  const auto same_size = static_cast<std::size_t>(std::ranges::count_if(memory_, fits));
  auto found = std::ranges::find_if(memory_, fits);
  if (same_size < kTurns) {
    const at::TensorOptions there = at::TensorOptions().device(device_);
    memory_.push_back({{at::empty_like(host.input, there.dtype(host.input.dtype())),
                        at::empty_like(host.labels, there.dtype(host.labels.dtype()))},
                       StreamPoint(device_)});
    // The allocator gave memory that the current stream may still be reading.
    memory_.back().launched.record();
  } else {
    Memory reused = std::move(*found);
    memory_.erase(found);
    memory_.push_back(std::move(reused));
  }
  return memory_.back();
}

void BatchUploader::release_done() {
  while (!copies_.empty() && copies_.front().done.is_reached()) copies_.pop_front();
}

}  // namespace stoker::train
