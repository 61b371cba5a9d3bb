#include "train/device/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "base/process.h"
#include "train/device/cuda_part.h"

namespace stoker::train {

namespace {

constexpr std::string_view kCure = "train.device: cpu";

// hasCUDA() is false without a visible GPU.
bool is_torch_for_cuda() { return at::detail::getCUDAHooks().isBuilt(); }

Status no_gpu_reason() {
  if (!is_torch_for_cuda())
    return unavailable("this torch is built for CPUs only").cure("{}, or a torch built for CUDA", kCure);
  if (cuda_part() == nullptr) return no_cuda_part_reason().cure("{}, or stoker build-trainer", kCure);
  if (const auto visible = environment_value("CUDA_VISIBLE_DEVICES"); visible && trim(*visible).empty())
    return unavailable("CUDA_VISIBLE_DEVICES is empty").cure("{}, or unset CUDA_VISIBLE_DEVICES", kCure);
  Status driver = cuda_part()->check();
  if (driver.ok()) driver = unavailable("the driver lists no GPU");
  return std::move(driver).cure("{}, or nvidia-smi to see what the driver reports", kCure);
}

}  // namespace

VisibleGpus visible_gpus() {
  VisibleGpus gpus;
  const bool is_possible = is_torch_for_cuda() && cuda_part() != nullptr;
  if (is_possible) gpus.count = at::detail::getCUDAHooks().deviceCount();
  if (gpus.count == 0) gpus.problem = no_gpu_reason();
  return gpus;
}

Result<ChosenDevice> choose_device(job::DeviceChoice choice, HostPosition position, const VisibleGpus& gpus) {
  ChosenDevice chosen;
  if (choice == job::DeviceChoice::cpu) return chosen;
  if (gpus.count > 0) {
    const std::int64_t first = std::int64_t{position.local_rank} * position.gpus_per_rank;
    chosen.device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(first % gpus.count));
    return chosen;
  }
  if (choice == job::DeviceChoice::cuda)
    return Status(gpus.problem).with_context("train.device: cuda: no GPU can be used");
  if (is_torch_for_cuda())
    chosen.notice = format("training on the CPU: {} (train.device: auto)", gpus.problem.message());
  return chosen;
}

void move_to(const ModelState& state, at::Device device, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& item : state.all) {
    at::Tensor moved = item.tensor.detach().to(device);
    if (channels_last && moved.dim() == 4) {
      // contiguous() would keep the strides of 1 x 1 kernels, but their gradients have others.
      const at::Tensor same = at::empty_like(moved, moved.options(), at::MemoryFormat::ChannelsLast);
      moved = same.copy_(moved);
    }
    at::Tensor shared = item.tensor;
    shared.set_data(moved);
  }
}

}  // namespace stoker::train
