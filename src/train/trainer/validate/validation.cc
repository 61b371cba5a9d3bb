#include "train/trainer/validate/validation.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/GradMode.h>

#include "stoker/exceptions.h"
#include "train/loss/accuracy.h"
#include "train/trainer/learn/numerics.h"
#include "train/trainer/setup/datasets.h"

namespace stoker::train {

namespace {

enum ValidationSum { kLoss, kTop1, kTop5, kSamples, kInterrupted, kSums };

at::Tensor logits_of(Model& model, const at::Tensor& input, job::Precision precision) {
  const Autocast autocast(precision);
  return model.forward(input);
}

Status add_batch(Model& model, loader::Batch& batch, const ValidationOptions& options, double* sums) {
  return catch_exceptions(Code::internal, "validation", [&]() -> Status {
    STOKER_ASSIGN_OR_RETURN(tensors, tensors_of(batch, options.form));
    const at::Tensor rows = rows_of(logits_of(model, tensors.input, options.precision));
    const at::Tensor loss = at::cross_entropy_loss(rows, tensors.labels, {}, at::Reduction::Sum);
    const Correct correct = count_correct(scores_of(rows), labels_of(tensors.labels), rows.size(1));
    // A sequence is one sample with as many parts as tokens.
    const double parts = static_cast<double>(rows.size(0)) / batch.count();
    sums[kLoss] += loss.item<double>() / parts;
    sums[kTop1] += static_cast<double>(correct.top1) / parts;
    sums[kTop5] += static_cast<double>(correct.top5) / parts;
    sums[kSamples] += batch.count();
    return {};
  });
}

Status add_all(Model& model, const dataset::Dataset& dataset, const ValidationOptions& options,
               double* sums) {
  STOKER_ASSIGN_OR_RETURN(loader, loader::Loader::open(dataset.source(), options.loader));
  for (;;) {
    if (options.should_interrupt()) {
      sums[kInterrupted] = 1;
      return {};
    }
    auto batch = next_batch(*loader, options.batch_timeout);
    if (!batch.ok()) {
      // Its threads may be in a read that never returns. Joining them would hide that.
      if (batch.error().code() == Code::timeout) (void)loader.release();
      return std::move(batch).error();
    }
    if (!*batch) return {};
    STOKER_RETURN_IF_ERROR(add_batch(model, **batch, options, sums));
  }
}

}  // namespace

Result<Scores> validate(ProcessGroup& group, Model& model, const dataset::Dataset& dataset,
                        const ValidationOptions& options) {
  double sums[kSums] = {};
  model.set_mode(Mode::evaluate);
  Status done;
  {
    const at::NoGradGuard no_grad;
    done = add_all(model, dataset, options, sums);
  }
  model.set_mode(Mode::train);
  STOKER_RETURN_IF_ERROR(std::move(done));
  STOKER_RETURN_IF_ERROR(group.all_reduce_sum(sums));
  Scores scores;
  scores.samples = static_cast<std::int64_t>(sums[kSamples]);
  scores.interrupted = sums[kInterrupted] > 0;
  const double samples = sums[kSamples] > 0 ? sums[kSamples] : 1;
  scores.loss = sums[kLoss] / samples;
  scores.top1 = sums[kTop1] / samples;
  scores.top5 = sums[kTop5] / samples;
  return scores;
}

}  // namespace stoker::train
