#include "train/comm/recording_backend.h"

#include <algorithm>
#include <utility>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace stoker::train {

namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using record::Collective;

// PyTorch's Python names.
std::string name_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kByte:
      return "uint8";
    default:
      return c10::toString(type);
  }
}

Collective described(const char* operation, const at::Tensor& tensor, std::int64_t root = -1) {
  Collective collective{operation, name_of(tensor.scalar_type()), tensor.nbytes()};
  const auto sizes = tensor.sizes();
  for (std::size_t i = 0; i < std::min(sizes.size(), collective.shape.size()); ++i) {
    collective.shape[i] = static_cast<std::uint32_t>(sizes[i]);
  }
  collective.root = static_cast<std::int32_t>(root);
  return collective;
}

Collective described(const char* operation, const Tensors& tensors, std::int64_t root = -1) {
  if (tensors.empty()) return {operation, ""};
  Collective collective = described(operation, tensors.front(), root);
  for (std::size_t i = 1; i < tensors.size(); ++i) collective.bytes += tensors[i].nbytes();
  return collective;
}

class RecordingBackend final : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<c10d::Backend> inner,
                   std::shared_ptr<CollectiveRecorder> collective_recorder)
      : Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        collective_recorder_(std::move(collective_recorder)) {}

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  void setTimeout(std::chrono::milliseconds timeout) override { inner_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return recorded(described("broadcast", tensors, options.rootRank),
                    [&] { return inner_->broadcast(tensors, options); });
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return recorded(described("all-reduce", tensors), [&] { return inner_->allreduce(tensors, options); });
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return recorded(described("reduce", tensors, options.rootRank),
                    [&] { return inner_->reduce(tensors, options); });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return recorded(described("all-gather", inputs),
                    [&] { return inner_->allgather(outputs, inputs, options); });
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return recorded(described("all-gather", input),
                    [&] { return inner_->_allgather_base(output, input, options); });
  }
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override {
    return recorded(described("reduce-scatter", outputs),
                    [&] { return inner_->reduce_scatter(outputs, inputs, options); });
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return recorded(described("reduce-scatter", output),
                    [&] { return inner_->_reduce_scatter_base(output, input, options); });
  }
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    return recorded({"barrier", ""}, [&] { return inner_->barrier(options); });
  }

 private:
  template <typename Start>
  WorkPointer recorded(const Collective& collective, Start start) {
    const std::uint64_t number = collective_recorder_->begin(collective);
    WorkPointer work;
    try {
      work = start();
    } catch (...) {
      collective_recorder_->end(number, record::CollectiveOutcome::failed);
      throw;
    }
    work->getFuture()->addCallback(
        [collective_recorder = collective_recorder_, number](c10::ivalue::Future& future) {
          collective_recorder->end(number, future.hasError() ? record::CollectiveOutcome::failed
                                                             : record::CollectiveOutcome::done);
        });
    return work;
  }

  const c10::intrusive_ptr<c10d::Backend> inner_;
  const std::shared_ptr<CollectiveRecorder> collective_recorder_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_recording_backend(
    c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<CollectiveRecorder> collective_recorder) {
  return c10::make_intrusive<RecordingBackend>(std::move(inner), std::move(collective_recorder));
}

}  // namespace stoker::train
