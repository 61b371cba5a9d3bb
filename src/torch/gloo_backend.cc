#include "torch/gloo_backend.h"

#include <atomic>
#include <deque>
#include <string>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "base/thread.h"
#include "torch/communication/gloo_between.h"

namespace stoker::torch {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo);
}

namespace {

using net::shm::Arithmetic;
using net::shm::Element;
using net::shm::Reduction;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Between looks at whether the call was given up.
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
    case Reduction::least:
      return c10d::ReduceOp::MIN;
    case Reduction::greatest:
      return c10d::ReduceOp::MAX;
    default:  // whoever asks for an average divides the sum itself
      return c10d::ReduceOp::SUM;
  }
}

// The memory as a tensor, which does not own it.
at::Tensor tensor_of(std::span<std::byte> data, Element element) {
  const auto count = static_cast<std::int64_t>(data.size() / net::shm::size_of(element));
  return at::from_blob(data.data(), {count}, type_of(element));
}

// Told when the work has ended, by whatever thread of gloo ends it.
struct Ending {
  Mutex mutex;
  Condition changed;
  bool has_ended GUARDED_BY(mutex) = false;
};

class GlooBetween final : public net::shm::Between {
 public:
  GlooBetween(c10::intrusive_ptr<c10d::Backend> gloo, GlooBetweenOptions options)
      : gloo_(std::move(gloo)), options_(std::move(options)), named_after_(options_.named_after) {}
  ~GlooBetween() override { settle(); }

  Status begin_all_reduce(std::span<std::byte> data, Arithmetic arithmetic) override {
    return begun([&] {
      std::vector<at::Tensor> tensors{tensor_of(data, arithmetic.element)};
      c10d::AllreduceOptions options;
      options.reduceOp = operation_of(arithmetic.reduction);
      return gloo_->allreduce(tensors, options);
    });
  }
  Status finish_all_reduce() override { return finish(); }

  Status broadcast(std::span<std::byte> data, std::size_t host) override {
    RETURN_IF_ERROR(begun([&] {
      std::vector<at::Tensor> tensors{tensor_of(data, Element::u8)};
      c10d::BroadcastOptions options;
      options.rootRank = static_cast<std::int64_t>(host);
      return gloo_->broadcast(tensors, options);
    }));
    return finish();
  }

  Status all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    RETURN_IF_ERROR(begun([&] {
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
    RETURN_IF_ERROR(begun([&] { return gloo_->barrier(); }));
    return finish();
  }

  void leave(std::string_view why) override {
    if (!gloo_) return;
    options_.say_why(why);
    settle();
    gloo_.reset();  // the others' reads from here end
  }

  void set_named_after(Duration duration) override { named_after_ = duration; }
  void cancel() override { is_cancelled_ = true; }

 private:
  struct Begun {
    WorkPointer work;
    std::shared_ptr<Ending> ending;  ///< shared with the callback of gloo's thread
  };

  template <typename Start>
  Status begun(const Start& start) {
    if (!gloo_) return cancelled("has left");
    try {
      Begun one{start(), std::make_shared<Ending>()};
      one.work->getFuture()->addCallback([ending = one.ending](c10::ivalue::Future& /*future*/) {
        const MutexLock lock(ending->mutex);
        ending->has_ended = true;
        ending->changed.notify_all();
      });
      begun_.push_back(std::move(one));
      return {};
    } catch (const std::exception& error) {
      return options_.explain(error);
    }
  }

  Status finish() {
    Begun one = std::move(begun_.front());
    begun_.pop_front();
    if (Status status = wait(*one.ending); !status.ok()) {
      begun_.push_front(std::move(one));  // it still uses its memory: see settle()
      return status;
    }
    try {
      one.work->wait();  // throws what went wrong
      return {};
    } catch (const std::exception& error) {
      return options_.explain(error);
    }
  }

  // gloo has a deadline of its own, from which the future's error comes.
  Status wait(Ending& ending) {
    Duration waited{0};
    bool was_told = false;
    const MutexLock lock(ending.mutex);
    while (!ending.has_ended) {
      if (is_cancelled_) return cancelled("given up by its own rank");
      const MonoTime began = RealClock().mono();
      ending.changed.wait(ending.mutex, Deadline::after(kSlice));
      waited += std::min(kSlice, Duration(RealClock().mono() - began));
      if (ending.has_ended || was_told || waited < named_after_.load() || !options_.on_late) continue;
      was_told = true;
      options_.on_late(late_text(waited));
    }
    return {};
  }

  // Which of them it is, gloo does not tell; on the host that is late a rank says who is missing there.
  std::string late_text(Duration waited) const {
    std::vector<std::string> others;
    for (const int rank : options_.others) others.push_back(std::to_string(rank));
    return format("rank {} has waited for {} between hosts: {}", options_.rank, rounded_duration(waited),
                  others.size() == 1 ? format("rank {}, the first of its host, has not come", others[0])
                                     : format("not all of ranks {} have come, each the first of its host",
                                              join(others, ", ")));
  }

  // Nothing uses memory that was given after this. Bounded by gloo's deadline for each of them.
  void settle() {
    for (const Begun& one : begun_) {
      const MutexLock lock(one.ending->mutex);
      while (!one.ending->has_ended) one.ending->changed.wait(one.ending->mutex, Deadline::never());
    }
    begun_.clear();
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;  ///< null once this rank has left
  const GlooBetweenOptions options_;
  std::atomic<Duration> named_after_;
  std::atomic<bool> is_cancelled_{false};
  std::deque<Begun> begun_;
};

}  // namespace

std::unique_ptr<net::shm::Between> make_gloo_between(c10::intrusive_ptr<c10d::Backend> gloo,
                                                     GlooBetweenOptions options) {
  return std::make_unique<GlooBetween>(std::move(gloo), std::move(options));
}

}  // namespace stoker::torch
