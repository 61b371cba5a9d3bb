#include "train/trainer/learn/learner.h"

#include <cmath>
#include <utility>

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "base/hashes/splitmix64.h"
#include "base/stopwatch.h"
#include "stoker/adaptive.h"
#include "stoker/exceptions.h"
#include "stoker/sgd.h"
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

bool has_cycling_momentum(const job::TrainOptions& train) {
  return train.schedule.kind == job::ScheduleKind::one_cycle && train.schedule.cycle_momentum;
}

// Shares the parameters with the model.
std::unique_ptr<Optimizer> make_optimizer(const NamedTensors& parameters, const job::TrainOptions& train) {
  const job::OptimizerOptions& options = train.optimizer;
  // The bits of torch.optim's default on GPUs.
  const bool is_on_gpu = !parameters.empty() && !parameters.front().tensor.is_cpu();
  const OptimizerKernels kernels =
      train.deterministic && is_on_gpu ? OptimizerKernels::foreach : OptimizerKernels::automatic;
  const BiasAndNorm bias_and_norm =
      options.exclude_bias_and_norm ? BiasAndNorm::excluded : BiasAndNorm::included;
  const AdaptiveOptions adaptive{.beta2 = options.beta2,
                                 .epsilon = options.epsilon,
                                 .weight_decay = options.weight_decay,
                                 .bias_and_norm = bias_and_norm,
                                 .kernels = kernels};
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
                                          .bias_and_norm = bias_and_norm,
                                          .kernels = kernels});
}

}  // namespace

struct Learner::ForwardResult {
  at::Tensor rows;  ///< logits
  at::Tensor loss;
  MixedTargets targets;
};

Learner::Learner(const job::TrainOptions& train, Rank rank, Model& model, at::Device device)
    : train_(train),
      rank_(rank),
      model_(model),
      device_(device),
      optimizer_(make_optimizer(model.state().parameters, train)),
      metrics_(device) {
  if (train.precision == job::Precision::fp16) scaler_.emplace(65536, GradScaler::kGrowthSteps, device);
  if (train.ema) ema_.emplace(model.state().parameters, *train.ema);
  if (device.is_cpu()) return;
  const at::TensorOptions scalar = at::TensorOptions(at::kFloat).device(device);
  rates_.lr = at::zeros({}, scalar);
  if (has_cycling_momentum(train)) rates_.momentum = at::zeros({}, scalar);
  if (scaler_) rates_.overflowed = scaler_->overflowed();
}

void Learner::allow_graphs(const GraphSituation& situation) { graph_.emplace(train_, situation); }

Result<Learner::ForwardResult> Learner::forward(DataParallel& parallel, const BatchTensors& batch,
                                                const AccumulationStep& pass, std::int64_t step) {
  const RandomSeeds seeds = seeds_for(train_.seed, step, pass.index, rank_);
  ForwardResult result{.targets = {.labels = batch.labels}};
  const MixupOptions mixing{.mixup = train_.mixup, .cutmix = train_.cutmix};
  STOKER_RETURN_IF_ERROR(mix(batch.input, result.targets, mixing, splitmix64(seeds.own)));
  model_.reseed(seeds);
  STOKER_ASSIGN_OR_RETURN(logits, parallel.forward([&] {
    const Autocast autocast(train_.precision, device_);
    return model_.forward(batch.input);
  }));
  result.rows = rows_of(logits);
  result.loss = training_loss(result.rows, result.targets, train_.label_smoothing);
  return result;
}

Status Learner::forward_backward(DataParallel& parallel, Recorder& recorder, const DeviceBatch& batch,
                                 const AccumulationStep& pass, StepRow& row) {
  std::optional<DataParallel::NoSync> no_sync;
  if (pass.index + 1 < pass.count) no_sync.emplace(parallel);
  Stopwatch watch;
  double waited_s = parallel.waited_s();
  recorder.enter(Phase::forward);
  STOKER_ASSIGN_OR_RETURN(result, catch_exceptions(Code::internal, "loss", [&] {
                            return forward(parallel, batch.tensors, pass, row.step);
                          }));
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

  if (graph_ && pass.count == 1) graph_->count_eager(batch.tensors);
  return catch_exceptions(Code::internal, "loss", [&] {
    metrics_.add(row, {loss, result.rows, result.targets.labels, batch.samples});
  });
}

// With a scaled loss, an overflowing step is skipped.
Status Learner::check_loss(const StepRow& row) const {
  if (scaler_ || std::isfinite(row.loss)) return {};
  return invalid("loss is {} at epoch {}, step {}", std::isnan(row.loss) ? "nan" : "inf", row.epoch + 1,
                 row.step)
      .cure("{}, then stoker resume (saved checkpoints are finite)", kCures);
}

// On a GPU nothing is waited for, if the optimizer can.
void Learner::step_optimizer(const Rates& rates) {
  const bool reads_device = !device_.is_cpu() && (scaler_ || (graph_ && graph_->is_wanted()));
  if (reads_device && optimizer_->step(rates_)) return;
  if (graph_ && graph_->is_wanted()) {
    graph_->give_up();
    notice_ = format("steps are not captured as a CUDA graph: {} cannot be",
                     rates_.momentum.defined() ? "its cycling momentum (train.schedule.cycle_momentum)"
                                               : "train.optimizer.kind");
  }
  if (!scaler_ || scaler_->overflowed().item<float>() == 0) optimizer_->step(rates);
}

void Learner::update_weights(DataParallel& parallel, const Rates& rates, std::int64_t step) {
  const NamedTensors& parameters = model_.state().parameters;
  if (scaler_) scaler_->unscale(parameters);
  const bool is_skipped = scaler_ && device_.is_cpu() && scaler_->overflowed().item<float>() != 0;
  if (!is_skipped) {
    if (train_.clip_norm) clip_grad_norm(parameters, *train_.clip_norm);
    step_optimizer(rates);
  }
  if (scaler_) {
    scaler_->update();
    if (!device_.is_cpu()) metrics_.add_scale(scaler_->overflowed(), scaler_->scale_tensor());
  }
  parallel.zero_grad();
  if (ema_) ema_->update(step);
}

Status Learner::update(DataParallel& parallel, const Rates& rates, StepRow& row) {
  const Stopwatch watch;
  row.lr = rates.lr;
  STOKER_RETURN_IF_ERROR(catch_exceptions(Code::internal, "optimizer", [&] {
    set_device_rates(rates);
    update_weights(parallel, rates, row.step);
    row.optimizer_s = watch.seconds();
  }));
  if (!scaler_ || !device_.is_cpu()) return {};
  return check_scale(row, {scaler_->overflowed().item<float>() != 0, scaler_->scale()});
}

Status Learner::check_scale(const StepRow& row, const ScaleOutcome& outcome) {
  if (outcome.has_overflowed)
    notice_ = format("step {}: skipped: gradients overflowed float16; loss scale is now {:.0f}", row.step,
                     outcome.scale);
  if (outcome.scale > kLeastScale) return {};
  return invalid("loss scale already at minimum: gradients overflowed float16 repeatedly, last in step {}",
                 row.step)
      .cure("train.precision: bf16, {}", kCures);
}

// A kernel with the value as its argument: no copy from the host.
void Learner::set_device_rates(const Rates& rates) {
  if (device_.is_cpu()) return;
  const at::NoGradGuard no_grad;
  rates_.lr.fill_(rates.lr);
  if (rates_.momentum.defined()) rates_.momentum.fill_(rates.momentum);
  rates_.fixed_momentum = rates.momentum;
}

Status Learner::capture_body(DataParallel& parallel, const BatchTensors& batch, const Rates& rates,
                             StepRow& row) {
  STOKER_ASSIGN_OR_RETURN(result, forward(parallel, batch, {}, row.step));
  STOKER_RETURN_IF_ERROR(parallel.backward(scaler_ ? scaler_->scaled(result.loss) : result.loss));
  StepRow ignored;
  metrics_.add(ignored, {result.loss, result.rows, result.targets.labels, batch.input.size(0)});
  update_weights(parallel, rates, row.step);
  return {};
}

Result<bool> Learner::run_in_graph(DataParallel& parallel, const DeviceBatch& batch, const Rates& rates,
                                   StepRow& row) {
  if (!graph_ || !graph_->accepts(batch.tensors)) return false;
  const Stopwatch watch;
  const Status done = catch_exceptions(Code::internal, "CUDA graph", [&] {
    set_device_rates(rates);
    graph_->run(batch.tensors, [&](const BatchTensors& memory) {
      const Status captured = capture_body(parallel, memory, rates, row);
      if (!captured.ok()) throw StatusError(captured);
    });
  });
  if (!done.ok()) {
    if (parallel.has_peers())
      return Status(done).cure("train.cuda_graph: never");  // the peers' steps would no longer fit
    graph_->give_up();
    parallel.zero_grad();
    notice_ = format("steps are not captured as a CUDA graph: {}", done.message());
    return false;
  }
  row.lr = rates.lr;
  row.samples = batch.samples;
  row.forward_s = watch.seconds();
  return true;
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
