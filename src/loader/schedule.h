// The batches of a rank and their samples, as the sequence that the loader's threads fill. A function of the
// options and the starting state alone. Used by Loader. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "loader/contents.h"
#include "loader/sampler/order.h"
#include "stoker/loader.h"
#include "stoker/status.h"

namespace stoker::loader {

/// The samples of a batch; a plan without samples is the end of an epoch.
struct BatchPlan {
  /// Lists the samples. Separate from planning, so that any thread can do it at any time.
  void list_samples();

  Epoch epoch;
  std::size_t count = 0;               ///< of samples
  std::vector<std::uint64_t> samples;  ///< after list_samples()
  OrderState after;

  /// The order to list the samples from. Shared with the schedule and the other batches of the epoch until
  /// then.
  std::shared_ptr<const EpochOrder> order;
  std::uint64_t begin = 0;  ///< position
  std::uint64_t step = 1;
  std::optional<RankSlice> slice;  ///< instead of begin and step, if ranks divide a step by chunk
};

/// The options' order over the units of `contents`.
OrderOptions order_of(const Contents& contents, const LoaderOptions& options);

/// The batches of one rank from a state on, epoch after epoch, without end.
class Schedule {
 public:
  /// Fails as Loader::open does.
  static Result<Schedule> create(OrderOptions order, const LoaderOptions& options,
                                 const std::optional<OrderState>& resume);

  /// The start of the sequence.
  const OrderState& start() const { return start_; }
  /// Writes the next batch into `plan`, its samples not yet listed, or the end of the epoch.
  Status next(BatchPlan& plan);
  /// Batches of this rank from `position` of an epoch to its end.
  std::uint64_t batches_from(std::uint64_t position) const;

 private:
  Schedule(OrderOptions order, const LoaderOptions& options, const OrderState& start);
  Status begin_epoch(std::uint64_t epoch, std::uint64_t position);

  RankOptions rank_;
  OrderOptions order_options_;
  LastBatch last_batch_;
  std::uint64_t batch_;
  OrderState start_;

  std::uint64_t epoch_ = 0;
  std::uint64_t taken_ = 0;                  // of share_
  std::shared_ptr<const EpochOrder> order_;  // shared with the plans of its epoch
  std::optional<RankShare> share_;
};

}  // namespace stoker::loader
