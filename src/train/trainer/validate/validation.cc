#include "train/trainer/validate/validation.h"

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "stoker/exceptions.h"
#include "train/loss/accuracy.h"
#include "train/loss/device_accuracy.h"
#include "train/trainer/learn/batch_upload.h"
#include "train/trainer/learn/numerics.h"
#include "train/trainer/setup/datasets.h"

namespace stoker::train {

namespace {

enum ValidationSum { kLoss, kTop1, kTop5, kSamples, kInterrupted, kSums };

at::Tensor logits_of(Model& model, const at::Tensor& input, const ValidationOptions& options) {
  const Autocast autocast(options.precision, options.device);
  return model.forward(input);
}

// Sums of this rank. A GPU keeps its sums until all batches have been launched.
class ScoreSums {
 public:
  explicit ScoreSums(at::Device device) {
    if (!device.is_cpu()) on_device_ = at::zeros({kSamples}, at::TensorOptions(at::kDouble).device(device));
  }

  void add(const at::Tensor& rows, const DeviceBatch& batch) {
    const at::Tensor& labels = batch.tensors.labels;
    const at::Tensor loss = at::cross_entropy_loss(rows, labels, {}, at::Reduction::Sum);
    // A sequence is one sample with as many parts as tokens.
    const double parts = static_cast<double>(rows.size(0)) / static_cast<double>(batch.samples);
    samples_ += static_cast<double>(batch.samples);
    if (on_device_.defined()) {
      const at::Tensor own = at::cat({loss.to(at::kDouble).reshape({1}), correct_on_device(rows, labels)});
      on_device_.add_(own.div_(parts));
      return;
    }
    const Correct correct = count_correct(scores_of(rows), labels_of(labels), rows.size(1));
    on_host_[kLoss] += loss.item<double>() / parts;
    on_host_[kTop1] += static_cast<double>(correct.top1) / parts;
    on_host_[kTop5] += static_cast<double>(correct.top5) / parts;
  }

  void finish(double* sums) const {
    const at::Tensor there = on_device_.defined() ? on_device_.to(at::kCPU) : at::Tensor();
    for (int i = 0; i < kSamples; ++i)
      sums[i] = there.defined() ? there.const_data_ptr<double>()[i] : on_host_[i];
    sums[kSamples] = samples_;
  }

 private:
  at::Tensor on_device_;  ///< undefined on a CPU
  double on_host_[kSamples] = {};
  double samples_ = 0;
};

Status add_all(Model& model, const dataset::Dataset& dataset, const ValidationOptions& options,
               double* sums) {
  STOKER_ASSIGN_OR_RETURN(loader, loader::Loader::open(dataset.source(), options.loader));
  BatchUploader uploader(options.device, options.form);
  ScoreSums own(options.device);
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
    const Status added = catch_exceptions(Code::internal, "validation", [&]() -> Status {
      if (!*batch) {
        own.finish(sums);
        return {};
      }
      STOKER_ASSIGN_OR_RETURN(uploaded, uploader.upload(std::move(**batch)));
      own.add(rows_of(logits_of(model, uploaded.tensors.input, options)), uploaded);
      return {};
    });
    if (!added.ok() || !*batch) return added;
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
