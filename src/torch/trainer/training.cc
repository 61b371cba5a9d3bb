#include "torch/trainer/training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "torch/communication/advice.h"
#include "torch/edge.h"
#include "torch/trainer/learn/numerics.h"
#include "torch/trainer/report/progress.h"
#include "torch/trainer/setup/datasets.h"
#include "torch/trainer/setup/setup.h"
#include "torch/trainer/validation.h"

namespace stoker::torch {

using record::Phase;

namespace {

// What rank 0 asks of all ranks for the step it is sent before. It travels with the batch-norm statistics
// that every forward pass takes from rank 0, so all ranks agree on the step without a collective of their
// own.
enum Order : std::int64_t { kSave = 1, kStop = 2 };

// What a person calls a sample.
std::string_view unit_of(Input input) {
  if (input == Input::tokens) return "sequences";
  return input == Input::numbers ? "rows" : "img";
}

// Whether another rank may be gone, or not answer.
bool is_of_the_others(const Status& error) {
  return error.code() == Code::unavailable || error.code() == Code::timeout;
}

}  // namespace

class Training::Loop {
 public:
  /// `signals` and `voice` must outlive it.
  Loop(const job::Job& job, const RankEnvironment& environment, const StopSignals& signals, Voice& voice,
       std::unique_ptr<Parts> parts)
      : job_(job),
        train_(*job_.train),
        environment_(environment),
        voice_(voice),
        stop_(signals, environment.deadline),
        parts_(std::move(parts)),
        place_(parts_->place),
        progress_(train_, environment_, unit_of(parts_->form.input), voice_),
        since_save_(parts_->begun) {}

  Result<Ending> run();
  void keep_what_is_handed_over(const Status& why);

 private:
  enum class EpochEnd { complete, enough, stopped };

  bool is_first() const { return environment_.rank.value == 0; }
  Result<Ending> run_epochs();
  Result<EpochEnd> run_epoch();
  Status run_step(data::Batch& first, const Rates& rates, StepRow& row);
  Result<EpochEnd> end_epoch();
  Result<EpochEnd> validate_and_record();
  bool is_validated(std::int64_t epoch) const;
  bool is_save_held_back() const;
  Result<Scores> validate_model(EpochRow& row);
  std::int64_t orders_for_next_step();
  std::int64_t steps_behind() const;
  bool has_enough_steps() const;
  Status save();
  void tell_of_published();
  void warn_of_records(const Status& written);
  Result<EpochSums> summed() const;
  void advise_on_exchanges();
  Result<Ending> finish(EpochEnd end);
  std::int64_t steps_per_epoch() const { return steps_of(train_, parts_->loader->batches_per_epoch()); }
  std::int64_t steps_of_epoch() const {
    return steps_of(train_, parts_->loader->batches_per_epoch() - parts_->loader->batches_left());
  }

  const job::Job job_;
  const job::TrainOptions& train_;
  const RankEnvironment environment_;
  Voice& voice_;
  StopRule stop_;
  const std::unique_ptr<Parts> parts_;

  Place place_;         ///< after the last step; `sums` are those carried over from an earlier attempt
  EpochSums own_sums_;  ///< this rank's, of this epoch and attempt
  Progress progress_;
  Stopwatch epoch_watch_;
  Stopwatch since_save_;
  bool lacks_records_ = false;
};

Result<Ending> Training::Loop::run() {
  auto ending = run_epochs();
  // Who waits for this rank should know why it goes.
  if (!ending.ok() && !is_of_the_others(ending.status())) parts_->group->abandon(ending.status().message());
  return ending;
}

Result<Ending> Training::Loop::run_epochs() {
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
  if (has_enough_steps() && parts_->loader->batches_left() > 0) return EpochEnd::enough;
  for (;;) {
    const Stopwatch whole;
    const std::int64_t behind = steps_behind();
    StepRow row;
    row.epoch = static_cast<std::int64_t>(place_.data.epoch);
    row.step = place_.step.value + 1;
    parts_->recorder.at(row.epoch, row.step);
    parts_->recorder.enter(Phase::data);
    OK_OR_RETURN(batch, next_batch(*parts_->loader, job_.timeouts.data));
    if (!batch) return end_epoch();
    row.data_s = whole.seconds();
    RETURN_IF_ERROR(run_step(*batch, parts_->rates->at(behind), row));
    const std::int64_t orders = parts_->orders.const_data_ptr<std::int64_t>()[0];
    if ((orders & kStop) != 0 || ((orders & kSave) != 0 && !is_save_held_back())) {
      const Stopwatch stall;
      RETURN_IF_ERROR(save());
      row.checkpoint_s = stall.seconds();
    }
    tell_of_published();
    row.step_s = whole.seconds();
    stop_.saw_step(row.step_s);
    parts_->group->saw_step(row.step_s);
    warn_of_records(parts_->recorder.step(row));
    progress_.step(row, steps_of_epoch(), steps_per_epoch());
    if ((orders & kStop) != 0) return EpochEnd::stopped;
    // With nothing left of the epoch, its end comes first.
    if (has_enough_steps() && parts_->loader->batches_left() > 0) return EpochEnd::enough;
  }
}

bool Training::Loop::has_enough_steps() const {
  return train_.steps && place_.step.value >= static_cast<std::int64_t>(*train_.steps);
}

// Steps of the whole training that are done, if all were such as now: what an earlier attempt did on another
// number of ranks, or with another batch, counts by the part of the data it took.
std::int64_t Training::Loop::steps_behind() const {
  const std::uint64_t batches = parts_->loader->batches_per_epoch() - parts_->loader->batches_left();
  return static_cast<std::int64_t>(place_.data.epoch) * steps_per_epoch() +
         static_cast<std::int64_t>(batches / train_.accumulate);
}

Status Training::Loop::run_step(data::Batch& first, const Rates& rates, StepRow& row) {
  if (is_first()) parts_->orders.mutable_data_ptr<std::int64_t>()[0] = orders_for_next_step();
  const std::uint64_t left = parts_->loader->batches_left() + 1;
  const auto passes = static_cast<std::int64_t>(std::min<std::uint64_t>(train_.accumulate, left));
  std::vector<std::uint64_t> samples;
  std::optional<data::Batch> later;
  for (std::int64_t i = 0; i < passes; ++i) {
    if (i > 0) {
      const Stopwatch wait;
      parts_->recorder.enter(Phase::data);
      OK_OR_RETURN(next, next_batch(*parts_->loader, job_.timeouts.data));
      if (!next) return internal("the epoch ended in the middle of a step");
      later = std::move(next);
      row.data_s += wait.seconds();
    }
    data::Batch& batch = later ? *later : first;
    RETURN_IF_ERROR(parts_->learner->pass(*parts_->parallel, parts_->recorder, batch, {i, passes}, row));
    samples.insert(samples.end(), batch.samples().begin(), batch.samples().end());
    place_.data = batch.after();
  }
  RETURN_IF_ERROR(parts_->learner->check_loss(row));
  parts_->recorder.enter(Phase::optimizer);
  RETURN_IF_ERROR(parts_->learner->update(*parts_->parallel, rates, row));
  if (const auto news = parts_->learner->news(); news && is_first()) voice_.say(*news);
  place_.step = Step(row.step);
  const auto count = static_cast<double>(row.samples);
  own_sums_.loss += row.loss * count;
  own_sums_.top1 += row.top1 * count;
  own_sums_.samples += count;
  warn_of_records(parts_->recorder.receipt(row, samples));
  return {};
}

// What cannot be written down does not end the training, and is said once.
void Training::Loop::warn_of_records(const Status& written) {
  if (written.ok() || lacks_records_) return;
  lacks_records_ = true;
  voice_.warn(
      format("rank {}: record: {}; the training goes on, and what it records from step {} on has gaps",
             environment_.rank, written.to_string(), place_.step));
}

std::int64_t Training::Loop::orders_for_next_step() {
  std::int64_t orders = 0;
  const job::Every& every = job_.checkpoint.every;
  const auto step = static_cast<std::uint64_t>(place_.step.value) + 1;
  if (every.steps > 0 && step % every.steps == 0) orders |= kSave;
  if (every.time > Duration::zero() && since_save_.seconds() >= Seconds(every.time).count()) orders |= kSave;
  if (parts_->saving.is_due(since_save_.seconds(), RealClock().wall())) orders |= kSave;
  if (stop_.is_due(RealClock().wall())) orders |= kStop;
  return orders;
}

Result<EpochSums> Training::Loop::summed() const {
  double sums[] = {place_.sums.loss + own_sums_.loss, place_.sums.top1 + own_sums_.top1,
                   place_.sums.samples + own_sums_.samples};
  RETURN_IF_ERROR(parts_->group->sum(sums));
  return EpochSums{sums[0], sums[1], sums[2], place_.sums.seconds + epoch_watch_.seconds()};
}

// A checkpoint that cannot be written does not end the training: a later one may go through.
Status Training::Loop::save() {
  if (!parts_->saving.is_on()) return {};
  parts_->recorder.enter(Phase::checkpoint);
  // They would push out older ones, from which the training could go on.
  const Status is_finite =
      caught(Code::internal, "checkpoint", [&] { return check_finite(parts_->model->state().all); });
  RETURN_IF_ERROR(Status(is_finite).with_context(format("step {}: not saved", place_.step)));
  Place place = place_;
  OK_OR_RETURN(sums, summed());
  place.sums = sums;
  const Status saved = caught(Code::internal, "checkpoint", [&] {
    return parts_->saving.save(parts_->model->state(), parts_->learner->state(), place);
  });
  since_save_ = {};
  if (!saved.ok()) voice_.warn(format("rank {}: checkpoint: {}", environment_.rank, saved.to_string()));
  return {};
}

void Training::Loop::tell_of_published() {
  const auto times = parts_->saving.published();
  if (const auto news = parts_->saving.news(); news && is_first()) voice_.say(*news);
  if (!times) return;
  if (const auto problem = parts_->saving.local_problem())
    voice_.warn(format("rank {}: checkpoint.local: {}; straight to {}", environment_.rank, *problem,
                       printable(parts_->saving.folder().string())));
  stop_.saw_write(times->stall_s + times->write_s + times->commit_s);
  warn_of_records(parts_->recorder.saved(
      {times->step.value, static_cast<std::int64_t>(place_.data.epoch),
       parts_->saving.folder() / format("step-{}", times->step), static_cast<std::int64_t>(times->bytes),
       times->stall_s + times->write_s + times->commit_s, times->stall_s}));
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
  place_.data = parts_->loader->state();
  const std::uint64_t every = job_.checkpoint.every.epochs;
  if ((every > 0 && ended % every == 0) || parts_->saving.wants(place_.step)) RETURN_IF_ERROR(save());
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
  if (is_validated(facts.epoch)) {
    OK_OR_RETURN(scores, validate_model(row));
    if (scores.interrupted) return EpochEnd::stopped;
    facts.validated = true;
    row.val_loss = facts.val_loss = scores.loss;
    row.val_top1 = facts.val_top1 = scores.top1;
    row.val_top5 = facts.val_top5 = scores.top5;
  }
  warn_of_records(parts_->recorder.epoch(row));
  if (is_first()) voice_.say(epoch_line(facts));
  return EpochEnd::complete;
}

// `epoch` counts from 1.
bool Training::Loop::is_validated(std::int64_t epoch) const {
  if (!parts_->validation_data) return false;
  const bool is_last = epoch == static_cast<std::int64_t>(train_.epochs) || has_enough_steps();
  return is_last || epoch % train_.validate_every == 0;
}

// Whether the save that is due behind this step waits for the validation that comes next, and is
// end_epoch()'s: a step is saved once, and what `keep_best` judges by must be in it.
bool Training::Loop::is_save_held_back() const {
  if (!parts_->saving.keeps_best() || parts_->loader->batches_left() > 0) return false;
  return is_validated(static_cast<std::int64_t>(place_.data.epoch) + 1);
}

// The time that it takes goes into the row.
Result<Scores> Training::Loop::validate_model(EpochRow& row) {
  const Stopwatch watch;
  parts_->recorder.at(row.epoch, row.step);
  parts_->recorder.enter(Phase::validate);
  RETURN_IF_ERROR(parts_->parallel->take_buffers());
  const auto lent = parts_->learner->lend_validated();
  OK_OR_RETURN(scores, validate(*parts_->group, *parts_->model, *parts_->validation_data,
                                {validation_loader(train_, environment_), parts_->form, train_.precision,
                                 job_.timeouts.data, [this] { return stop_.is_due(RealClock().wall()); }}));
  if (scores.interrupted) return scores;
  row.validation_s = watch.seconds();
  row.seconds += row.validation_s;
  parts_->saving.saw_validation(place_.step, {scores.loss, scores.top1, scores.top5});
  return scores;
}

// Said once, at the end; a rank that leaves before is somebody else's word.
void Training::Loop::advise_on_exchanges() {
  constexpr std::int64_t kLeastSteps = 50;  // the first ones are not like the others
  const Stretch& attempt = progress_.attempt();
  if (environment_.world_size.value == 1 || attempt.steps < kLeastSteps) return;
  const auto steps = static_cast<double>(attempt.steps);
  const auto told =
      parts_->group->gather(facts_text({attempt.seconds / steps, attempt.communication_s / steps}));
  if (!told.ok() || !is_first()) return;
  std::vector<ExchangeFacts> ranks;
  for (const std::string& text : *told) ranks.push_back(parse_facts(text));
  const bool is_compressed = train_.compress_gradients != job::GradientCompression::none;
  const std::string advice = advise(ranks, {parts_->parallel->bucket_bytes(), is_compressed});
  if (!advice.empty()) voice_.say(advice);
}

Result<Ending> Training::Loop::finish(EpochEnd end) {
  if (end != EpochEnd::stopped) RETURN_IF_ERROR(save());
  parts_->recorder.enter(Phase::checkpoint);
  RETURN_IF_ERROR(parts_->saving.finish());
  tell_of_published();
  if (end != EpochEnd::stopped) advise_on_exchanges();
  if (const Status traced = parts_->recorder.finish_trace(); !traced.ok())
    voice_.warn(format("rank {}: record.trace: {}", environment_.rank, traced.to_string()));
  parts_->recorder.enter(Phase::done);
  if (end != EpochEnd::stopped) return Ending::finished;
  if (is_first()) {
    voice_.say(format("stopped at epoch {} step {}: {}", place_.data.epoch + 1, place_.step, stop_.reason()));
  }
  return parts_->saving.is_on() ? Ending::stopped_saved : Ending::stopped_unsaved;
}

// A step is complete when every rank has written its part: with one that is gone that would never be.
void Training::Loop::keep_what_is_handed_over(const Status& why) {
  const auto step = parts_->saving.being_written();
  if (!step || is_of_the_others(why)) return;
  if (is_first())
    voice_.say(format("checkpoint step {}: being written; the training ends when it is", *step));
  const Status written = parts_->saving.wait();
  if (!written.ok()) voice_.warn(format("rank {}: checkpoint: {}", environment_.rank, written.to_string()));
}

Training::Training(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Training::~Training() = default;

Result<std::unique_ptr<Training>> Training::prepare(const job::Job& job, const RankEnvironment& environment,
                                                    const StopSignals& signals, Voice& voice) {
  OK_OR_RETURN(resume, step_to_resume(saving_options(job), environment));
  if (environment.rank.value == 0 && !resume.told.empty()) voice.say(resume.told);
  RankEnvironment here = environment;
  here.resume = resume.folder;
  OK_OR_RETURN(parts, set_up(job, here, voice));
  auto loop = std::make_unique<Loop>(job, here, signals, voice, std::move(parts));
  return std::unique_ptr<Training>(new Training(std::move(loop)));
}

Result<Ending> Training::run() { return loop_->run(); }
void Training::keep_what_is_handed_over(const Status& why) { loop_->keep_what_is_handed_over(why); }

}  // namespace stoker::torch
