#include "train/device/device_save.h"

#include <memory>
#include <utility>

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "stoker/exceptions.h"
#include "train/device/pinned_memory.h"

namespace stoker::train {

DeviceSave::DeviceSave(at::Device device) : device_(device), stream_(new_stream(device)) {}

NamedTensors DeviceSave::host_memory(const NamedTensors& tensors) {
  NamedTensors host;
  for (const NamedTensor& item : tensors) {
    at::Tensor& memory = memory_[item.name];
    if (!memory.defined()) memory = pinned_tensor(item.tensor.sizes(), item.tensor.scalar_type(), device_);
    host.push_back({item.name, memory});
  }
  return host;
}

// Empty if the GPU lacks memory for it.
std::vector<at::Tensor> DeviceSave::snapshot(const NamedTensors& from) const {
  std::vector<at::Tensor> values, copies;
  try {
    for (const NamedTensor& item : from) {
      values.push_back(item.tensor.detach());
      copies.push_back(at::empty_like(values.back()));  // the same strides: a few kernels for all
    }
  } catch (const c10::OutOfMemoryError&) {
    return {};
  }
  at::_foreach_copy_(copies, values);
  return copies;
}

void DeviceSave::begin(const NamedTensors& from, const NamedTensors& to, std::function<Status()> save) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> copies = snapshot(from);
  const bool has_copies = !copies.empty();
  // The next step changes the tensors themselves.
  if (!has_copies) copy_values(from, to);
  auto copied = std::make_shared<StreamPoint>(device_);
  copied->record();
  {
    const MutexLock lock(outcome_.mutex);
    outcome_.has_ended = false;
  }
  thread_ = Thread(
      [this, copies = std::move(copies), to, copied, save = std::move(save)](const StopToken&) mutable {
        Status status = catch_exceptions(Code::internal, "checkpoint", [&] {
          if (!copies.empty()) copy_to_host(*copied, copies, to);
        });
        copies.clear();
        if (status.ok()) status = save();
        const MutexLock lock(outcome_.mutex);
        outcome_.status = std::move(status);
        outcome_.has_ended = true;
      });
}

// On the thread of a save: launching hundreds of copies takes tens of milliseconds.
void DeviceSave::copy_to_host(const StreamPoint& copied, const std::vector<at::Tensor>& copies,
                              const NamedTensors& to) const {
  const at::NoGradGuard no_grad;
  const StreamScope copying(stream_);
  copied.block_current_stream();
  for (std::size_t i = 0; i < copies.size(); ++i) to[i].tensor.copy_(copies[i], /*non_blocking=*/true);
  StreamPoint done(device_);
  done.record();
  done.wait();
}

bool DeviceSave::is_running() const {
  const MutexLock lock(outcome_.mutex);
  return !outcome_.has_ended;
}

Status DeviceSave::wait() {
  thread_.join();
  const MutexLock lock(outcome_.mutex);
  return std::exchange(outcome_.status, Status());
}

NamedTensors host_copies(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  NamedTensors host;
  for (const NamedTensor& item : tensors) {
    const at::Tensor values = item.tensor.detach();
    const bool is_shared = values.is_cpu() && values.is_contiguous();
    host.push_back({item.name, is_shared ? values : values.to(at::kCPU).clone(at::MemoryFormat::Contiguous)});
  }
  return host;
}

void copy_values(const NamedTensors& from, const NamedTensors& to) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].tensor.data_ptr() != to[i].tensor.data_ptr()) to[i].tensor.copy_(from[i].tensor);
  }
}

}  // namespace stoker::train
