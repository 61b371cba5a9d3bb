#include "train/trainer/training.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "job/memory_error.h"
#include "stoker/exceptions.h"
#include "train/comm/advice.h"
#include "train/device/cuda_part.h"
#include "train/trainer/learn/numerics.h"
#include "train/trainer/report/progress.h"
#include "train/trainer/setup/datasets.h"
#include "train/trainer/setup/setup.h"
#include "train/trainer/validate/validation.h"

namespace stoker::train {

using record::Phase;

namespace {

// Flags from rank 0 for the current step. Each forward pass broadcasts them with the batch-norm buffers, so
// all ranks agree without an extra collective.
enum ControlFlag : std::int64_t { kSave = 1, kStop = 2 };

// Steps that a GPU may be behind. More would only delay metrics and errors.
constexpr std::size_t kStepsAhead = 2;

// Name of a sample.
std::string_view unit_of(Input input) {
  if (input == Input::tokens) return "sequences";
  return input == Input::numbers ? "rows" : "img";
}

// Whether a peer may have left or timed out.
bool is_peer_failure(const Status& error) {
  return error.code() == Code::unavailable || error.code() == Code::timeout;
}

}  // namespace

class Training::Loop {
 public:
  /// `signals` and `log` must outlive it.
  Loop(const job::Job& job, const RankEnvironment& environment, const StopSignals& signals, TrainerLog& log,
       std::unique_ptr<Parts> parts)
      : job_(job),
        train_(*job_.train),
        environment_(environment),
        log_(log),
        stop_(signals, environment.deadline),
        parts_(std::move(parts)),
        position_(parts_->position),
        progress_(train_, environment_, unit_of(parts_->form.input), log_),
        since_save_(parts_->begun) {}

  Result<TrainingOutcome> run();
  void flush_pending_checkpoint(const Status& why);

 private:
  enum class EpochEnd { complete, enough, stopped };

  bool is_rank0() const { return environment_.rank.value == 0; }
  Result<TrainingOutcome> run_epochs();
  Result<EpochEnd> run_epoch();
  Status run_step(loader::Batch first, const Rates& rates, StepRow& row);
  Status run_passes(loader::Batch first, const Rates& rates, StepRow& row);
  Status explain_step(Status status, const StepRow& row) const;
  Status settle(std::size_t pending);
  Status account(StepRow& row, PendingMetrics& metrics);
  Result<EpochEnd> end_epoch();
  Result<EpochEnd> validate_and_record();
  bool is_validated(std::int64_t epoch) const;
  bool is_save_deferred() const;
  Result<Scores> validate_model(EpochRow& row);
  std::int64_t next_control_flags();
  std::int64_t steps_done() const;
  bool has_reached_step_limit() const;
  Status save();
  void report_published();
  void warn_about_recording(const Status& written);
  Result<EpochSums> reduce_epoch_sums() const;
  void log_communication_advice();
  Result<TrainingOutcome> finish(EpochEnd end);
  std::int64_t steps_per_epoch() const { return steps_of(train_, parts_->loader->batches_per_epoch()); }
  std::int64_t steps_of_epoch() const {
    return steps_of(train_, parts_->loader->batches_per_epoch() - parts_->loader->batches_left());
  }

  const job::Job job_;
  const job::TrainOptions& train_;
  const RankEnvironment environment_;
  TrainerLog& log_;
  StopRule stop_;
  const std::unique_ptr<Parts> parts_;

  ResumePosition position_;  ///< after the last step; `sums` are from earlier attempts
  EpochSums own_sums_;       ///< of this rank in this epoch and attempt
  ProgressReporter progress_;
  Stopwatch epoch_watch_;
  Stopwatch since_save_;
  bool recording_failed_ = false;

  // Steps whose metrics may still be on a GPU, or that have not ended. On a CPU at most the current one.
  struct PendingStep {
    StepRow row;
    PendingMetrics metrics;
    std::int64_t in_epoch = 0;
    bool is_accounted = false;
    bool has_ended = false;
  };
  std::deque<PendingStep> pending_;
};

Result<TrainingOutcome> Training::Loop::run() {
  auto outcome = run_epochs();
  // Waiting peers must learn the reason.
  if (!outcome.ok() && !is_peer_failure(outcome.status())) parts_->group->abandon(outcome.status().message());
  return outcome;
}

Result<TrainingOutcome> Training::Loop::run_epochs() {
  const auto epochs = static_cast<std::uint64_t>(train_.epochs);
  EpochEnd end = EpochEnd::complete;
  while (end == EpochEnd::complete && position_.data.epoch < epochs) {
    STOKER_ASSIGN_OR_RETURN(epoch_end, run_epoch());
    end = epoch_end;
  }
  return finish(end);
}

Result<Training::Loop::EpochEnd> Training::Loop::run_epoch() {
  epoch_watch_ = {};
  own_sums_ = {};
  if (has_reached_step_limit() && parts_->loader->batches_left() > 0) return EpochEnd::enough;
  for (;;) {
    const Stopwatch whole;
    const std::int64_t behind = steps_done();
    StepRow row;
    row.epoch = static_cast<std::int64_t>(position_.data.epoch);
    row.step = position_.step.value + 1;
    parts_->recorder.at(row.epoch, row.step);
    parts_->recorder.enter(Phase::data);
    STOKER_ASSIGN_OR_RETURN(batch, next_batch(*parts_->loader, job_.timeouts.data));
    if (!batch) return end_epoch();
    row.data_s = whole.seconds();
    STOKER_RETURN_IF_ERROR(run_step(std::move(*batch), parts_->rates->at(behind), row));
    const std::int64_t control_flags = parts_->control_flags.const_data_ptr<std::int64_t>()[0];
    if ((control_flags & kStop) != 0 || ((control_flags & kSave) != 0 && !is_save_deferred())) {
      STOKER_RETURN_IF_ERROR(settle(0));
      const Stopwatch stall;
      STOKER_RETURN_IF_ERROR(save());
      row.checkpoint_s = stall.seconds();
    }
    report_published();
    row.step_s = whole.seconds();
    stop_.record_step_time(row.step_s);
    parts_->group->record_step_time(row.step_s);
    PendingStep& last = pending_.back();
    last.row.checkpoint_s = row.checkpoint_s;
    last.row.step_s = row.step_s;
    last.has_ended = true;
    STOKER_RETURN_IF_ERROR(settle(parts_->device.is_cpu() ? 0 : kStepsAhead));
    if ((control_flags & kStop) != 0) return EpochEnd::stopped;
    // With no batches left, end the epoch first.
    if (has_reached_step_limit() && parts_->loader->batches_left() > 0) return EpochEnd::enough;
  }
}

bool Training::Loop::has_reached_step_limit() const {
  return train_.steps && position_.step.value >= static_cast<std::int64_t>(*train_.steps);
}

// Steps done, in units of the current configuration: steps of an earlier attempt with a different number of
// ranks or batch size count by their share of the data.
std::int64_t Training::Loop::steps_done() const {
  const std::uint64_t batches = parts_->loader->batches_per_epoch() - parts_->loader->batches_left();
  return static_cast<std::int64_t>(position_.data.epoch) * steps_per_epoch() +
         static_cast<std::int64_t>(batches / train_.accumulate);
}

Status Training::Loop::run_step(loader::Batch first, const Rates& rates, StepRow& row) {
  if (is_rank0()) parts_->control_flags.mutable_data_ptr<std::int64_t>()[0] = next_control_flags();
  // With buffers on a GPU they have a separate broadcast, on the host.
  if (!parts_->device.is_cpu())
    STOKER_RETURN_IF_ERROR(parts_->group->broadcast_from_rank0(parts_->control_flags));
  STOKER_RETURN_IF_ERROR(explain_step(run_passes(std::move(first), rates, row), row));
  if (const auto notice = parts_->learner->notice(); notice && is_rank0()) log_.info(*notice);
  position_.step = Step(row.step);
  pending_.push_back({.row = row, .metrics = parts_->learner->take_metrics(), .in_epoch = steps_of_epoch()});
  return settle(parts_->device.is_cpu() ? 0 : kStepsAhead);
}

// libtorch's texts about memory and GPUs name no setting, and no step.
Status Training::Loop::explain_step(Status status, const StepRow& row) const {
  if (status.ok()) return status;
  const std::string_view text = status.message();
  const std::string device = parts_->device.str();
  if (job::is_out_of_memory(text))
    return job::step_memory_error(format("epoch {}, step {}", row.epoch + 1, row.step), device, train_, text);
  if (parts_->device.is_cpu() || text.find("CUDA error") == text.npos) return status;
  return unavailable("epoch {}, step {} or one of the {} before it: {}", row.epoch + 1, row.step, kStepsAhead,
                     text)
      .cure("CUDA_LAUNCH_BLOCKING=1 and train.cuda_graph: never name the operation");
}

// Metrics of the oldest steps, until `pending` steps are left without.
Status Training::Loop::settle(std::size_t pending) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    PendingStep& step = pending_[i];
    if (step.is_accounted) continue;
    if (pending_.size() - i <= pending && !step.metrics.is_ready()) break;
    step.is_accounted = true;
    STOKER_RETURN_IF_ERROR(account(step.row, step.metrics));
  }
  while (!pending_.empty() && pending_.front().is_accounted && pending_.front().has_ended) {
    const PendingStep& step = pending_.front();
    warn_about_recording(parts_->recorder.step(step.row));
    progress_.step(step.row, step.in_epoch, steps_per_epoch());
    pending_.pop_front();
  }
  return {};
}

Status Training::Loop::account(StepRow& row, PendingMetrics& metrics) {
  std::optional<ScaleOutcome> outcome;
  STOKER_RETURN_IF_ERROR(
      explain_step(catch_exceptions(Code::internal, "loss", [&] { outcome = metrics.finish(row); }), row));
  STOKER_RETURN_IF_ERROR(parts_->learner->check_loss(row));
  if (outcome) STOKER_RETURN_IF_ERROR(parts_->learner->check_scale(row, *outcome));
  const auto count = static_cast<double>(row.samples);
  own_sums_.loss += row.loss * count;
  own_sums_.top1 += row.top1 * count;
  own_sums_.samples += count;
  return {};
}

Status Training::Loop::run_passes(loader::Batch first, const Rates& rates, StepRow& row) {
  const std::uint64_t left = parts_->loader->batches_left() + 1;
  const auto passes = static_cast<std::int64_t>(std::min<std::uint64_t>(train_.accumulate, left));
  std::vector<std::uint64_t> samples;
  bool ran_in_graph = false;
  for (std::int64_t i = 0; i < passes; ++i) {
    if (i > 0) {
      const Stopwatch wait;
      parts_->recorder.enter(Phase::data);
      STOKER_ASSIGN_OR_RETURN(next, next_batch(*parts_->loader, job_.timeouts.data));
      if (!next) return internal("the epoch ended in the middle of a step");
      first = std::move(*next);
      row.data_s += wait.seconds();
    }
    samples.insert(samples.end(), first.samples().begin(), first.samples().end());
    position_.data = first.after();
    STOKER_ASSIGN_OR_RETURN(batch, catch_exceptions(Code::internal, "loss", [&] {
                              return parts_->uploader->upload(std::move(first));
                            }));
    if (passes == 1) {
      STOKER_ASSIGN_OR_RETURN(ran, parts_->learner->run_in_graph(*parts_->parallel, batch, rates, row));
      ran_in_graph = ran;
    }
    if (ran_in_graph) break;
    STOKER_RETURN_IF_ERROR(
        parts_->learner->forward_backward(*parts_->parallel, parts_->recorder, batch, {i, passes}, row));
  }
  if (!ran_in_graph) {
    if (parts_->device.is_cpu()) STOKER_RETURN_IF_ERROR(parts_->learner->check_loss(row));
    parts_->recorder.enter(Phase::optimizer);
    STOKER_RETURN_IF_ERROR(parts_->learner->update(*parts_->parallel, rates, row));
  }
  warn_about_recording(parts_->recorder.receipt(row, samples));
  return {};
}

// A failed write does not end the training, and is reported once.
void Training::Loop::warn_about_recording(const Status& written) {
  if (written.ok() || recording_failed_) return;
  recording_failed_ = true;
  log_.warn(format("rank {}: record: {}; training continues, but records are incomplete from step {} on",
                   environment_.rank, written.to_string(), position_.step));
}

std::int64_t Training::Loop::next_control_flags() {
  std::int64_t control_flags = 0;
  const job::SaveInterval& every = job_.checkpoint.every;
  const auto step = static_cast<std::uint64_t>(position_.step.value) + 1;
  if (every.steps > 0 && step % every.steps == 0) control_flags |= kSave;
  if (every.time > Duration::zero() && since_save_.seconds() >= Seconds(every.time).count())
    control_flags |= kSave;
  if (parts_->checkpoint_manager.is_due(since_save_.seconds(), RealClock().wall())) control_flags |= kSave;
  if (stop_.is_due(RealClock().wall())) control_flags |= kStop;
  return control_flags;
}

Result<EpochSums> Training::Loop::reduce_epoch_sums() const {
  double sums[] = {position_.sums.loss + own_sums_.loss, position_.sums.top1 + own_sums_.top1,
                   position_.sums.samples + own_sums_.samples};
  STOKER_RETURN_IF_ERROR(parts_->group->all_reduce_sum(sums));
  return EpochSums{sums[0], sums[1], sums[2], position_.sums.seconds + epoch_watch_.seconds()};
}

// A failed checkpoint does not end the training: a later one may succeed.
Status Training::Loop::save() {
  if (!parts_->checkpoint_manager.is_on()) return {};
  parts_->recorder.enter(Phase::checkpoint);
  // Invalid checkpoints would replace older ones that can be resumed.
  const Status is_finite = catch_exceptions(Code::internal, "checkpoint",
                                            [&] { return check_finite(parts_->model->state().all); });
  STOKER_RETURN_IF_ERROR(Status(is_finite).with_context(format("step {}: not saved", position_.step)));
  ResumePosition position = position_;
  STOKER_ASSIGN_OR_RETURN(sums, reduce_epoch_sums());
  position.sums = sums;
  const Status saved = catch_exceptions(Code::internal, "checkpoint", [&] {
    return parts_->checkpoint_manager.save(parts_->model->state(), parts_->learner->state(), position);
  });
  parts_->recorder.sync_later();
  since_save_ = {};
  if (!saved.ok()) log_.warn(format("rank {}: checkpoint: {}", environment_.rank, saved.to_string()));
  return {};
}

void Training::Loop::report_published() {
  const auto times = parts_->checkpoint_manager.published();
  if (const auto notice = parts_->checkpoint_manager.notice(); notice && is_rank0()) log_.info(*notice);
  if (!times) return;
  if (const auto problem = parts_->checkpoint_manager.local_error())
    log_.warn(format("rank {}: checkpoint.local: {}; writing directly to {}", environment_.rank, *problem,
                     printable(parts_->checkpoint_manager.folder().string())));
  stop_.record_write_time(times->stall_s + times->write_s + times->commit_s);
  warn_about_recording(
      parts_->recorder.saved({times->step.value, static_cast<std::int64_t>(position_.data.epoch),
                              parts_->checkpoint_manager.folder() / format("step-{}", times->step),
                              static_cast<std::int64_t>(times->bytes),
                              times->stall_s + times->write_s + times->commit_s, times->stall_s}));
}

Result<Training::Loop::EpochEnd> Training::Loop::end_epoch() {
  STOKER_RETURN_IF_ERROR(settle(0));
  STOKER_ASSIGN_OR_RETURN(end, validate_and_record());
  if (end == EpochEnd::stopped) {
    STOKER_RETURN_IF_ERROR(save());
    return end;
  }
  position_.sums = {};
  own_sums_ = {};
  const std::uint64_t ended = position_.data.epoch + 1;
  position_.data = parts_->loader->state();
  const std::uint64_t every = job_.checkpoint.every.epochs;
  if ((every > 0 && ended % every == 0) || parts_->checkpoint_manager.should_save(position_.step))
    STOKER_RETURN_IF_ERROR(save());
  return EpochEnd::complete;
}

Result<Training::Loop::EpochEnd> Training::Loop::validate_and_record() {
  STOKER_ASSIGN_OR_RETURN(sums, reduce_epoch_sums());
  const double samples = std::max(1.0, sums.samples);
  EpochStats facts{.epoch = static_cast<std::int64_t>(position_.data.epoch) + 1,
                   .epochs = train_.epochs,
                   .seconds = sums.seconds,
                   .train_loss = sums.loss / samples,
                   .train_top1 = sums.top1 / samples};
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  EpochRow row{.epoch = facts.epoch - 1,
               .step = position_.step.value,
               .train_loss = facts.train_loss,
               .train_top1 = facts.train_top1,
               .val_loss = kNone,
               .val_top1 = kNone,
               .val_top5 = kNone,
               .seconds = sums.seconds,
               .samples_per_s = sums.samples / std::max(1e-9, sums.seconds),
               .validation_s = kNone};
  if (is_validated(facts.epoch)) {
    STOKER_ASSIGN_OR_RETURN(scores, validate_model(row));
    if (scores.interrupted) return EpochEnd::stopped;
    facts.validated = true;
    row.val_loss = facts.val_loss = scores.loss;
    row.val_top1 = facts.val_top1 = scores.top1;
    row.val_top5 = facts.val_top5 = scores.top5;
  }
  warn_about_recording(parts_->recorder.epoch(row));
  if (is_rank0()) log_.info(epoch_line(facts));
  return EpochEnd::complete;
}

// `epoch` counts from 1.
bool Training::Loop::is_validated(std::int64_t epoch) const {
  if (!parts_->validation_data) return false;
  const bool is_last = epoch == static_cast<std::int64_t>(train_.epochs) || has_reached_step_limit();
  return is_last || epoch % train_.validate_every == 0;
}

// Whether a due save waits for the validation of this step and is left to end_epoch(): a step is saved once,
// and `keep_best` needs its metrics.
bool Training::Loop::is_save_deferred() const {
  if (!parts_->checkpoint_manager.keeps_best() || parts_->loader->batches_left() > 0) return false;
  return is_validated(static_cast<std::int64_t>(position_.data.epoch) + 1);
}

// Adds its time to the row.
Result<Scores> Training::Loop::validate_model(EpochRow& row) {
  const Stopwatch watch;
  parts_->recorder.at(row.epoch, row.step);
  parts_->recorder.enter(Phase::validate);
  STOKER_RETURN_IF_ERROR(parts_->parallel->sync_buffers());
  const auto ema_scope = parts_->learner->use_ema_weights();
  auto validated =
      validate(*parts_->group, *parts_->model, *parts_->validation_data,
               {validation_loader(train_, environment_, parts_->place), parts_->form, parts_->device,
                train_.precision, job_.timeouts.data, [this] { return stop_.is_due(RealClock().wall()); }});
  if (!validated.ok() && job::is_out_of_memory(validated.error().message()))
    return job::validation_memory_error(format("validation after epoch {}", row.epoch + 1),
                                        parts_->device.str(), train_, validated.error().message());
  STOKER_ASSIGN_OR_RETURN(scores, std::move(validated));
  if (scores.interrupted) return scores;
  row.validation_s = watch.seconds();
  row.seconds += row.validation_s;
  parts_->checkpoint_manager.record_validation(position_.step, {scores.loss, scores.top1, scores.top5});
  return scores;
}

// Runs once at the end. If a peer has left, its failure is reported elsewhere.
void Training::Loop::log_communication_advice() {
  constexpr std::int64_t kLeastSteps = 50;  // the first ones are slower
  const StepTotals& attempt = progress_.attempt();
  if (environment_.world_size.value == 1 || attempt.steps < kLeastSteps) return;
  const auto steps = static_cast<double>(attempt.steps);
  const auto gathered =
      parts_->group->all_gather(stats_text({attempt.seconds / steps, attempt.communication_s / steps}));
  if (!gathered.ok() || !is_rank0()) return;
  std::vector<CommunicationStats> ranks;
  for (const std::string& text : *gathered) ranks.push_back(parse_stats(text));
  const bool is_compressed = train_.compress_gradients != Compression::none;
  const std::string advice = communication_advice(ranks, {parts_->parallel->bucket_bytes(), is_compressed});
  if (!advice.empty()) log_.info(advice);
}

Result<TrainingOutcome> Training::Loop::finish(EpochEnd end) {
  STOKER_RETURN_IF_ERROR(settle(0));
  if (end != EpochEnd::stopped) STOKER_RETURN_IF_ERROR(save());
  parts_->recorder.enter(Phase::checkpoint);
  STOKER_RETURN_IF_ERROR(parts_->checkpoint_manager.finish());
  report_published();
  if (end != EpochEnd::stopped) log_communication_advice();
  if (const Status recorded = parts_->recorder.finish(); !recorded.ok())
    log_.warn(format("rank {}: {}", environment_.rank, recorded.to_string()));
  if (is_rank0() && !parts_->device.is_cpu())
    log_.info(gpu_memory_line(cuda_part()->peak_memory(parts_->device)));
  parts_->recorder.enter(Phase::done);
  if (end != EpochEnd::stopped) return TrainingOutcome::finished;
  if (is_rank0()) {
    log_.info(
        format("stopped at epoch {}, step {}: {}", position_.data.epoch + 1, position_.step, stop_.reason()));
  }
  return parts_->checkpoint_manager.is_on() ? TrainingOutcome::stopped_saved
                                            : TrainingOutcome::stopped_unsaved;
}

// A step is complete once every rank has written its share. With a failed rank it never would be.
void Training::Loop::flush_pending_checkpoint(const Status& why) {
  const auto step = parts_->checkpoint_manager.step_in_flight();
  if (!step || is_peer_failure(why)) return;
  if (is_rank0()) log_.info(format("checkpoint step {}: waiting until it is written before exit", *step));
  const Status written = parts_->checkpoint_manager.wait();
  if (!written.ok()) log_.warn(format("rank {}: checkpoint: {}", environment_.rank, written.to_string()));
}

Training::Training(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Training::~Training() = default;

Result<std::unique_ptr<Training>> Training::prepare(const job::Job& job, const RankEnvironment& environment,
                                                    const StopSignals& signals, TrainerLog& log) {
  STOKER_ASSIGN_OR_RETURN(resume, find_resume_step(checkpoint_manager_options(job), environment));
  if (environment.rank.value == 0 && !resume.notice.empty()) log.info(resume.notice);
  RankEnvironment here = environment;
  here.resume = resume.folder;
  STOKER_ASSIGN_OR_RETURN(parts, set_up(job, here, log));
  auto loop = std::make_unique<Loop>(job, here, signals, log, std::move(parts));
  return std::unique_ptr<Training>(new Training(std::move(loop)));
}

Result<TrainingOutcome> Training::run() { return loop_->run(); }
void Training::flush_pending_checkpoint(const Status& why) { loop_->flush_pending_checkpoint(why); }

}  // namespace stoker::train
