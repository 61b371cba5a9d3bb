#include "train/device/device.h"

#include <filesystem>

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/device/cuda_part.h"
#include "train/device/device_save.h"

namespace stoker::train {
namespace {

using job::DeviceChoice;

const VisibleGpus kNone{.count = 0, .problem = unavailable("no driver")};

TEST(Device, a_rank_uses_the_gpu_of_its_number_on_the_host) {
  const VisibleGpus four{.count = 4, .problem = {}};
  for (const int rank : {0, 3}) {
    const auto chosen = choose_device(DeviceChoice::automatic, {rank}, four);
    ASSERT_TRUE(chosen.ok());
    EXPECT_EQ(chosen->device, at::Device(at::kCUDA, static_cast<at::DeviceIndex>(rank)));
  }
  EXPECT_EQ(choose_device(DeviceChoice::cuda, {5}, four)->device, at::Device(at::kCUDA, 1));
  EXPECT_TRUE(choose_device(DeviceChoice::cpu, {}, four)->device.is_cpu());
}

TEST(Device, a_rank_with_several_gpus_uses_its_first_one) {
  const auto device = [](HostPosition position, int visible) {
    return choose_device(DeviceChoice::cuda, position, {.count = visible, .problem = {}})->device;
  };
  EXPECT_EQ(device({0, 2}, 8), at::Device(at::kCUDA, 0));
  EXPECT_EQ(device({1, 2}, 8), at::Device(at::kCUDA, 2));
  EXPECT_EQ(device({3, 2}, 8), at::Device(at::kCUDA, 6));
  // Slurm, or MIG, has made only its own visible.
  EXPECT_EQ(device({3, 2}, 2), at::Device(at::kCUDA, 0));
  EXPECT_EQ(device({1 << 30, 64}, 7), at::Device(at::kCUDA, (std::int64_t{1} << 36) % 7));
}

TEST(Device, cuda_without_a_gpu_is_refused_with_the_reason) {
  EXPECT_TRUE(choose_device(DeviceChoice::automatic, {}, kNone)->device.is_cpu());
  EXPECT_EQ(choose_device(DeviceChoice::cuda, {}, kNone).status().to_string(),
            "train.device: cuda: no GPU can be used: no driver");
}

// The real library, which a torch for CPUs lacks the names for, and files that are none.
TEST(CudaPart, a_library_that_cannot_be_used_is_refused_with_the_loaders_reason) {
  const Path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(load_cuda_part(folder / "stoker-train-cuda.so").status().to_string(),
              testing::AnyOf(testing::HasSubstr("undefined symbol"), testing::HasSubstr("No such file")));
  EXPECT_THAT(load_cuda_part("/proc/self/exe").status().to_string(), testing::HasSubstr("/proc/self/exe"));
  EXPECT_THAT(load_cuda_part("libc10.so").status().to_string(), testing::HasSubstr("stoker_train_cuda_part"));
}

TEST(CudaPart, the_reason_for_its_absence_is_known) {
  EXPECT_EQ(cuda_part() == nullptr, !no_cuda_part_reason().ok());
}

NamedTensors state_of(double value) {
  return {{"matrix", at::full({64, 3, 5, 5}, value).contiguous(at::MemoryFormat::ChannelsLast)},
          {"number", at::full({}, value, at::kLong)}};
}

// On a CPU copies are done when they begin: the saved values must still be a copy.
TEST(DeviceSave, saves_the_values_of_its_beginning) {
  DeviceSave save((at::Device(at::kCPU)));
  const NamedTensors state = state_of(1);
  const NamedTensors host = save.host_memory(state);
  EXPECT_TRUE(host[0].tensor.is_contiguous());
  for (const double value : {1.0, 2.0, 3.0}) {
    EXPECT_TRUE(save.wait().ok());
    for (const NamedTensor& item : state) item.tensor.fill_(value);
    std::vector<double> saved;
    save.begin(state, host, [&]() -> Status {
      for (const NamedTensor& item : host) saved.push_back(item.tensor.to(at::kDouble).mean().item<double>());
      return {};
    });
    for (const NamedTensor& item : state) item.tensor.fill_(-1);
    EXPECT_TRUE(save.wait().ok());
    EXPECT_FALSE(save.is_running());
    EXPECT_EQ(saved, std::vector<double>(2, value));
  }
}

TEST(DeviceSave, returns_the_error_of_a_save_once) {
  DeviceSave save((at::Device(at::kCPU)));
  const NamedTensors state = state_of(1);
  save.begin(state, save.host_memory(state), []() -> Status { return unavailable("disk full"); });
  EXPECT_EQ(save.wait().message(), "disk full");
  EXPECT_TRUE(save.wait().ok());
}

TEST(HostCopies, restore_any_layout_and_share_what_needs_no_copy) {
  const NamedTensors state = state_of(1);
  const NamedTensors copies = host_copies(state);
  EXPECT_NE(copies[0].tensor.data_ptr(), state[0].tensor.data_ptr());
  EXPECT_EQ(copies[1].tensor.data_ptr(), state[1].tensor.data_ptr());
  const at::Tensor values = at::randn({64, 3, 5, 5});
  copies[0].tensor.copy_(values);
  copy_values(copies, state);
  EXPECT_TRUE(state[0].tensor.equal(values));
  EXPECT_TRUE(state[0].tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
}

}  // namespace
}  // namespace stoker::train
