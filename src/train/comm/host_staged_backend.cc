#include "train/comm/host_staged_backend.h"

#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace stoker::train {

namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// A collective that has ended.
class EndedWork final : public c10d::Work {
 public:
  explicit EndedWork(Tensors results) {
    std::vector<c10::Device> devices;
    if (!results.empty() && !results.front().is_cpu()) devices.push_back(results.front().device());
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
    future_->markCompleted(c10::IValue(std::move(results)));
  }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

Tensors on_host(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.to(at::kCPU).contiguous());
  return copies;
}

void copy_back(const Tensors& tensors, const Tensors& from) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(from[i]);
}

class HostStagedBackend final : public c10d::Backend {
 public:
  explicit HostStagedBackend(c10::intrusive_ptr<c10d::Backend> host)
      : Backend(host->getRank(), host->getSize()), host_(std::move(host)) {}

  const std::string getBackendName() const override { return "stoker-host-staged"; }
  void setTimeout(std::chrono::milliseconds timeout) override { host_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { host_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return host_->getSequenceNumberForGroup(); }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    Tensors copies = on_host(tensors);
    host_->broadcast(copies, options)->wait();
    copy_back(tensors, copies);
    return c10::make_intrusive<EndedWork>(tensors);
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    Tensors copies = on_host(tensors);
    host_->allreduce(copies, options)->wait();
    copy_back(tensors, copies);
    return c10::make_intrusive<EndedWork>(tensors);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    Tensors copies = on_host(tensors);
    host_->reduce(copies, options)->wait();
    if (options.rootRank == getRank()) copy_back(tensors, copies);
    return c10::make_intrusive<EndedWork>(tensors);
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    Tensors copies = on_host(inputs);
    std::vector<Tensors> gathered{Tensors()};
    for (const at::Tensor& output : outputs.front())
      gathered.front().push_back(at::empty_like(output, output.options().device(at::kCPU)));
    host_->allgather(gathered, copies, options)->wait();
    copy_back(outputs.front(), gathered.front());
    return c10::make_intrusive<EndedWork>(outputs.front());
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    at::Tensor gathered = at::empty_like(output, output.options().device(at::kCPU));
    at::Tensor copy = input.to(at::kCPU).contiguous();
    host_->_allgather_base(gathered, copy, options)->wait();
    copy_back({output}, {gathered});
    return c10::make_intrusive<EndedWork>(Tensors{output});
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override { return host_->barrier(options); }

 private:
  const c10::intrusive_ptr<c10d::Backend> host_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_host_staged_backend(c10::intrusive_ptr<c10d::Backend> host) {
  return c10::make_intrusive<HostStagedBackend>(std::move(host));
}

}  // namespace stoker::train
