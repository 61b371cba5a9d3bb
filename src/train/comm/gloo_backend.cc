#include "train/comm/gloo_backend.h"

#include <atomic>
#include <deque>
#include <string>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "base/thread.h"

namespace stoker::train {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo);
}

namespace {

using net::shm::Element;
using net::shm::ReduceSpec;
using net::shm::Reduction;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Interval between checks for cancellation.
constexpr Duration kSlice = std::chrono::milliseconds(100);

at::ScalarType type_of(Element element) {
  switch (element) {
    case Element::f32:
      return at::kFloat;
    case Element::f64:
      return at::kDouble;
    case Element::f16:
      return at::kHalf;
    case Element::bf16:
      return at::kBFloat16;
    case Element::i8:
      return at::kChar;
    case Element::u8:
      return at::kByte;
    case Element::i16:
      return at::kShort;
    case Element::i32:
      return at::kInt;
    case Element::i64:
      return at::kLong;
  }
  return at::kByte;
}

c10d::ReduceOp operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::product:
      return c10d::ReduceOp::PRODUCT;
    case Reduction::min:
      return c10d::ReduceOp::MIN;
    case Reduction::max:
      return c10d::ReduceOp::MAX;
    default:  // for an average the caller divides the sum
      return c10d::ReduceOp::SUM;
  }
}

// Wraps the memory without owning it.
at::Tensor tensor_of(std::span<std::byte> data, Element element) {
  const auto count = static_cast<std::int64_t>(data.size() / net::shm::size_of(element));
  return at::from_blob(data.data(), {count}, type_of(element));
}

// Notified by a gloo thread when the work has ended.
struct Completion {
  Mutex mutex;
  Condition changed;
  bool has_ended STOKER_GUARDED_BY(mutex) = false;
};

class GlooInterNode final : public net::shm::InterNode {
 public:
  GlooInterNode(c10::intrusive_ptr<c10d::Backend> gloo, GlooInterNodeOptions options)
      : gloo_(std::move(gloo)), options_(std::move(options)), straggler_after_(options_.straggler_after) {}
  ~GlooInterNode() override { wait_for_pending(); }

  Status begin_all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) override {
    return start_work([&] {
      std::vector<at::Tensor> tensors{tensor_of(data, arithmetic.element)};
      c10d::AllreduceOptions options;
      options.reduceOp = operation_of(arithmetic.reduction);
      return gloo_->allreduce(tensors, options);
    });
  }
  Status finish_all_reduce() override { return finish(); }

  Status broadcast(std::span<std::byte> data, std::size_t host) override {
    STOKER_RETURN_IF_ERROR(start_work([&] {
      std::vector<at::Tensor> tensors{tensor_of(data, Element::u8)};
      c10d::BroadcastOptions options;
      options.rootRank = static_cast<std::int64_t>(host);
      return gloo_->broadcast(tensors, options);
    }));
    return finish();
  }

  Status all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    STOKER_RETURN_IF_ERROR(start_work([&] {
      // gloo only reads it.
      std::vector<at::Tensor> input{tensor_of({const_cast<std::byte*>(own.data()), own.size()}, Element::u8)};
      std::vector<std::vector<at::Tensor>> outputs(1);
      for (std::size_t at = 0; at < all.size(); at += own.size())
        outputs[0].push_back(tensor_of(all.subspan(at, own.size()), Element::u8));
      return gloo_->allgather(outputs, input);
    }));
    return finish();
  }

  Status barrier() override {
    STOKER_RETURN_IF_ERROR(start_work([&] { return gloo_->barrier(); }));
    return finish();
  }

  void leave(std::string_view why) override {
    if (!gloo_) return;
    options_.publish_failure(why);
    wait_for_pending();
    gloo_.reset();  // peers' reads from this rank now fail
  }

  void set_straggler_after(Duration duration) override { straggler_after_ = duration; }
  void cancel() override { is_cancelled_ = true; }

 private:
  struct PendingWork {
    WorkPointer work;
    std::shared_ptr<Completion> completion;  ///< shared with the callback on gloo's thread
  };

  template <typename Start>
  Status start_work(const Start& start) {
    if (!gloo_) return cancelled("has left");
    try {
      PendingWork one{start(), std::make_shared<Completion>()};
      one.work->getFuture()->addCallback([completion = one.completion](c10::ivalue::Future& /*future*/) {
        const MutexLock lock(completion->mutex);
        completion->has_ended = true;
        completion->changed.notify_all();
      });
      pending_.push_back(std::move(one));
      return {};
    } catch (const std::exception& error) {
      return options_.explain(error);
    }
  }

  Status finish() {
    PendingWork one = std::move(pending_.front());
    pending_.pop_front();
    if (Status status = wait(*one.completion); !status.ok()) {
      pending_.push_front(std::move(one));  // its memory is still in use: see wait_for_pending()
      return status;
    }
    try {
      one.work->wait();  // throws on failure
      return {};
    } catch (const std::exception& error) {
      return options_.explain(error);
    }
  }

  // gloo has its own deadline, which sets the future's error.
  Status wait(Completion& completion) {
    Duration waited{0};
    bool was_reported = false;
    const MutexLock lock(completion.mutex);
    while (!completion.has_ended) {
      if (is_cancelled_) return cancelled("cancelled by its own rank");
      const MonoTime began = RealClock().mono();
      completion.changed.wait(completion.mutex, Deadline::after(kSlice));
      waited += std::min(kSlice, Duration(RealClock().mono() - began));
      if (completion.has_ended || was_reported || waited < straggler_after_.load() || !options_.on_straggler)
        continue;
      was_reported = true;
      options_.on_straggler(straggler_text(waited));
    }
    return {};
  }

  // gloo does not report which rank is missing. On the straggler's host the local ranks report it.
  std::string straggler_text(Duration waited) const {
    std::vector<std::string> others;
    for (const int rank : options_.others) others.push_back(std::to_string(rank));
    return format("rank {} has waited for {} between hosts: {}", options_.rank, rounded_duration(waited),
                  others.size() == 1 ? format("rank {}, the first of its host, has not joined", others[0])
                                     : format("some of ranks {}, each the first of its host, have not joined",
                                              join(others, ", ")));
  }

  // Waits until no work uses the caller's memory any more. gloo's deadline bounds each wait.
  void wait_for_pending() {
    for (const PendingWork& one : pending_) {
      const MutexLock lock(one.completion->mutex);
      while (!one.completion->has_ended)
        one.completion->changed.wait(one.completion->mutex, Deadline::never());
    }
    pending_.clear();
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;  ///< null after leave()
  const GlooInterNodeOptions options_;
  std::atomic<Duration> straggler_after_;
  std::atomic<bool> is_cancelled_{false};
  std::deque<PendingWork> pending_;
};

}  // namespace

std::unique_ptr<net::shm::InterNode> make_gloo_inter_node(c10::intrusive_ptr<c10d::Backend> gloo,
                                                          GlooInterNodeOptions options) {
  return std::make_unique<GlooInterNode>(std::move(gloo), std::move(options));
}

}  // namespace stoker::train
