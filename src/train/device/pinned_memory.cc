#include "train/device/pinned_memory.h"

#include <exception>
#include <map>
#include <utility>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty.h>

#include "base/thread.h"

namespace stoker::train {

namespace {

// Page-locking takes milliseconds: libtorch keeps what is released.
class PinnedBatches final : public loader::BatchAllocator {
 public:
  explicit PinnedBatches(at::Device device) : allocator_(at::getHostAllocator(device.type())) {}

  std::byte* allocate(std::size_t size) override {
    try {
      c10::DataPtr memory = allocator_->allocate(size);
      auto* const address = static_cast<std::byte*>(memory.get());
      const MutexLock lock(mutex_);
      if (address != nullptr) held_.insert_or_assign(address, std::move(memory));
      return address;
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  void release(std::byte* memory, std::size_t /*size*/) override {
    const MutexLock lock(mutex_);
    held_.erase(memory);
  }

 private:
  c10::Allocator* const allocator_;
  Mutex mutex_;
  std::map<const std::byte*, c10::DataPtr> held_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<loader::BatchAllocator> pinned_batches(at::Device device) {
  return device.is_cpu() ? nullptr : std::make_shared<PinnedBatches>(device);
}

at::Tensor pinned_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Device device) {
  return at::empty(sizes, at::TensorOptions(type).pinned_memory(!device.is_cpu()));
}

}  // namespace stoker::train
