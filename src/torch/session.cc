#include "torch/session.h"

#include <limits>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/stopwatch.h"
#include "checkpoint/catalog.h"
#include "torch/trainer/environment.h"
#include "torch/trainer/learn/batch_tensors.h"
#include "torch/trainer/report/recorder.h"
#include "torch/trainer/saving.h"
#include "torch/trainer/setup/meeting_place.h"
#include "torch/trainer/stop.h"

namespace stoker::torch {

using record::Phase;

// Destroyed from the last member to the first: what uses the group before it.
struct Session::Parts {
  SessionOptions options;
  RankEnvironment environment;
  StopSignals signals;
  std::optional<StopRule> stop;
  Recorder recorder;
  Saving saving;
  std::unique_ptr<ProcessGroup> group;
  ModelState model;
  Optimizer* optimizer = nullptr;
  Place place;
  Stopwatch since_step;
  bool was_stopped = false;

  NamedTensors optimizer_state() const { return optimizer != nullptr ? optimizer->state() : NamedTensors(); }
  Result<Path> step_to_go_on_from() const;
};

// Without a launcher there is nobody to say that a run goes on: what lies in the folder does.
Result<Path> Session::Parts::step_to_go_on_from() const {
  const bool is_launched = !environment.run_id.empty() || !environment.resume.empty();
  if (is_launched || options.checkpoints.empty() || !path_exists(options.checkpoints))
    return environment.resume;
  auto found = checkpoint::latest_valid(options.checkpoints);
  if (!found.ok() && found.error().code() == Code::not_found) return Path();
  return found;
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  OK_OR_RETURN(environment, read_environment(own_variables()));
  parts->environment = environment;
  parts->stop.emplace(parts->signals, environment.deadline);
  OK_OR_RETURN(recorder, Recorder::open(environment, {.metrics = true}));
  parts->recorder = std::move(recorder);
  job::Timeouts timeouts;
  timeouts.start = std::chrono::minutes(2);
  timeouts.communication = std::chrono::minutes(10);
  OK_OR_RETURN(group, ProcessGroup::connect(rendezvous(environment, timeouts)));
  parts->group = std::move(group);
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

Rank Session::rank() const { return parts_->environment.rank; }
WorldSize Session::world_size() const { return parts_->environment.world_size; }
ProcessGroup& Session::group() { return *parts_->group; }
std::int64_t Session::steps() const { return parts_->place.step.value; }
int Session::exit_code() const { return parts_->was_stopped ? 75 : 0; }

Result<std::unique_ptr<DataParallel>> Session::begin(ModelState model, Optimizer* optimizer,
                                                     const Rates& first, const DataParallelOptions& options) {
  Parts& parts = *parts_;
  parts.model = std::move(model);
  parts.optimizer = optimizer;
  OK_OR_RETURN(resume, parts.step_to_go_on_from());
  parts.environment.resume = resume;
  OK_OR_RETURN(saving, Saving::open({.directory = parts.options.checkpoints,
                                     .name = parts.options.name,
                                     .keep = parts.options.keep},
                                    parts.environment));
  parts.saving = std::move(saving);
  if (!resume.empty()) {
    if (optimizer != nullptr) optimizer->make_state(first);
    OK_OR_RETURN(restored, restore(resume, parts.environment, parts.model, parts.optimizer_state()));
    const Place& place = restored.place;
    parts.place = place;
    parts.saving.resumed_from(place.step);
    RETURN_IF_ERROR(
        parts.recorder.resumed({place.step.value, static_cast<std::int64_t>(place.data.epoch), resume}));
  }
  return DataParallel::wrap(*parts.group, parts.model.parameters, parts.model.buffers, options);
}

Result<std::unique_ptr<data::Loader>> Session::load(const data::Dataset& dataset,
                                                    data::LoaderOptions options) {
  Parts& parts = *parts_;
  options.rank.rank = parts.environment.rank;
  options.rank.world = parts.environment.world_size;
  std::optional<data::OrderState> resume;
  if (parts.place.step.value > 0) resume = parts.place.data;
  OK_OR_RETURN(loader, data::Loader::open(dataset.source(), options, resume));
  parts.place.data = loader->state();
  parts.since_step = {};
  return std::move(loader);
}

Result<bool> Session::stepped(const data::Batch& batch, const Figures& figures) {
  Parts& parts = *parts_;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  StepRow row{.epoch = batch.epoch().value,
              .step = parts.place.step.value + 1,
              .samples = batch.count(),
              .loss = figures.loss,
              .top1 = figures.top1,
              .top5 = kUnknown,
              .lr = figures.lr};
  parts.place.step = Step(row.step);
  parts.place.data = batch.after();
  row.step_s = parts.since_step.lap();
  parts.stop->saw_step(row.step_s);
  parts.recorder.at(row.epoch, row.step);
  RETURN_IF_ERROR(parts.recorder.step(row));
  RETURN_IF_ERROR(parts.recorder.receipt(row, batch.samples()));

  double wants_stop[] = {parts.stop->is_due(RealClock().wall()) ? 1.0 : 0.0};
  RETURN_IF_ERROR(parts.group->sum(wants_stop));
  parts.was_stopped = wants_stop[0] > 0;
  const std::uint64_t every = parts.options.save_every;
  const bool is_due = every > 0 && static_cast<std::uint64_t>(row.step) % every == 0;
  if (parts.was_stopped || is_due) RETURN_IF_ERROR(save());
  return !parts.was_stopped;
}

Status Session::save() {
  Parts& parts = *parts_;
  if (!parts.saving.is_on()) return {};
  parts.recorder.enter(Phase::checkpoint);
  return caught(Code::internal, "checkpoint",
                [&] { return parts.saving.save(parts.model, parts.optimizer_state(), parts.place); });
}

Status Session::finish() {
  RETURN_IF_ERROR(save());
  RETURN_IF_ERROR(parts_->saving.finish());
  parts_->recorder.enter(Phase::done);
  return {};
}

at::Tensor image_tensor(data::Batch& batch) { return tensors_of(batch, {})->input; }
at::Tensor label_tensor(data::Batch& batch) { return tensors_of(batch, {})->labels; }

}  // namespace stoker::torch
