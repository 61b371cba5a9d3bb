#include "torch/gloo_backend.h"

#include <utility>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace stoker::torch {

namespace {

std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

// Passes every collective on and meters it. It sits between c10d::Reducer and gloo, so it sees the reducer's
// own traffic too.
class MeteredBackend final : public c10d::Backend {
 public:
  MeteredBackend(c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<TrafficMeter> meter)
      : Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)), meter_(std::move(meter)) {}

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  void setTimeout(std::chrono::milliseconds timeout) override { inner_->setTimeout(timeout); }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return metered(bytes_of(tensors), [&] { return inner_->broadcast(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return metered(bytes_of(tensors), [&] { return inner_->allreduce(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    return metered(bytes_of(inputs), [&] { return inner_->allgather(outputs, inputs, options); });
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) override {
    return metered(input.nbytes(), [&] { return inner_->_allgather_base(output, input, options); });
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return metered(0, [&] { return inner_->barrier(options); });
  }
  void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }

 private:
  template <typename Start>
  c10::intrusive_ptr<c10d::Work> metered(std::uint64_t bytes, Start start) {
    meter_->begin(bytes);
    c10::intrusive_ptr<c10d::Work> work;
    try {
      work = start();
    } catch (...) {
      meter_->end();
      throw;
    }
    work->getFuture()->addCallback([meter = meter_](c10::ivalue::Future&) { meter->end(); });
    return work;
  }

  const c10::intrusive_ptr<c10d::Backend> inner_;
  const std::shared_ptr<TrafficMeter> meter_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  auto inner = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo);
  return c10::make_intrusive<MeteredBackend>(std::move(inner), options.meter);
}

}  // namespace stoker::torch
