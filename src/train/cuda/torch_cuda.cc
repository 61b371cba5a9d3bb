#include "train/cuda/torch_cuda.h"

#include <atomic>
#include <exception>
#include <string_view>
#include <utility>

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "train/cuda/nccl_backend.h"

namespace stoker::train {

namespace {

std::atomic<bool> capturing = false;

class TorchGraph final : public CapturedGraph {
 public:
  void replay() override { graph_.replay(); }

  void capture(const std::function<void()>& body) {
    // Other threads may allocate and query meanwhile: the loader's, NCCL's.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    capturing = true;
    try {
      body();
    } catch (...) {
      end_after_failure();
      throw;
    }
    capturing = false;
    graph_.capture_end();
  }

 private:
  // A failed operation has invalidated the capture, so that ending it fails, too.
  void end_after_failure() {
    capturing = false;
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      return;
    }
  }

  at::cuda::CUDAGraph graph_;
};

class TorchCuda final : public CudaPart {
 public:
  Status check() const override {
    try {
      return c10::cuda::device_count_ensure_non_zero() > 0 ? Status()
                                                           : unavailable("the driver lists no GPU");
    } catch (const std::exception& error) {
      const std::string_view text = error.what();
      return unavailable("{}", printable(text.substr(0, text.find('\n'))));
    }
  }

  std::string description(at::Device gpu) const override {
    const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(gpu.index());
    return format("{}, {} GiB", properties.name, properties.totalGlobalMem >> 30);
  }

  std::string identity(at::Device gpu) const override {
    const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(gpu.index());
    std::string text;
    for (const char byte : properties.uuid.bytes)
      text += format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    return text;
  }

  std::uint64_t free_memory(at::Device gpu) const override {
    return c10::getDeviceAllocator(gpu.type())->getMemoryInfo(gpu.index()).first;
  }

  std::uint64_t peak_memory(at::Device gpu) const override {
    const auto stats = c10::getDeviceAllocator(gpu.type())->getDeviceStats(gpu.index());
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return static_cast<std::uint64_t>(stats.reserved_bytes[kAll].peak);
  }

  Status check_nccl() const override { return check_nccl_version(); }

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& body) const override {
    auto graph = std::make_unique<TorchGraph>();
    graph->capture(body);
    return graph;
  }
  bool is_capturing() const override { return capturing; }

  c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const NcclOptions& options) const override {
    return train::make_nccl_backend(store, options);
  }
};

const TorchCuda part;

}  // namespace

const CudaPart& torch_cuda() { return part; }

}  // namespace stoker::train

const stoker::train::CudaPart* stoker_train_cuda_part() { return &stoker::train::torch_cuda(); }
