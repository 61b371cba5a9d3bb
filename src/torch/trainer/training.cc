#include "torch/trainer/training.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>

#include "base/stopwatch.h"
#include "torch/data_parallel.h"
#include "torch/loss/accuracy.h"
#include "torch/trainer/batch_tensors_internal.h"
#include "torch/trainer/progress_line.h"
#include "torch/trainer/recorder.h"
#include "torch/trainer/saving.h"
#include "torch/trainer/setup.h"
#include "torch/trainer/validation.h"

namespace stoker::torch {

using record::Phase;

namespace {

// What rank 0 asks of all ranks for the step it is sent before. It travels with the batch-norm statistics
// that every forward pass takes from rank 0, so all ranks agree on the step without a collective of their
// own.
enum Order : std::int64_t { kSave = 1, kStop = 2 };

}  // namespace

class Training::Loop {
 public:
  Loop(const job::Job& job, const RankEnvironment& environment, const StopSignals& signals, Voice& voice)
      : job_(job),
        train_(*job.train),
        environment_(environment),
        voice_(voice),
        stop_(signals, environment.deadline) {}

  Status prepare();
  Result<Ending> run();

 private:
  enum class EpochEnd { complete, enough, stopped };

  bool is_first() const { return environment_.rank.value == 0; }
  Status open_data();
  Status build_model();
  Status restore_from_checkpoint();
  Result<EpochEnd> run_epoch();
  Status run_step(data::Batch& batch, StepRow& row);
  Status learn(data::Batch& batch, StepRow& row);
  Result<EpochEnd> end_epoch();
  Result<EpochEnd> validate_and_record();
  std::int64_t orders_for_next_step() const;
  Status save();
  Status tell_of_published();
  Result<EpochSums> summed() const;
  void report_progress(const StepRow& row);
  Result<Ending> finish(EpochEnd end);
  std::int64_t total_steps() const {
    return static_cast<std::int64_t>(train_.epochs * loader_->batches_per_epoch());
  }

  const job::Job job_;
  const job::TrainOptions& train_;
  const RankEnvironment environment_;
  Voice& voice_;
  StopRule stop_;
  Recorder recorder_;
  Saving saving_;
  std::optional<data::Dataset> training_data_;
  std::optional<data::Dataset> validation_data_;
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<Model> model_;
  std::optional<Sgd> sgd_;
  std::unique_ptr<DataParallel> parallel_;
  std::unique_ptr<data::Loader> loader_;
  std::optional<RatePlan> rates_;
  at::Tensor orders_;

  Place place_;         ///< after the last step; `sums` are those carried over from an earlier attempt
  EpochSums own_sums_;  ///< this rank's, of this epoch and attempt
  Stopwatch epoch_watch_;
  Stopwatch since_save_;
  Stretch stretch_;
  double trained_s_ = 0;  ///< in steps of this attempt
  std::int64_t steps_here_ = 0;
};

Status Training::Loop::prepare() {
  at::set_num_threads(static_cast<int>(std::max<std::uint32_t>(1, train_.threads)));
  OK_OR_RETURN(recorder, Recorder::open(environment_, job_.record));
  recorder_ = std::move(recorder);
  RETURN_IF_ERROR(open_data());
  OK_OR_RETURN(saving, Saving::open(job_, environment_));
  saving_ = std::move(saving);
  RETURN_IF_ERROR(caught(Code::internal, "model", [&] { return build_model(); }));
  RETURN_IF_ERROR(caught(Code::internal, "checkpoint", [&] { return restore_from_checkpoint(); }));

  // The loader's threads decode the first batches while the ranks meet.
  std::optional<data::OrderState> resume;
  if (place_.step.value > 0) resume = place_.data;
  OK_OR_RETURN(loader,
               data::Loader::open(training_data_->source(), training_loader(train_, environment_), resume));
  loader_ = std::move(loader);
  if (!resume) place_.data = loader_->state();
  rates_.emplace(train_, total_steps());

  OK_OR_RETURN(group, ProcessGroup::connect(rendezvous(environment_, job_.timeouts)));
  group_ = std::move(group);
  NamedTensors buffers = model_->state().buffers;
  buffers.push_back({"orders", orders_});
  OK_OR_RETURN(parallel, DataParallel::wrap(*group_, model_->state().parameters, std::move(buffers),
                                            {.gradients = Gradients::bucketed}));
  parallel_ = std::move(parallel);
  return {};
}

Status Training::Loop::open_data() {
  OK_OR_RETURN(training, open_dataset(job_, environment_, train_.training_data));
  training_data_.emplace(std::move(training));
  if (train_.validation_data && train_.validate_every > 0) {
    OK_OR_RETURN(validation, open_dataset(job_, environment_, *train_.validation_data));
    validation_data_.emplace(std::move(validation));
  }
  return {};
}

Status Training::Loop::build_model() {
  std::vector<NamedDataset> datasets{{train_.training_data, &*training_data_}};
  if (validation_data_) datasets.push_back({*train_.validation_data, &*validation_data_});
  OK_OR_RETURN(classes, class_count(train_, datasets));
  OK_OR_RETURN(model, make_model(model_spec(train_, classes)));
  const std::uint64_t world = static_cast<std::uint64_t>(environment_.world_size.value);
  const std::uint64_t share = (training_data_->samples() + world - 1) / world;
  if (share % train_.batch == 1 && model->last_stage_size(train_.image.size) == 1) {
    return invalid(
               "train.batch: {} leaves one image for the last step of an epoch ({} of {} samples per rank), "
               "which "
               "batch norm cannot learn from",
               train_.batch, share, training_data_->samples())
        .cure("train.batch: {}", train_.batch > 2 ? train_.batch - 1 : train_.batch + 1);
  }
  model_ = std::move(model);
  sgd_.emplace(model_->state().parameters, sgd_options(train_.optimizer));
  orders_ = at::zeros({1}, at::kLong);
  return {};
}

Status Training::Loop::restore_from_checkpoint() {
  if (environment_.resume.empty()) return {};
  const bool has_momentum = RatePlan(train_, 1).at(0).momentum != 0;
  if (has_momentum) sgd_->make_buffers();
  OK_OR_RETURN(place, restore(environment_.resume, environment_, *model_, *sgd_));
  place_ = place;
  saving_.resumed_from(place_.step);
  if (!is_first()) place_.sums = {};
  voice_.say(
      format("resumed from {}: epoch {}, step {}", environment_.resume, place_.data.epoch + 1, place_.step));
  return recorder_.resumed(
      {place_.step.value, static_cast<std::int64_t>(place_.data.epoch), environment_.resume});
}

Result<Ending> Training::Loop::run() {
  const auto epochs = static_cast<std::uint64_t>(train_.epochs);
  EpochEnd end = EpochEnd::complete;
  while (end == EpochEnd::complete && place_.data.epoch < epochs) {
    OK_OR_RETURN(epoch_end, run_epoch());
    end = epoch_end;
  }
  return finish(end);
}

Result<Training::Loop::EpochEnd> Training::Loop::run_epoch() {
  epoch_watch_ = {};
  own_sums_ = {};
  if (train_.steps && place_.step.value >= static_cast<std::int64_t>(*train_.steps)) return EpochEnd::enough;
  for (;;) {
    const Stopwatch whole;
    StepRow row;
    row.epoch = static_cast<std::int64_t>(place_.data.epoch);
    row.step = place_.step.value + 1;
    recorder_.at(row.epoch, row.step);
    recorder_.enter(Phase::data);
    OK_OR_RETURN(batch, next_batch(*loader_, job_.timeouts.data));
    if (!batch) return end_epoch();
    row.data_s = whole.seconds();
    RETURN_IF_ERROR(run_step(*batch, row));
    const std::int64_t orders = orders_.const_data_ptr<std::int64_t>()[0];
    if ((orders & (kSave | kStop)) != 0) {
      const Stopwatch stall;
      RETURN_IF_ERROR(save());
      row.checkpoint_s = stall.seconds();
    }
    RETURN_IF_ERROR(tell_of_published());
    row.step_s = whole.seconds();
    stop_.saw_step(row.step_s);
    RETURN_IF_ERROR(recorder_.step(row));
    report_progress(row);
    if ((orders & kStop) != 0) return EpochEnd::stopped;
    if (train_.steps && place_.step.value >= static_cast<std::int64_t>(*train_.steps))
      return EpochEnd::enough;
  }
}

Status Training::Loop::run_step(data::Batch& batch, StepRow& row) {
  row.samples = batch.count();
  if (is_first()) orders_.mutable_data_ptr<std::int64_t>()[0] = orders_for_next_step();
  RETURN_IF_ERROR(learn(batch, row));
  place_.step = Step(row.step);
  place_.data = batch.after();
  return recorder_.receipt(row, batch.samples());
}

// Forward, backward, optimizer: with their times, of which waiting for other ranks is taken out.
Status Training::Loop::learn(data::Batch& batch, StepRow& row) {
  const BatchTensors tensors(batch, train_.image.size);
  Stopwatch watch;
  double waited_s = parallel_->waited_s();
  recorder_.enter(Phase::forward);
  OK_OR_RETURN(logits, parallel_->forward([&] { return model_->forward(tensors.images); }));
  at::Tensor loss;
  RETURN_IF_ERROR(
      caught(Code::internal, "loss", [&] { loss = at::cross_entropy_loss(logits, tensors.labels); }));
  row.communication_s = parallel_->waited_s() - waited_s;
  row.forward_s = watch.lap() - row.communication_s;

  waited_s = parallel_->waited_s();
  recorder_.enter(Phase::backward);
  RETURN_IF_ERROR(parallel_->backward(loss));
  const double waited_for_gradients_s = parallel_->waited_s() - waited_s;
  row.communication_s += waited_for_gradients_s;
  row.backward_s = watch.lap() - waited_for_gradients_s;

  recorder_.enter(Phase::optimizer);
  const Rates rates = rates_->at(row.step - 1);
  row.lr = rates.lr;
  return caught(Code::internal, "optimizer", [&] {
    sgd_->step(rates);
    parallel_->zero_grad();
    row.optimizer_s = watch.lap();
    const double samples = static_cast<double>(row.samples);
    const Correct correct = count_correct(scores_of(logits.contiguous()), batch.labels(), logits.size(1));
    row.loss = loss.item<double>();
    row.top1 = static_cast<double>(correct.top1) / samples;
    row.top5 = static_cast<double>(correct.top5) / samples;
    own_sums_.loss += row.loss * samples;
    own_sums_.top1 += static_cast<double>(correct.top1);
    own_sums_.samples += samples;
  });
}

std::int64_t Training::Loop::orders_for_next_step() const {
  std::int64_t orders = 0;
  const job::Every& every = job_.checkpoint.every;
  const auto step = static_cast<std::uint64_t>(place_.step.value) + 1;
  if (every.steps > 0 && step % every.steps == 0) orders |= kSave;
  if (every.time > Duration::zero() && since_save_.seconds() >= Seconds(every.time).count()) orders |= kSave;
  if (stop_.is_due(RealClock().wall())) orders |= kStop;
  return orders;
}

Result<EpochSums> Training::Loop::summed() const {
  double sums[] = {place_.sums.loss + own_sums_.loss, place_.sums.top1 + own_sums_.top1,
                   place_.sums.samples + own_sums_.samples};
  RETURN_IF_ERROR(group_->sum(sums));
  return EpochSums{sums[0], sums[1], sums[2], place_.sums.seconds + epoch_watch_.seconds()};
}

// A checkpoint that cannot be written does not end the training: a later one may go through.
Status Training::Loop::save() {
  if (!saving_.is_on()) return {};
  recorder_.enter(Phase::checkpoint);
  Place place = place_;
  OK_OR_RETURN(sums, summed());
  place.sums = sums;
  const Status saved =
      caught(Code::internal, "checkpoint", [&] { return saving_.save(*model_, *sgd_, place); });
  since_save_ = {};
  if (!saved.ok()) voice_.warn(format("rank {}: checkpoint: {}", environment_.rank, saved.to_string()));
  return {};
}

Status Training::Loop::tell_of_published() {
  const auto times = saving_.published();
  if (!times) return {};
  stop_.saw_write(times->stall_s + times->write_s + times->commit_s);
  return recorder_.saved({times->step.value, static_cast<std::int64_t>(place_.data.epoch),
                          saving_.folder() / format("step-{}", times->step),
                          static_cast<std::int64_t>(times->bytes),
                          times->stall_s + times->write_s + times->commit_s, times->stall_s});
}

Result<Training::Loop::EpochEnd> Training::Loop::end_epoch() {
  OK_OR_RETURN(end, validate_and_record());
  if (end == EpochEnd::stopped) {
    RETURN_IF_ERROR(save());
    return end;
  }
  place_.sums = {};
  own_sums_ = {};
  const std::uint64_t ended = place_.data.epoch + 1;
  place_.data = loader_->state();
  const std::uint64_t every = job_.checkpoint.every.epochs;
  if (every > 0 && ended % every == 0) RETURN_IF_ERROR(save());
  return EpochEnd::complete;
}

Result<Training::Loop::EpochEnd> Training::Loop::validate_and_record() {
  OK_OR_RETURN(sums, summed());
  const double samples = std::max(1.0, sums.samples);
  EpochFacts facts{.epoch = static_cast<std::int64_t>(place_.data.epoch) + 1,
                   .epochs = train_.epochs,
                   .seconds = sums.seconds,
                   .train_loss = sums.loss / samples,
                   .train_top1 = sums.top1 / samples};
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  EpochRow row{.epoch = facts.epoch - 1,
               .step = place_.step.value,
               .train_loss = facts.train_loss,
               .train_top1 = facts.train_top1,
               .val_loss = kNone,
               .val_top1 = kNone,
               .val_top5 = kNone,
               .seconds = sums.seconds,
               .samples_per_s = sums.samples / std::max(1e-9, sums.seconds),
               .validation_s = kNone};
  const bool is_last = facts.epoch == facts.epochs;
  if (validation_data_ && (is_last || facts.epoch % train_.validate_every == 0)) {
    const Stopwatch watch;
    recorder_.at(row.epoch, row.step);
    recorder_.enter(Phase::validate);
    RETURN_IF_ERROR(parallel_->take_buffers());
    OK_OR_RETURN(scores, validate(*group_, *model_, *validation_data_,
                                  {validation_loader(train_, environment_), train_.image.size,
                                   job_.timeouts.data, [this] { return stop_.is_due(RealClock().wall()); }}));
    if (scores.interrupted) return EpochEnd::stopped;
    row.validation_s = watch.seconds();
    row.seconds += row.validation_s;
    facts.validated = true;
    row.val_loss = facts.val_loss = scores.loss;
    row.val_top1 = facts.val_top1 = scores.top1;
    row.val_top5 = facts.val_top5 = scores.top5;
  }
  RETURN_IF_ERROR(recorder_.epoch(row));
  if (is_first()) voice_.say(epoch_line(facts));
  return EpochEnd::complete;
}

void Training::Loop::report_progress(const StepRow& row) {
  trained_s_ += row.step_s;
  steps_here_ += 1;
  if (!is_first() || train_.print_every == 0) return;
  stretch_.samples += row.samples;
  stretch_.loss_sum += row.loss * static_cast<double>(row.samples);
  stretch_.top1 += std::llround(row.top1 * static_cast<double>(row.samples));
  stretch_.seconds += row.step_s;
  stretch_.data_s += row.data_s;
  stretch_.communication_s += row.communication_s;
  const auto per_epoch = static_cast<std::int64_t>(loader_->batches_per_epoch());
  const std::int64_t in_epoch = per_epoch - static_cast<std::int64_t>(loader_->batches_left());
  if (in_epoch % train_.print_every != 0 && in_epoch != per_epoch) return;
  std::int64_t last = total_steps();
  if (train_.steps) last = std::min(last, static_cast<std::int64_t>(*train_.steps));
  const double per_step_s = trained_s_ / static_cast<double>(steps_here_);
  voice_.progress(progress_line(
      {.epoch = row.epoch + 1,
       .epochs = train_.epochs,
       .step = in_epoch,
       .steps = per_epoch,
       .world_size = environment_.world_size.value,
       .seconds_left = per_step_s * static_cast<double>(std::max<std::int64_t>(0, last - row.step)),
       .stretch = stretch_}));
  stretch_ = {};
}

Result<Ending> Training::Loop::finish(EpochEnd end) {
  if (end != EpochEnd::stopped) RETURN_IF_ERROR(save());
  recorder_.enter(Phase::checkpoint);
  RETURN_IF_ERROR(saving_.finish());
  RETURN_IF_ERROR(tell_of_published());
  recorder_.enter(Phase::done);
  if (end != EpochEnd::stopped) return Ending::finished;
  if (is_first()) {
    voice_.say(format("stopped at epoch {} step {}: {}", place_.data.epoch + 1, place_.step, stop_.reason()));
  }
  return saving_.is_on() ? Ending::stopped_saved : Ending::stopped_unsaved;
}

Training::Training(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Training::~Training() = default;

Result<std::unique_ptr<Training>> Training::prepare(const job::Job& job, const RankEnvironment& environment,
                                                    const StopSignals& signals, Voice& voice) {
  auto loop = std::make_unique<Loop>(job, environment, signals, voice);
  RETURN_IF_ERROR(loop->prepare());
  return std::unique_ptr<Training>(new Training(std::move(loop)));
}

Result<Ending> Training::run() {
  auto ending = loop_->run();
  return ending;
}

}  // namespace stoker::torch
