#include "torch/trainer/training.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include "base/stopwatch.h"
#include "torch/communication/advice.h"
#include "torch/data_parallel.h"
#include "torch/trainer/learn/learner.h"
#include "torch/trainer/learn/numerics.h"
#include "torch/trainer/learn/rate_plan.h"
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

std::string differences_text(const std::vector<std::string>& differences) {
  std::string text = "not as it was saved:";
  for (const std::string& one : differences) text += (text.back() == ':' ? " " : ", ") + one;
  return text;
}

// What a person calls a sample.
std::string_view unit_of(Input input) {
  if (input == Input::tokens) return "sequences";
  return input == Input::numbers ? "rows" : "img";
}

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
  Status run_step(data::Batch& first, StepRow& row);
  void say_what_holds();
  Result<EpochEnd> end_epoch();
  Result<EpochEnd> validate_and_record();
  std::int64_t orders_for_next_step();
  Status save();
  Status tell_of_published();
  Result<EpochSums> summed() const;
  void report_progress(const StepRow& row);
  void advise_on_exchanges();
  Result<Ending> finish(EpochEnd end);
  std::int64_t steps_of(std::uint64_t batches) const {
    return static_cast<std::int64_t>((batches + train_.accumulate - 1) / train_.accumulate);
  }
  Rates first_rates() const { return RatePlan(train_, {}).at(0); }
  std::int64_t steps_per_epoch() const { return steps_of(loader_->batches_per_epoch()); }

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
  BatchForm form_;
  std::optional<Learner> learner_;
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
  double waited_s_ = 0;   ///< of that for other ranks
  std::int64_t steps_here_ = 0;
};

Status Training::Loop::prepare() {
  set_up_numerics(train_);
  OK_OR_RETURN(recorder, Recorder::open(environment_, job_.record));
  recorder_ = std::move(recorder);
  RETURN_IF_ERROR(open_data());
  OK_OR_RETURN(saving, Saving::open(saving_options(job_), environment_));
  saving_ = std::move(saving);
  RETURN_IF_ERROR(caught(Code::internal, "model", [&] { return build_model(); }));
  RETURN_IF_ERROR(caught(Code::internal, "checkpoint", [&] { return restore_from_checkpoint(); }));
  // Without the memory the first save takes it; then it only lasts longer.
  const Status reserved = saving_.reserve(model_->state(), learner_->state());
  if (!reserved.ok()) voice_.warn(reserved.to_string());

  // The loader's threads decode the first batches while the ranks meet.
  std::optional<data::OrderState> resume;
  if (place_.step.value > 0) resume = place_.data;
  OK_OR_RETURN(loader,
               data::Loader::open(training_data_->source(), training_loader(train_, environment_), resume));
  loader_ = std::move(loader);
  if (!resume) place_.data = loader_->state();
  if (loader_->batches_per_epoch() == 0) {
    return invalid("train.drop_last: no batch is full (train.batch: {})", train_.batch);
  }
  rates_.emplace(train_, PlanFacts{steps_per_epoch(), environment_.world_size});
  say_what_holds();

  Rendezvous meeting = rendezvous(environment_, job_);
  meeting.trace = recorder_.trace();
  meeting.on_late = [this](std::string_view text) { voice_.warn(text); };
  OK_OR_RETURN(group, ProcessGroup::connect(meeting));
  group_ = std::move(group);
  NamedTensors buffers = model_->state().buffers;
  buffers.push_back({"orders", orders_});
  OK_OR_RETURN(parallel, DataParallel::wrap(*group_, model_->state().parameters, std::move(buffers),
                                            parallel_options(train_, *model_)));
  parallel_ = std::move(parallel);
  return {};
}

void Training::Loop::say_what_holds() {
  if (!is_first()) return;
  if (const std::string scaling = rates_->scaling_text(); !scaling.empty()) voice_.say(scaling);
  if (train_.accumulate > 1) {
    const auto world = static_cast<std::uint64_t>(environment_.world_size.value);
    voice_.say(format("{} samples a step: {} batches of {} on {} ranks (train.accumulate)",
                      world * train_.accumulate * train_.batch, train_.accumulate, train_.batch, world));
  }
  for (const std::string& line : without_effect(train_, environment_.world_size)) voice_.say(line);
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
  OK_OR_RETURN(columns, column_count(train_, *training_data_));
  OK_OR_RETURN(model, make_model(model_spec(train_, classes, columns)));
  const std::uint64_t world = static_cast<std::uint64_t>(environment_.world_size.value);
  const std::uint64_t share = (training_data_->samples() + world - 1) / world;
  if (!train_.drop_last && share % train_.batch == 1 && model->last_stage_size(train_.image.size) == 1) {
    return invalid(
               "train.batch: {} leaves one image for the last step of an epoch ({} of {} samples per rank), "
               "which "
               "batch norm cannot learn from",
               train_.batch, share, training_data_->samples())
        .cure("train.batch: {}", train_.batch > 2 ? train_.batch - 1 : train_.batch + 1);
  }
  model_ = std::move(model);
  form_ = {.input = model_->input(), .columns = train_.mlp.columns.size(), .vocabulary = classes};
  learner_.emplace(train_, environment_.rank, *model_, form_);
  // What a step may leave out has no state before its first use: then all of it is made now, so that each
  // checkpoint holds the same.
  const bool may_skip = train_.precision == job::Precision::fp16;  // whole steps, the first one too
  if (model_->leaves_out() || train_.find_unused_parameters || may_skip) learner_->make_state(first_rates());
  orders_ = at::zeros({1}, at::kLong);
  return {};
}

Status Training::Loop::restore_from_checkpoint() {
  if (environment_.resume.empty()) return {};
  learner_->make_state(first_rates());
  OK_OR_RETURN(restored, restore(environment_.resume, environment_, model_->state(), learner_->state(),
                                 saving_options(job_).hyper_parameters));
  place_ = restored.place;
  saving_.resumed_from(place_.step);
  if (!is_first()) place_.sums = {};
  voice_.say(
      format("resumed from {}: epoch {}, step {}", environment_.resume, place_.data.epoch + 1, place_.step));
  if (is_first() && !restored.differences.empty()) voice_.say(differences_text(restored.differences));
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
    group_->saw_step(row.step_s);
    RETURN_IF_ERROR(recorder_.step(row));
    report_progress(row);
    if ((orders & kStop) != 0) return EpochEnd::stopped;
    if (train_.steps && place_.step.value >= static_cast<std::int64_t>(*train_.steps))
      return EpochEnd::enough;
  }
}

Status Training::Loop::run_step(data::Batch& first, StepRow& row) {
  if (is_first()) orders_.mutable_data_ptr<std::int64_t>()[0] = orders_for_next_step();
  const std::uint64_t left = loader_->batches_left() + 1;
  const auto passes = static_cast<std::int64_t>(std::min<std::uint64_t>(train_.accumulate, left));
  std::vector<std::uint64_t> samples;
  std::optional<data::Batch> later;
  for (std::int64_t i = 0; i < passes; ++i) {
    if (i > 0) {
      const Stopwatch wait;
      recorder_.enter(Phase::data);
      OK_OR_RETURN(next, next_batch(*loader_, job_.timeouts.data));
      if (!next) return internal("the epoch ended in the middle of a step");
      later = std::move(next);
      row.data_s += wait.seconds();
    }
    data::Batch& batch = later ? *later : first;
    RETURN_IF_ERROR(learner_->pass(*parallel_, recorder_, batch, {i, passes}, row));
    samples.insert(samples.end(), batch.samples().begin(), batch.samples().end());
    place_.data = batch.after();
  }
  recorder_.enter(Phase::optimizer);
  RETURN_IF_ERROR(learner_->update(*parallel_, rates_->at(row.step - 1), row));
  if (const auto news = learner_->news(); news && is_first()) voice_.say(*news);
  place_.step = Step(row.step);
  const auto count = static_cast<double>(row.samples);
  own_sums_.loss += row.loss * count;
  own_sums_.top1 += row.top1 * count;
  own_sums_.samples += count;
  return recorder_.receipt(row, samples);
}

std::int64_t Training::Loop::orders_for_next_step() {
  std::int64_t orders = 0;
  const job::Every& every = job_.checkpoint.every;
  const auto step = static_cast<std::uint64_t>(place_.step.value) + 1;
  if (every.steps > 0 && step % every.steps == 0) orders |= kSave;
  if (every.time > Duration::zero() && since_save_.seconds() >= Seconds(every.time).count()) orders |= kSave;
  if (saving_.is_due(since_save_.seconds(), RealClock().wall())) orders |= kSave;
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
  const Status saved = caught(Code::internal, "checkpoint",
                              [&] { return saving_.save(model_->state(), learner_->state(), place); });
  since_save_ = {};
  if (!saved.ok()) voice_.warn(format("rank {}: checkpoint: {}", environment_.rank, saved.to_string()));
  return {};
}

Status Training::Loop::tell_of_published() {
  const auto times = saving_.published();
  if (const auto news = saving_.news(); news && is_first()) voice_.say(*news);
  if (!times) return {};
  if (const auto problem = saving_.local_problem())
    voice_.warn(format("rank {}: checkpoint.local: {}; straight to {}", environment_.rank, *problem,
                       printable(saving_.folder().string())));
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
  if ((every > 0 && ended % every == 0) || saving_.wants(place_.step)) RETURN_IF_ERROR(save());
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
    const auto lent = learner_->lend_validated();
    OK_OR_RETURN(scores, validate(*group_, *model_, *validation_data_,
                                  {validation_loader(train_, environment_), form_, train_.precision,
                                   job_.timeouts.data, [this] { return stop_.is_due(RealClock().wall()); }}));
    if (scores.interrupted) return EpochEnd::stopped;
    row.validation_s = watch.seconds();
    row.seconds += row.validation_s;
    saving_.saw_validation(place_.step, {scores.loss, scores.top1, scores.top5});
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
  waited_s_ += row.communication_s;
  steps_here_ += 1;
  if (!is_first() || train_.print_every == 0) return;
  stretch_.samples += row.samples;
  stretch_.loss_sum += row.loss * static_cast<double>(row.samples);
  stretch_.top1 += std::llround(row.top1 * static_cast<double>(row.samples));
  stretch_.seconds += row.step_s;
  stretch_.data_s += row.data_s;
  stretch_.communication_s += row.communication_s;
  const std::int64_t per_epoch = steps_per_epoch();
  const std::int64_t in_epoch = steps_of(loader_->batches_per_epoch() - loader_->batches_left());
  if (in_epoch % train_.print_every != 0 && in_epoch != per_epoch) return;
  std::int64_t last = train_.epochs * per_epoch;
  if (train_.steps) last = std::min(last, static_cast<std::int64_t>(*train_.steps));
  const double per_step_s = trained_s_ / static_cast<double>(steps_here_);
  voice_.progress(progress_line(
      {.epoch = row.epoch + 1,
       .epochs = train_.epochs,
       .step = in_epoch,
       .steps = per_epoch,
       .world_size = environment_.world_size.value,
       .unit = unit_of(form_.input),
       .seconds_left = per_step_s * static_cast<double>(std::max<std::int64_t>(0, last - row.step)),
       .stretch = stretch_}));
  stretch_ = {};
}

// Said once, at the end; a rank that leaves before is somebody else's word.
void Training::Loop::advise_on_exchanges() {
  constexpr std::int64_t kLeastSteps = 50;  // the first ones are not like the others
  if (environment_.world_size.value == 1 || steps_here_ < kLeastSteps) return;
  const auto steps = static_cast<double>(steps_here_);
  const auto told = group_->gather(facts_text({trained_s_ / steps, waited_s_ / steps}));
  if (!told.ok() || !is_first()) return;
  std::vector<ExchangeFacts> ranks;
  for (const std::string& text : *told) ranks.push_back(parse_facts(text));
  const bool is_compressed = train_.compress_gradients != job::GradientCompression::none;
  const std::string advice = advise(ranks, {parallel_->bucket_bytes(), is_compressed});
  if (!advice.empty()) voice_.say(advice);
}

Result<Ending> Training::Loop::finish(EpochEnd end) {
  if (end != EpochEnd::stopped) RETURN_IF_ERROR(save());
  recorder_.enter(Phase::checkpoint);
  RETURN_IF_ERROR(saving_.finish());
  RETURN_IF_ERROR(tell_of_published());
  if (end != EpochEnd::stopped) advise_on_exchanges();
  if (const Status traced = recorder_.finish_trace(); !traced.ok())
    voice_.warn(format("rank {}: record.trace: {}", environment_.rank, traced.to_string()));
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
  OK_OR_RETURN(resume, step_to_resume(saving_options(job), environment));
  if (environment.rank.value == 0 && !resume.told.empty()) voice.say(resume.told);
  RankEnvironment here = environment;
  here.resume = resume.folder;
  auto loop = std::make_unique<Loop>(job, here, signals, voice);
  RETURN_IF_ERROR(loop->prepare());
  return std::unique_ptr<Training>(new Training(std::move(loop)));
}

Result<Ending> Training::run() {
  auto ending = loop_->run();
  return ending;
}

}  // namespace stoker::torch
