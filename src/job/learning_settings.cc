#include "job/learning_settings.h"

#include <array>

namespace stoker::job {
namespace {

using config::bind;
using config::Setting;

// `Member` of the part of the job file with the helper's name.
template <auto Member>
consteval JobSetting optimizer(Setting setting) {
  return bind<&Job::train, &TrainOptions::optimizer, Member>(setting);
}
template <auto Member>
consteval JobSetting schedule(Setting setting) {
  return bind<&Job::train, &TrainOptions::schedule, Member>(setting);
}
template <auto Member>
consteval JobSetting train(Setting setting) {
  return bind<&Job::train, Member>(setting);
}

constexpr std::array kLearning = {
    optimizer<&OptimizerOptions::kind>(
        {.key = "train.optimizer.kind", .fallback = "sgd", .help = "Optimizer."}),
    optimizer<&OptimizerOptions::lr>(
        {.key = "train.optimizer.lr",
         .fallback = "0.1",
         .at_least = 0,
         .at_most = 1000,
         .help = "Learning rate; with a schedule, its peak. Required for every optimizer except sgd."}),
    optimizer<&OptimizerOptions::lr_scaling>(
        {.key = "train.optimizer.lr_scaling",
         .fallback = "none",
         .help = "Multiply the learning rate by the number of ranks (linear) or its square root (sqrt)."}),
    optimizer<&OptimizerOptions::momentum>({.key = "train.optimizer.momentum",
                                            .fallback = "0.9",
                                            .at_least = 0,
                                            .at_most = 1,
                                            .help = "Momentum of sgd and lars."}),
    optimizer<&OptimizerOptions::nesterov>(
        {.key = "train.optimizer.nesterov", .fallback = "false", .help = "Use Nesterov momentum with sgd."}),
    optimizer<&OptimizerOptions::weight_decay>(
        {.key = "train.optimizer.weight_decay",
         .fallback = "0.0001",
         .at_least = 0,
         .at_most = 1000,
         .help = "L2 penalty; with adamw and lamb decoupled from the gradient."}),
    optimizer<&OptimizerOptions::beta1>(
        {.key = "train.optimizer.beta1",
         .fallback = "0.9",
         .at_least = 0,
         .at_most = 0.999999,
         .help = "Decay rate of the running mean of gradients in adamw and lamb."}),
    optimizer<&OptimizerOptions::beta2>(
        {.key = "train.optimizer.beta2",
         .fallback = "0.999",
         .at_least = 0,
         .at_most = 0.999999,
         .help = "Decay rate of the running mean of squared gradients in adamw and lamb."}),
    optimizer<&OptimizerOptions::epsilon>({.key = "train.optimizer.epsilon",
                                           .fallback = "1e-08",
                                           .at_least = 0,
                                           .at_most = 1,
                                           .help = "Added to the denominator in adamw and lamb."}),
    optimizer<&OptimizerOptions::trust_coefficient>({.key = "train.optimizer.trust_coefficient",
                                                     .fallback = "0.001",
                                                     .at_least = 0,
                                                     .at_most = 1000,
                                                     .help = "Coefficient of the trust ratio of lars."}),
    optimizer<&OptimizerOptions::exclude_bias_and_norm>(
        {.key = "train.optimizer.exclude_bias_and_norm",
         .fallback = "false",
         .help = "Exclude biases and normalization parameters from weight decay, and with lamb and lars "
                 "from the trust ratio."}),

    schedule<&ScheduleOptions::kind>({.key = "train.schedule.kind",
                                      .fallback = "one-cycle",
                                      .help = "Schedule of the learning rate over all steps."}),
    schedule<&ScheduleOptions::warmup>(
        {.key = "train.schedule.warmup",
         .unset = "0.3 for one-cycle, else 0",
         .at_least = 0,
         .at_most = 1,
         .help = "Fraction of all steps in which the learning rate rises to its peak."}),
    schedule<&ScheduleOptions::start_divisor>(
        {.key = "train.schedule.start_divisor",
         .fallback = "25",
         .at_least = 1,
         .at_most = 1e12,
         .help = "The first learning rate is `lr` divided by this, if there is a warmup."}),
    schedule<&ScheduleOptions::end_divisor>(
        {.key = "train.schedule.end_divisor",
         .fallback = "10000",
         .at_least = 1,
         .at_most = 1e12,
         .help = "one-cycle: the last learning rate is the first divided by this."}),
    schedule<&ScheduleOptions::anneal>({.key = "train.schedule.anneal",
                                        .fallback = "cosine",
                                        .help = "one-cycle: shape of the rise and of the fall."}),
    schedule<&ScheduleOptions::cycle_momentum>(
        {.key = "train.schedule.cycle_momentum",
         .fallback = "false",
         .help = "one-cycle: cycle the momentum (or beta1) inversely to the learning rate; replaces the "
                 "optimizer's value."}),
    schedule<&ScheduleOptions::momentum_low>(
        {.key = "train.schedule.momentum_low",
         .fallback = "0.85",
         .at_least = 0,
         .at_most = 1,
         .help = "one-cycle: momentum at the peak of the learning rate."}),
    schedule<&ScheduleOptions::momentum_high>({.key = "train.schedule.momentum_high",
                                               .fallback = "0.95",
                                               .at_least = 0,
                                               .at_most = 1,
                                               .help = "one-cycle: momentum at the start and at the end."}),
    schedule<&ScheduleOptions::end_lr>({.key = "train.schedule.end_lr",
                                        .fallback = "0",
                                        .at_least = 0,
                                        .at_most = 1000,
                                        .help = "cosine: final learning rate."}),
    schedule<&ScheduleOptions::factor>(
        {.key = "train.schedule.factor",
         .fallback = "0.1",
         .at_least = 0,
         .at_most = 1,
         .help = "step: factor that each drop multiplies the learning rate by."}),
    schedule<&ScheduleOptions::drop_every>({.key = "train.schedule.drop_every",
                                            .fallback = "30",
                                            .at_least = 1,
                                            .at_most = 1e6,
                                            .help = "step: number of epochs between drops."}),
    schedule<&ScheduleOptions::drop_at>({.key = "train.schedule.drop_at",
                                         .unset = "every `drop_every` epochs",
                                         .at_least = 0,
                                         .at_most = 1e6,
                                         .help = "step: epochs of the drops in ascending order, instead of "
                                                 "`drop_every`; fractions are allowed."}),

    train<&TrainOptions::clip_norm>(
        {.key = "train.clip_norm",
         .unset = "no clipping",
         .at_least = 1e-12,
         .at_most = 1e12,
         .help = "Maximum norm of the gradient over all parameters; larger gradients are scaled down."}),
    train<&TrainOptions::ema>(
        {.key = "train.ema",
         .unset = "EMA off",
         .at_least = 0,
         .at_most = 0.9999999,
         .help = "Decay of the exponential moving average (EMA) of the weights; the EMA is validated and "
                 "stored in checkpoints."}),
    train<&TrainOptions::label_smoothing>(
        {.key = "train.label_smoothing",
         .fallback = "0",
         .at_least = 0,
         .at_most = 1,
         .help = "Fraction of each label's weight to spread over all classes in training."}),
    train<&TrainOptions::mixup>(
        {.key = "train.mixup",
         .fallback = "0",
         .at_least = 0,
         .at_most = 100,
         .help = "Train on mixtures of two images with shares drawn from Beta(this, this); 0 for never."}),
    train<&TrainOptions::cutmix>(
        {.key = "train.cutmix",
         .fallback = "0",
         .at_least = 0,
         .at_most = 100,
         .help = "Train on images with a box pasted from another image, its area drawn from Beta(this, "
                 "this); if mixup is set too, each batch uses one of them at random."}),
};

}  // namespace

std::span<const JobSetting> train_learning_settings() { return kLearning; }

}  // namespace stoker::job
