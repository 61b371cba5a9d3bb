#include "train/trainer/learn/metric_sums.h"

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "train/device/pinned_memory.h"
#include "train/loss/accuracy.h"
#include "train/loss/device_accuracy.h"
#include "train/trainer/learn/batch_tensors.h"

namespace stoker::train {

namespace {

enum SumIndex : std::int64_t { kLoss, kTop1, kTop5, kOverflowed, kScale, kSums };

// Adds the mean of `samples` more samples.
void add_to_mean(double& total, std::int64_t before, double mean, std::int64_t samples) {
  if (before == 0) {
    total = mean;
    return;
  }
  const auto a = static_cast<double>(before), b = static_cast<double>(samples);
  total = (total * a + mean * b) / (a + b);
}

}  // namespace

std::optional<ScaleOutcome> PendingMetrics::finish(StepRow& row) {
  if (!done_) return std::nullopt;
  done_->wait();
  const auto* const sums = sums_.const_data_ptr<double>();
  const auto samples = static_cast<double>(row.samples);
  row.loss = sums[kLoss] / samples;
  row.top1 = sums[kTop1] / samples;
  row.top5 = sums[kTop5] / samples;
  done_.reset();
  if (sums[kScale] == 0) return std::nullopt;
  return ScaleOutcome{sums[kOverflowed] != 0, sums[kScale]};
}

MetricSums::MetricSums(at::Device device) : device_(device) {
  if (!device.is_cpu()) sums_ = at::zeros({kSums}, at::TensorOptions(at::kDouble).device(device));
}

void MetricSums::add(StepRow& row, const PassMetrics& pass) {
  const at::NoGradGuard no_grad;
  const auto rows = static_cast<double>(pass.scores.size(0));
  if (device_.is_cpu()) {
    const Correct correct =
        count_correct(scores_of(pass.scores), labels_of(pass.labels), pass.scores.size(1));
    add_to_mean(row.loss, row.samples, pass.loss.item<double>(), pass.samples);
    add_to_mean(row.top1, row.samples, static_cast<double>(correct.top1) / rows, pass.samples);
    add_to_mean(row.top5, row.samples, static_cast<double>(correct.top5) / rows, pass.samples);
  } else {
    // A sequence is one sample with as many rows as tokens.
    const auto samples = static_cast<double>(pass.samples);
    const at::Tensor loss = pass.loss.detach().to(at::kDouble).mul(samples).reshape({1});
    const at::Tensor correct = correct_on_device(pass.scores.detach(), pass.labels).mul_(samples / rows);
    sums_.slice(0, kLoss, kTop5 + 1).add_(at::cat({loss, correct}));
  }
  row.samples += pass.samples;
}

void MetricSums::add_scale(const at::Tensor& overflowed, const at::Tensor& scale) {
  const at::NoGradGuard no_grad;
  sums_.slice(0, kOverflowed, kSums).copy_(at::cat({overflowed, scale}));
}

PendingMetrics MetricSums::take() {
  if (device_.is_cpu()) return {};
  const at::NoGradGuard no_grad;
  at::Tensor host = pinned_tensor({kSums}, at::kDouble, device_);
  host.copy_(sums_, /*non_blocking=*/true);
  StreamPoint done(device_);
  done.record();
  sums_.zero_();
  return {std::move(host), std::move(done)};
}

}  // namespace stoker::train
