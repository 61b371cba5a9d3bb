#include "train/trainer/learn/learner.h"

#include <cmath>
#include <utility>

#include "base/hashes/splitmix64.h"
#include "base/stopwatch.h"
#include "stoker/adaptive.h"
#include "stoker/sgd.h"
#include "train/loss/accuracy.h"
#include "train/loss/objective.h"
#include "train/trainer/learn/numerics.h"

namespace stoker::train {

using record::Phase;

namespace {

// From the initial loss scale of 2^16, this takes 32 consecutive overflows.
constexpr double kLeastScale = 1.0 / 65536;

constexpr std::string_view kCures =
    "a smaller train.optimizer.lr, a train.schedule.warmup, or train.clip_norm";

// Random choices of a pass depend only on seed, step, pass and rank, so a resumed training repeats them.
RandomSeeds seeds_for(std::uint64_t seed, std::int64_t step, std::int64_t pass, Rank rank) {
  const std::uint64_t common =
      splitmix64(splitmix64(seed) + static_cast<std::uint64_t>(step) * kSplitMix64Increment);
  const std::uint64_t own = splitmix64(common + static_cast<std::uint64_t>(pass) * kSplitMix64Increment) +
                            static_cast<std::uint64_t>(rank.value) * kSplitMix64Increment;
  return {common, splitmix64(own)};
}

// Adds the mean of `samples` more samples.
void add_to_mean(double& total, std::int64_t before, double mean, std::int64_t samples) {
  if (before == 0) {
    total = mean;
    return;
  }
  const auto a = static_cast<double>(before), b = static_cast<double>(samples);
  total = (total * a + mean * b) / (a + b);
}

// Shares the parameters with the model.
std::unique_ptr<Optimizer> make_optimizer(const NamedTensors& parameters,
                                          const job::OptimizerOptions& options) {
  const BiasAndNorm bias_and_norm =
      options.exclude_bias_and_norm ? BiasAndNorm::excluded : BiasAndNorm::included;
  const AdaptiveOptions adaptive{.beta2 = options.beta2,
                                 .epsilon = options.epsilon,
                                 .weight_decay = options.weight_decay,
                                 .bias_and_norm = bias_and_norm};
  switch (options.kind) {
    case job::OptimizerKind::adamw:
      return std::make_unique<AdamW>(parameters, adaptive);
    case job::OptimizerKind::lamb:
      return std::make_unique<Lamb>(parameters, adaptive);
    case job::OptimizerKind::lars:
      return std::make_unique<Lars>(
          parameters, LarsOptions{options.trust_coefficient, options.weight_decay, bias_and_norm});
    case job::OptimizerKind::sgd:
      break;
  }
  return std::make_unique<Sgd>(parameters,
                               SgdOptions{.kind = options.nesterov ? Momentum::nesterov : Momentum::classic,
                                          .weight_decay = options.weight_decay,
                                          .bias_and_norm = bias_and_norm});
}

}  // namespace

struct Learner::ForwardResult {
  at::Tensor rows;  ///< logits
  at::Tensor loss;
  MixedTargets targets;
};

Learner::Learner(const job::TrainOptions& train, Rank rank, Model& model, const BatchForm& form)
    : train_(train),
      rank_(rank),
      model_(model),
      form_(form),
      optimizer_(make_optimizer(model.state().parameters, train.optimizer)) {
  if (train.precision == job::Precision::fp16) scaler_.emplace();
  if (train.ema) ema_.emplace(model.state().parameters, *train.ema);
}

Result<Learner::ForwardResult> Learner::forward(DataParallel& parallel, loader::Batch& batch,
                                                const AccumulationStep& pass, std::int64_t step) {
  const RandomSeeds seeds = seeds_for(train_.seed, step, pass.index, rank_);
  STOKER_ASSIGN_OR_RETURN(tensors, tensors_of(batch, form_));
  ForwardResult result{.targets = {.labels = tensors.labels}};
  const MixupOptions mixing{.mixup = train_.mixup, .cutmix = train_.cutmix};
  STOKER_RETURN_IF_ERROR(mix(tensors.input, result.targets, mixing, splitmix64(seeds.own)));
  model_.reseed(seeds);
  STOKER_ASSIGN_OR_RETURN(logits, parallel.forward([&] {
    const Autocast autocast(train_.precision);
    return model_.forward(tensors.input);
  }));
  result.rows = rows_of(logits);
  result.loss = training_loss(result.rows, result.targets, train_.label_smoothing);
  return result;
}

Status Learner::forward_backward(DataParallel& parallel, Recorder& recorder, loader::Batch& batch,
                                 const AccumulationStep& pass, StepRow& row) {
  std::optional<DataParallel::NoSync> no_sync;
  if (pass.index + 1 < pass.count) no_sync.emplace(parallel);
  Stopwatch watch;
  double waited_s = parallel.waited_s();
  recorder.enter(Phase::forward);
  STOKER_ASSIGN_OR_RETURN(result, catch_exceptions(Code::internal, "loss",
                                                   [&] { return forward(parallel, batch, pass, row.step); }));
  const double waited_for_buffers_s = parallel.waited_s() - waited_s;
  row.communication_s += waited_for_buffers_s;
  row.forward_s += watch.lap() - waited_for_buffers_s;

  waited_s = parallel.waited_s();
  recorder.enter(Phase::backward);
  const at::Tensor& loss = result.loss;
  const at::Tensor share = pass.count == 1 ? loss : loss.div(static_cast<double>(pass.count));
  STOKER_RETURN_IF_ERROR(parallel.backward(scaler_ ? scaler_->scaled(share) : share));
  const double waited_for_gradients_s = parallel.waited_s() - waited_s;
  row.communication_s += waited_for_gradients_s;
  row.backward_s += watch.lap() - waited_for_gradients_s;

  return catch_exceptions(Code::internal, "loss", [&] {
    const std::int64_t samples = batch.count();
    const Correct correct =
        count_correct(scores_of(result.rows), labels_of(result.targets.labels), result.rows.size(1));
    const auto rows = static_cast<double>(result.rows.size(0));
    add_to_mean(row.loss, row.samples, loss.item<double>(), samples);
    add_to_mean(row.top1, row.samples, static_cast<double>(correct.top1) / rows, samples);
    add_to_mean(row.top5, row.samples, static_cast<double>(correct.top5) / rows, samples);
    row.samples += samples;
  });
}

// With a scaled loss, an overflowing step is skipped.
Status Learner::check_loss(const StepRow& row) const {
  if (scaler_ || std::isfinite(row.loss)) return {};
  return invalid("loss is {} at epoch {}, step {}", std::isnan(row.loss) ? "nan" : "inf", row.epoch + 1,
                 row.step)
      .cure("{}, then stoker resume (saved checkpoints are finite)", kCures);
}

Status Learner::update(DataParallel& parallel, const Rates& rates, StepRow& row) {
  const Stopwatch watch;
  row.lr = rates.lr;
  STOKER_RETURN_IF_ERROR(catch_exceptions(Code::internal, "optimizer", [&] {
    const bool is_finite = !scaler_ || scaler_->unscale(model_.state().parameters);
    if (is_finite) {
      if (train_.clip_norm) clip_grad_norm(model_.state().parameters, *train_.clip_norm);
      optimizer_->step(rates);
    }
    if (scaler_) scaler_->update();
    if (!is_finite)
      notice_ = format("step {}: skipped: gradients overflowed float16; loss scale is now {:.0f}", row.step,
                       scaler_->scale());
    parallel.zero_grad();
    if (ema_) ema_->update(row.step);
    row.optimizer_s = watch.seconds();
  }));
  if (!scaler_ || scaler_->scale() > kLeastScale) return {};
  return invalid("loss scale already at minimum: gradients overflowed float16 repeatedly, last in step {}",
                 row.step)
      .cure("train.precision: bf16, {}", kCures);
}

std::optional<std::string> Learner::notice() { return std::exchange(notice_, std::nullopt); }

NamedTensors Learner::state() const {
  NamedTensors state = optimizer_->state();
  if (ema_) {
    for (NamedTensor& item : ema_->state()) state.push_back(std::move(item));
  }
  if (scaler_) {
    for (NamedTensor& item : scaler_->state()) state.push_back(std::move(item));
  }
  return state;
}

std::unique_ptr<Ema::Scope> Learner::use_ema_weights() {
  return ema_ ? std::make_unique<Ema::Scope>(*ema_) : nullptr;
}

}  // namespace stoker::train
