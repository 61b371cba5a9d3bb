#include "loader/schedule.h"

#include <algorithm>

namespace stoker::loader {

OrderOptions order_of(const Contents& contents, const LoaderOptions& options) {
  return {.samples = contents.units(),
          .seed = options.seed,
          .shuffle = options.shuffle,
          .shards =
              options.shuffle == Shuffle::by_chunk ? contents.units_per_chunk() : contents.units_per_shard(),
          .window = options.window,
          .weights = options.weights,
          .mixture = options.mixture};
}

Result<Schedule> Schedule::create(OrderOptions order, const LoaderOptions& options,
                                  const std::optional<OrderState>& resume) {
  const std::uint64_t samples = order.samples;
  const OrderState start = resume.value_or(OrderState{.seed = options.seed, .samples = samples});
  if (start.samples != samples) {
    return invalid("loader: the state to resume belongs to a dataset of {} samples, this one has {}",
                   start.samples, samples);
  }
  if (start.seed != options.seed) {
    return invalid("loader: the state to resume has seed {}, this training has seed {}", start.seed,
                   options.seed);
  }
  Schedule schedule(std::move(order), options, start);
  STOKER_RETURN_IF_ERROR(schedule.begin_epoch(start.epoch, start.position));
  return schedule;
}

Schedule::Schedule(OrderOptions order, const LoaderOptions& options, const OrderState& start)
    : rank_(options.rank),
      order_options_(std::move(order)),
      last_batch_(options.last_batch),
      batch_(options.batch),
      start_(start) {}

void BatchPlan::list_samples() {
  samples.resize(count);
  if (slice) {
    order->list(*slice, samples);
  } else {
    order->list(begin, step, samples);
  }
  order = nullptr;
}

Status Schedule::begin_epoch(std::uint64_t epoch, std::uint64_t position) {
  STOKER_ASSIGN_OR_RETURN(share, RankShare::create(start_.samples, position, rank_));
  if (!order_ || (order_options_.shuffle != Shuffle::none && epoch != epoch_)) {
    order_.reset();  // before the new one, because it may be large
    STOKER_ASSIGN_OR_RETURN(order,
                            EpochOrder::create(order_options_, Epoch{static_cast<std::int64_t>(epoch)}));
    order_ = std::make_shared<const EpochOrder>(std::move(order));
  }
  share_ = share;
  epoch_ = epoch;
  taken_ = 0;
  return Status();
}

Status Schedule::next(BatchPlan& plan) {
  plan.count = 0;
  plan.order = nullptr;
  plan.epoch = Epoch{static_cast<std::int64_t>(epoch_)};
  plan.after = start_;
  const std::uint64_t left = share_->count() - taken_;
  const std::uint64_t count = std::min(left, batch_);
  if (count == 0 || (count < batch_ && last_batch_ == LastBatch::drop)) {
    plan.after.epoch = epoch_ + 1;
    plan.after.position = 0;
    return begin_epoch(epoch_ + 1, 0);
  }
  plan.count = count;
  plan.order = order_;
  plan.begin = share_->position(taken_);
  plan.step = share_->step();
  plan.slice.reset();
  if (order_options_.shuffle == Shuffle::by_chunk && rank_.world.value > 1)
    plan.slice = share_->slice(taken_, batch_);
  taken_ += count;
  plan.after.epoch = epoch_;
  plan.after.position = share_->position_after(taken_);
  return Status();
}

std::uint64_t Schedule::batches_from(std::uint64_t position) const {
  const std::uint64_t count = RankShare::create(start_.samples, position, rank_).value().count();
  return (count + (last_batch_ == LastBatch::keep ? batch_ - 1 : 0)) / batch_;
}

}  // namespace stoker::loader
