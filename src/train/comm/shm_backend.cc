#include "train/comm/shm_backend.h"

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "base/thread.h"
#include "stoker/exceptions.h"

namespace stoker::train {

namespace {

using net::shm::Collectives;
using net::shm::Element;
using net::shm::ReduceSpec;
using net::shm::Reduction;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Up to this size, waking the worker thread costs more than the collective.
constexpr std::uint64_t kInlineBytes = 32 << 10;

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Types without arithmetic are copied as bytes.
Element element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return Element::f32;
    case at::kDouble:
      return Element::f64;
    case at::kHalf:
      return Element::f16;
    case at::kBFloat16:
      return Element::bf16;
    case at::kChar:
      return Element::i8;
    case at::kShort:
      return Element::i16;
    case at::kInt:
      return Element::i32;
    case at::kLong:
      return Element::i64;
    default:
      return Element::u8;
  }
}

Reduction reduction_of(const c10d::ReduceOp& operation) {
  switch (operation.op_) {
    case c10d::ReduceOp::SUM:
      return Reduction::sum;
    case c10d::ReduceOp::AVG:
      return Reduction::average;
    case c10d::ReduceOp::PRODUCT:
      return Reduction::product;
    case c10d::ReduceOp::MIN:
      return Reduction::min;
    case c10d::ReduceOp::MAX:
      return Reduction::max;
    default:
      TORCH_CHECK(
          false,
          "shared memory: only the reductions sum, average, product, minimum and maximum are supported");
  }
}

ReduceSpec arithmetic_of(const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  const Element element = element_of(tensor);
  TORCH_CHECK(element != Element::u8 || tensor.scalar_type() == at::kByte,
              "shared memory: cannot compute with ", tensor.scalar_type());
  return {element, reduction_of(operation)};
}

// A tensor's values in contiguous memory: the tensor itself, or a copy that is written back.
class FlatTensor {
 public:
  explicit FlatTensor(const at::Tensor& tensor) : tensor_(tensor) {
    TORCH_CHECK(tensor.is_cpu() && tensor.layout() == at::kStrided,
                "shared memory: only dense CPU tensors are supported");
    const ::c10::AutoGradMode no_grad(false);
    flat_ = tensor.contiguous();
  }
  const at::Tensor& flat() const { return flat_; }
  void copy_back() const {
    if (flat_.is_same(tensor_) || flat_.data_ptr() == tensor_.data_ptr()) return;
    const ::c10::AutoGradMode no_grad(false);
    tensor_.copy_(flat_);
  }

 private:
  at::Tensor tensor_;
  at::Tensor flat_;
};

const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "shared memory: one tensor per collective");
  return tensors.front();
}

// c10d's own Work for a future would not throw the error.
class ShmWork final : public c10d::Work {
 public:
  explicit ShmWork(c10::intrusive_ptr<c10::ivalue::Future> future) : future_(std::move(future)) {}
  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->completed() && !future_->hasError(); }
  std::exception_ptr exception() const override {
    return future_->hasError() ? future_->exception_ptr() : nullptr;
  }
  // The collective has its own deadline.
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    future_->waitAndThrow();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class ShmBackend final : public c10d::Backend {
 public:
  explicit ShmBackend(std::unique_ptr<Collectives> ranks)
      : Backend(ranks->position().rank.value, ranks->position().size.value),
        ranks_(std::move(ranks)),
        worker_([this](const StopToken& stop) { work(stop); }) {}

  ~ShmBackend() override {
    ranks_->cancel();
    worker_.request_stop();
    {
      const MutexLock lock(mutex_);
      changed_.notify_all();
    }
    worker_.join();
  }

  const std::string getBackendName() const override { return "stoker-shm"; }
  void abort() override { ranks_->cancel(); }
  void setTimeout(std::chrono::milliseconds timeout) override { ranks_->set_call_timeout(timeout); }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return issued_; }

  WorkPointer allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const FlatTensor piece(only(tensors));
    const ReduceSpec arithmetic = arithmetic_of(piece.flat(), options.reduceOp);
    return run({piece.flat().nbytes(), tensors}, [piece, arithmetic](Collectives& ranks) -> Status {
      STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(piece.flat()), arithmetic));
      piece.copy_back();
      return {};
    });
  }

  WorkPointer reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override {
    const FlatTensor piece(only(tensors));
    const ReduceSpec arithmetic = arithmetic_of(piece.flat(), options.reduceOp);
    const Rank root(static_cast<int>(options.rootRank));
    return run({piece.flat().nbytes(), tensors}, [piece, arithmetic, root](Collectives& ranks) -> Status {
      STOKER_RETURN_IF_ERROR(ranks.reduce(bytes_of(piece.flat()), arithmetic, root));
      if (root == ranks.position().rank) piece.copy_back();
      return {};
    });
  }

  WorkPointer broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const FlatTensor piece(only(tensors));
    const Rank root(static_cast<int>(options.rootRank));
    return run({piece.flat().nbytes(), tensors}, [piece, root](Collectives& ranks) -> Status {
      STOKER_RETURN_IF_ERROR(ranks.broadcast(bytes_of(piece.flat()), element_of(piece.flat()), root));
      if (root != ranks.position().rank) piece.copy_back();
      return {};
    });
  }

  WorkPointer allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                        const c10d::AllgatherOptions& /*options*/) override {
    TORCH_CHECK(outputs.size() == 1, "shared memory: one tensor per collective");
    return gather_into(outputs.front(), only(inputs));
  }

  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& /*options*/) override {
    TORCH_CHECK(output.is_contiguous() && output.numel() == input.numel() * size_,
                "shared memory: the output must be contiguous and ", size_, " times the size of the input");
    return gather_into(output.reshape({size_, input.numel()}).unbind(0), input);
  }

  WorkPointer reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                             const c10d::ReduceScatterOptions& options) override {
    TORCH_CHECK(inputs.size() == 1, "shared memory: one tensor per collective");
    return scatter_from(inputs.front(), only(outputs), options);
  }

  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    TORCH_CHECK(input.is_contiguous() && input.numel() == output.numel() * size_,
                "shared memory: the input must be contiguous and ", size_, " times the size of the input");
    return scatter_from(input.reshape({size_, output.numel()}).unbind(0), output, options);
  }

  WorkPointer barrier(const c10d::BarrierOptions& /*options*/) override {
    return run({0, {}}, [](Collectives& ranks) { return ranks.barrier(); });
  }

 private:
  using Body = std::function<Status(Collectives&)>;
  using FuturePointer = c10::intrusive_ptr<c10::ivalue::Future>;

  struct Request {
    std::uint64_t bytes;
    std::vector<at::Tensor> results;
  };
  struct Job {
    Request request;
    Body body;
    FuturePointer future;
  };

  WorkPointer gather_into(const std::vector<at::Tensor>& outputs, const at::Tensor& input) {
    const FlatTensor own(input);
    TORCH_CHECK(outputs.size() == static_cast<std::size_t>(size_),
                "shared memory: one output per rank is required");
    std::vector<FlatTensor> pieces;
    for (const at::Tensor& output : outputs) {
      TORCH_CHECK(output.nbytes() == input.nbytes(), "shared memory: outputs must have the input's size");
      pieces.emplace_back(output);
    }
    return run({input.nbytes(), outputs}, [own, pieces](Collectives& ranks) -> Status {
      std::vector<std::span<std::byte>> into;
      for (const FlatTensor& piece : pieces) into.push_back(bytes_of(piece.flat()));
      STOKER_RETURN_IF_ERROR(ranks.all_gather(bytes_of(own.flat()), element_of(own.flat()), into));
      for (const FlatTensor& piece : pieces) piece.copy_back();
      return {};
    });
  }

  WorkPointer scatter_from(const std::vector<at::Tensor>& inputs, const at::Tensor& output,
                           const c10d::ReduceScatterOptions& options) {
    const FlatTensor own(output);
    const ReduceSpec arithmetic = arithmetic_of(output, options.reduceOp);
    TORCH_CHECK(inputs.size() == static_cast<std::size_t>(size_),
                "shared memory: one input per rank is required");
    std::vector<FlatTensor> pieces;
    for (const at::Tensor& input : inputs) {
      TORCH_CHECK(input.nbytes() == output.nbytes(), "shared memory: inputs must have the output's size");
      pieces.emplace_back(input);
    }
    return run({output.nbytes(), {output}}, [=](Collectives& ranks) -> Status {
      std::vector<std::span<const std::byte>> parts;
      for (const FlatTensor& piece : pieces) parts.push_back(bytes_of(piece.flat()));
      STOKER_RETURN_IF_ERROR(ranks.reduce_scatter(parts, bytes_of(own.flat()), arithmetic));
      own.copy_back();
      return {};
    });
  }

  // Small collectives run inline if the backend is idle. The worker runs all others in order.
  WorkPointer run(Request request, Body body) {
    issued_ += 1;
    Job job{std::move(request), std::move(body),
            c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))};
    const FuturePointer future = job.future;
    if (job.request.bytes <= kInlineBytes && try_acquire()) {
      finish(job);
      release();
    } else {
      const MutexLock lock(mutex_);
      waiting_.push_back(std::move(job));
      changed_.notify_all();
    }
    return c10::make_intrusive<ShmWork>(future);
  }

  bool try_acquire() {
    const MutexLock lock(mutex_);
    if (is_busy_ || !waiting_.empty()) return false;
    is_busy_ = true;
    return true;
  }
  void release() {
    const MutexLock lock(mutex_);
    is_busy_ = false;
    if (!waiting_.empty()) changed_.notify_all();
  }

  void work(const StopToken& stop) {
    while (std::optional<Job> job = next_job(stop)) {
      finish(*job);
      release();
    }
  }
  std::optional<Job> next_job(const StopToken& stop) {
    const MutexLock lock(mutex_);
    while (is_busy_ || waiting_.empty()) {
      if (stop.stop_requested() && !is_busy_) return std::nullopt;
      changed_.wait(mutex_, Deadline::never());
    }
    is_busy_ = true;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    return job;
  }

  void finish(Job& job) {
    Status status;
    try {
      status = job.body(*ranks_);
    } catch (const std::exception& error) {
      status = internal("shared memory: {}", first_line(error));
    }
    if (status.ok()) {
      job.future->markCompleted(c10::IValue(std::move(job.request.results)));
    } else {
      job.future->setError(std::make_exception_ptr(StatusError(std::move(status))));
    }
  }

  const std::unique_ptr<Collectives> ranks_;  ///< used by the thread that set is_busy_
  std::atomic<std::uint64_t> issued_{0};
  Mutex mutex_;
  Condition changed_;
  std::deque<Job> waiting_ STOKER_GUARDED_BY(mutex_);
  bool is_busy_ STOKER_GUARDED_BY(mutex_) = false;
  Thread worker_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_shm_backend(std::unique_ptr<Collectives> ranks) {
  return c10::make_intrusive<ShmBackend>(std::move(ranks));
}

}  // namespace stoker::train
