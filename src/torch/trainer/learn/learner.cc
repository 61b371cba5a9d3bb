#include "torch/trainer/learn/learner.h"

#include <cmath>
#include <utility>

#include "base/stopwatch.h"
#include "data/order/mix.h"
#include "torch/loss/accuracy.h"
#include "torch/loss/objective.h"
#include "torch/optim/adaptive.h"
#include "torch/optim/sgd.h"
#include "torch/trainer/learn/numerics.h"

namespace stoker::torch {

using record::Phase;

namespace {

// From 2^16, which the scale of the loss begins with, so far down take 32 steps that overflow one after
// another.
constexpr double kLeastScale = 1.0 / 65536;

constexpr std::string_view kCures =
    "a smaller train.optimizer.lr, a train.schedule.warmup, or train.clip_norm";

// All chance in a pass is a pure function of where it is, so that what was interrupted repeats itself.
Chance chance_of(std::uint64_t seed, std::int64_t step, std::int64_t pass, Rank rank) {
  const std::uint64_t common = data::mix(data::mix(seed) + static_cast<std::uint64_t>(step) * data::kGolden);
  const std::uint64_t own = data::mix(common + static_cast<std::uint64_t>(pass) * data::kGolden) +
                            static_cast<std::uint64_t>(rank.value) * data::kGolden;
  return {common, data::mix(own)};
}

// `mean` is of `samples` further ones.
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
  const Vectors vectors = options.spare_vectors ? Vectors::spared : Vectors::alike;
  const AdaptiveOptions adaptive{.beta2 = options.beta2,
                                 .epsilon = options.epsilon,
                                 .weight_decay = options.weight_decay,
                                 .vectors = vectors};
  switch (options.kind) {
    case job::OptimizerKind::adamw:
      return std::make_unique<AdamW>(parameters, adaptive);
    case job::OptimizerKind::lamb:
      return std::make_unique<Lamb>(parameters, adaptive);
    case job::OptimizerKind::lars:
      return std::make_unique<Lars>(parameters, LarsOptions{options.trust, options.weight_decay, vectors});
    case job::OptimizerKind::sgd:
      break;
  }
  return std::make_unique<Sgd>(parameters,
                               SgdOptions{.kind = options.nesterov ? Momentum::nesterov : Momentum::classic,
                                          .weight_decay = options.weight_decay,
                                          .vectors = vectors});
}

}  // namespace

struct Learner::Scored {
  at::Tensor rows;  ///< logits
  at::Tensor loss;
  Targets targets;
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

Result<Learner::Scored> Learner::forward(DataParallel& parallel, data::Batch& batch, const Pass& pass,
                                         std::int64_t step) {
  const Chance chance = chance_of(train_.seed, step, pass.index, rank_);
  OK_OR_RETURN(tensors, tensors_of(batch, form_));
  Scored scored{.targets = {.labels = tensors.labels}};
  const MixOptions mixing{.mixup = train_.mixup, .cutmix = train_.cutmix};
  RETURN_IF_ERROR(mix(tensors.input, scored.targets, mixing, data::mix(chance.own)));
  model_.draw(chance);
  OK_OR_RETURN(logits, parallel.forward([&] {
    const Autocast autocast(train_.precision);
    return model_.forward(tensors.input);
  }));
  scored.rows = rows_of(logits);
  scored.loss = training_loss(scored.rows, scored.targets, train_.label_smoothing);
  return scored;
}

Status Learner::pass(DataParallel& parallel, Recorder& recorder, data::Batch& batch, const Pass& pass,
                     StepRow& row) {
  std::optional<DataParallel::NoSync> no_sync;
  if (pass.index + 1 < pass.count) no_sync.emplace(parallel);
  Stopwatch watch;
  double waited_s = parallel.waited_s();
  recorder.enter(Phase::forward);
  OK_OR_RETURN(scored,
               caught(Code::internal, "loss", [&] { return forward(parallel, batch, pass, row.step); }));
  const double waited_for_buffers_s = parallel.waited_s() - waited_s;
  row.communication_s += waited_for_buffers_s;
  row.forward_s += watch.lap() - waited_for_buffers_s;

  waited_s = parallel.waited_s();
  recorder.enter(Phase::backward);
  const at::Tensor& loss = scored.loss;
  const at::Tensor share = pass.count == 1 ? loss : loss.div(static_cast<double>(pass.count));
  RETURN_IF_ERROR(parallel.backward(scaler_ ? scaler_->scaled(share) : share));
  const double waited_for_gradients_s = parallel.waited_s() - waited_s;
  row.communication_s += waited_for_gradients_s;
  row.backward_s += watch.lap() - waited_for_gradients_s;

  return caught(Code::internal, "loss", [&] {
    const std::int64_t samples = batch.count();
    const Correct correct =
        count_correct(scores_of(scored.rows), labels_of(scored.targets.labels), scored.rows.size(1));
    const auto rows = static_cast<double>(scored.rows.size(0));
    add_to_mean(row.loss, row.samples, loss.item<double>(), samples);
    add_to_mean(row.top1, row.samples, static_cast<double>(correct.top1) / rows, samples);
    add_to_mean(row.top5, row.samples, static_cast<double>(correct.top5) / rows, samples);
    row.samples += samples;
  });
}

// With a scaled loss, a step that overflows is left out.
Status Learner::check_loss(const StepRow& row) const {
  if (scaler_ || std::isfinite(row.loss)) return {};
  return invalid("loss is {} at epoch {} step {}", std::isnan(row.loss) ? "nan" : "inf", row.epoch + 1,
                 row.step)
      .cure("{}, then stoker resume: checkpoints hold finite weights", kCures);
}

Status Learner::update(DataParallel& parallel, const Rates& rates, StepRow& row) {
  const Stopwatch watch;
  row.lr = rates.lr;
  RETURN_IF_ERROR(caught(Code::internal, "optimizer", [&] {
    const bool is_finite = !scaler_ || scaler_->unscale(model_.state().parameters);
    if (is_finite) {
      if (train_.clip_norm) clip_gradients(model_.state().parameters, *train_.clip_norm);
      optimizer_->step(rates);
    }
    if (scaler_) scaler_->update();
    if (!is_finite)
      news_ = format("step {}: left out: gradients overflowed float16; the loss is scaled by {:.0f} now",
                     row.step, scaler_->scale());
    parallel.zero_grad();
    if (ema_) ema_->update(row.step);
    row.optimizer_s = watch.seconds();
  }));
  if (!scaler_ || scaler_->scale() > kLeastScale) return {};
  return invalid("loss scale already at minimum: gradients overflowed float16 in step after step up to {}",
                 row.step)
      .cure("train.precision: bf16, {}", kCures);
}

std::optional<std::string> Learner::news() { return std::exchange(news_, std::nullopt); }

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

std::unique_ptr<Ema::Lent> Learner::lend_validated() {
  return ema_ ? std::make_unique<Ema::Lent>(*ema_) : nullptr;
}

}  // namespace stoker::torch
