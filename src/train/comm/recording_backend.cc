#include "train/comm/recording_backend.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "base/thread.h"
#include "train/device/cuda_part.h"

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

// Notices the ends of collectives on a GPU, in their order.
class CompletionPoll {
 public:
  explicit CompletionPoll(std::shared_ptr<CollectiveRecorder> collective_recorder)
      : collective_recorder_(std::move(collective_recorder)),
        thread_([this](const StopToken& stop) { poll(stop); }) {}
  ~CompletionPoll() {
    thread_.request_stop();
    {
      const MutexLock lock(mutex_);
      changed_.notify_all();
    }
    thread_.join();
  }
  CompletionPoll(const CompletionPoll&) = delete;
  CompletionPoll& operator=(const CompletionPoll&) = delete;

  void add(std::uint64_t number, WorkPointer work) STOKER_EXCLUDES_LOCK(mutex_) {
    const MutexLock lock(mutex_);
    running_.push_back({number, std::move(work)});
    changed_.notify_all();
  }

 private:
  struct Running {
    std::uint64_t number = 0;
    WorkPointer work;
  };
  // Coarser than most collectives, so that polling takes no processor.
  static constexpr Duration kInterval = std::chrono::milliseconds(1);

  std::optional<Running> next(const StopToken& stop) STOKER_EXCLUDES_LOCK(mutex_) {
    const MutexLock lock(mutex_);
    while (running_.empty() && !stop.stop_requested()) changed_.wait(mutex_, Deadline::never());
    if (stop.stop_requested()) return std::nullopt;
    Running first = std::move(running_.front());
    running_.pop_front();
    return first;
  }

  void poll(const StopToken& stop) {
    RealClock clock;
    while (const auto running = next(stop)) {
      while (!running->work->isCompleted() && !stop.stop_requested()) clock.sleep(kInterval);
      // NCCL's work has no isSuccess().
      collective_recorder_->end(running->number, running->work->exception()
                                                     ? record::CollectiveOutcome::failed
                                                     : record::CollectiveOutcome::done);
    }
  }

  const std::shared_ptr<CollectiveRecorder> collective_recorder_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Running> running_ STOKER_GUARDED_BY(mutex_);
  Thread thread_;  ///< last: it uses the members above
};

class RecordingBackend final : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<c10d::Backend> inner,
                   std::shared_ptr<CollectiveRecorder> collective_recorder, CompletionCheck completion)
      : Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        collective_recorder_(std::move(collective_recorder)) {
    if (completion == CompletionCheck::polled) poll_.emplace(collective_recorder_);
  }

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
    // What is captured does not run yet.
    if (cuda_part() != nullptr && cuda_part()->is_capturing()) return start();
    const std::uint64_t number = collective_recorder_->begin(
        collective, poll_ ? CollectiveRecorder::Place::gpu : CollectiveRecorder::Place::host);
    WorkPointer work;
    try {
      work = start();
    } catch (...) {
      collective_recorder_->end(number, record::CollectiveOutcome::failed);
      throw;
    }
    if (poll_) {
      poll_->add(number, work);
      return work;
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
  std::optional<CompletionPoll> poll_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_recording_backend(
    c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<CollectiveRecorder> collective_recorder,
    CompletionCheck completion) {
  return c10::make_intrusive<RecordingBackend>(std::move(inner), std::move(collective_recorder), completion);
}

}  // namespace stoker::train
