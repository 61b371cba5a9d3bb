#include "stoker/session.h"

#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/exit_code.h"
#include "base/stopwatch.h"
#include "checkpoint/read/step_reader.h"
#include "stoker/exceptions.h"
#include "train/device/device.h"
#include "train/session/agreed_restore.h"
#include "train/trainer/checkpoint_manager.h"
#include "train/trainer/environment.h"
#include "train/trainer/learn/batch_tensors.h"
#include "train/trainer/report/recorder.h"
#include "train/trainer/setup/rendezvous_setup.h"
#include "train/trainer/stop.h"

namespace stoker::train {

using record::Phase;

// Members are destroyed from last to first: users of the group before the group.
struct Session::Parts {
  TrainingSessionOptions options;
  RankEnvironment environment;
  StopSignals signals;
  std::optional<StopRule> stop;
  Recorder recorder;
  CheckpointManager checkpoint_manager;
  std::unique_ptr<ProcessGroup> group;
  ModelState model;
  Optimizer* optimizer = nullptr;
  ResumePosition position;
  Stopwatch since_step;
  bool was_stopped = false;

  NamedTensors optimizer_state() const { return optimizer != nullptr ? optimizer->state() : NamedTensors(); }
  Result<Path> resume(const Rates& first);
  Result<std::string> restore_here(const Path& folder, const Rates& first);
};

// Without a launcher, the checkpoint folder decides whether the run resumes. Returns the restored step; empty
// without one. Collective.
Result<Path> Session::Parts::resume(const Rates& first) {
  const bool is_launched = !environment.run_id.empty() || !environment.resume.empty();
  ResumeRequest request{.step = environment.resume, .directory = {}};
  if (!is_launched) request.directory = options.checkpoints;
  const auto gather = [&](const std::string& own) { return group->all_gather(own); };
  const auto restore_step = [&](const Path& folder) {
    return catch_exceptions(Code::internal, "checkpoint", [&] { return restore_here(folder, first); });
  };
  STOKER_ASSIGN_OR_RETURN(agreed, restore_agreed(gather, request, restore_step));
  // The session has no log, and a silent return to an older step would hide the damage.
  for (const checkpoint::SkippedStep& step : agreed.skipped) {
    const std::string line = format("skipped {}: {}\n", step.folder.filename(), step.why);
    if (environment.rank.value == 0) std::fputs(line.c_str(), stderr);
  }
  return agreed.folder;
}

// Restores this rank, and returns the name of the save.
Result<std::string> Session::Parts::restore_here(const Path& folder, const Rates& first) {
  STOKER_ASSIGN_OR_RETURN(manifest, checkpoint::read_step_manifest(folder));
  if (optimizer != nullptr) optimizer->make_state(first);
  STOKER_ASSIGN_OR_RETURN(restored, restore(folder, environment, model, optimizer_state()));
  position = restored.position;
  return manifest.save;
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const TrainingSessionOptions& options) {
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  STOKER_ASSIGN_OR_RETURN(environment, read_environment(process_environment()));
  parts->environment = environment;
  parts->stop.emplace(parts->signals, environment.deadline);
  STOKER_ASSIGN_OR_RETURN(recorder, Recorder::open(environment, {.metrics = true}));
  parts->recorder = std::move(recorder);
  job::Timeouts timeouts;
  timeouts.start = options.start_timeout;
  timeouts.communication = options.communication_timeout;
  RendezvousOptions rendezvous = rendezvous_options(environment, timeouts);
  rendezvous.on_straggler = [](std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  STOKER_ASSIGN_OR_RETURN(group, ProcessGroup::connect(rendezvous));
  parts->group = std::move(group);
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

Rank Session::rank() const { return parts_->environment.rank; }
WorldSize Session::world_size() const { return parts_->environment.world_size; }
ProcessGroup& Session::group() { return *parts_->group; }
at::Device Session::device() const {
  const HostPosition position{parts_->environment.local_rank, parts_->environment.gpus_per_rank};
  const auto chosen = choose_device(job::DeviceChoice::automatic, position, visible_gpus());
  return chosen.ok() ? chosen->device : at::Device(at::kCPU);
}
std::int64_t Session::steps() const { return parts_->position.step.value; }
int Session::exit_code() const {
  return parts_->was_stopped ? exit_code::kStoppedAfterCheckpoint : exit_code::kOk;
}

Result<std::unique_ptr<DataParallel>> Session::begin(ModelState model, Optimizer* optimizer,
                                                     const Rates& first, const DataParallelOptions& options) {
  Parts& parts = *parts_;
  parts.model = std::move(model);
  parts.optimizer = optimizer;
  STOKER_ASSIGN_OR_RETURN(resume, parts.resume(first));
  parts.environment.resume = resume;  // retention keeps it
  STOKER_ASSIGN_OR_RETURN(checkpoint_manager, CheckpointManager::open({.directory = parts.options.checkpoints,
                                                                       .name = parts.options.name,
                                                                       .keep_last = parts.options.keep_last},
                                                                      parts.environment));
  parts.checkpoint_manager = std::move(checkpoint_manager);
  if (!resume.empty()) {
    const ResumePosition& position = parts.position;
    parts.checkpoint_manager.resumed_from(position.step);
    STOKER_RETURN_IF_ERROR(parts.recorder.resumed(
        {position.step.value, static_cast<std::int64_t>(position.data.epoch), resume}));
  }
  if (!parts.model.parameters.empty())
    STOKER_RETURN_IF_ERROR(parts.group->use_device(parts.model.parameters.front().tensor.device()));
  return DataParallel::wrap(*parts.group, parts.model.parameters, parts.model.buffers, options);
}

Result<std::unique_ptr<loader::Loader>> Session::make_loader(const dataset::Dataset& dataset,
                                                             loader::LoaderOptions options) {
  Parts& parts = *parts_;
  options.rank.rank = parts.environment.rank;
  options.rank.world = parts.environment.world_size;
  std::optional<loader::OrderState> resume;
  if (parts.position.step.value > 0) resume = parts.position.data;
  STOKER_ASSIGN_OR_RETURN(loader, loader::Loader::open(dataset.source(), options, resume));
  parts.position.data = loader->state();
  parts.since_step = {};
  return std::move(loader);
}

Result<std::unique_ptr<loader::Loader>> Session::validation(const dataset::Dataset& dataset,
                                                            loader::LoaderOptions options) const {
  options.rank = {.rank = parts_->environment.rank,
                  .world = parts_->environment.world_size,
                  .remainder = loader::Remainder::exact};
  options.shuffle = Shuffle::none;
  options.last_batch = loader::LastBatch::keep;
  return loader::Loader::open(dataset.source(), options);
}

Result<bool> Session::record_step(const loader::Batch& batch, const StepMetrics& metrics) {
  Parts& parts = *parts_;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  StepRow row{.epoch = batch.epoch().value,
              .step = parts.position.step.value + 1,
              .samples = batch.count(),
              .loss = metrics.loss,
              .top1 = metrics.top1,
              .top5 = kUnknown,
              .lr = metrics.lr};
  parts.position.step = Step(row.step);
  parts.position.data = batch.after();
  row.step_s = parts.since_step.lap();
  parts.stop->record_step_time(row.step_s);
  parts.recorder.at(row.epoch, row.step);
  STOKER_RETURN_IF_ERROR(parts.recorder.step(row));
  STOKER_RETURN_IF_ERROR(parts.recorder.receipt(row, batch.samples()));

  double wants_stop[] = {parts.stop->is_due(RealClock().wall()) ? 1.0 : 0.0};
  STOKER_RETURN_IF_ERROR(parts.group->all_reduce_sum(wants_stop));
  parts.was_stopped = wants_stop[0] > 0;
  const std::uint64_t every = parts.options.save_every;
  const bool is_due = every > 0 && static_cast<std::uint64_t>(row.step) % every == 0;
  if (parts.was_stopped || is_due) STOKER_RETURN_IF_ERROR(save());
  return !parts.was_stopped;
}

Status Session::save() {
  Parts& parts = *parts_;
  if (!parts.checkpoint_manager.is_on()) return {};
  parts.recorder.enter(Phase::checkpoint);
  return catch_exceptions(Code::internal, "checkpoint", [&] {
    return parts.checkpoint_manager.save(parts.model, parts.optimizer_state(), parts.position);
  });
}

Status Session::finish() {
  STOKER_RETURN_IF_ERROR(save());
  STOKER_RETURN_IF_ERROR(parts_->checkpoint_manager.finish());
  parts_->recorder.enter(Phase::done);
  return {};
}

at::Tensor image_tensor(loader::Batch& batch) { return tensors_of(batch, {})->input; }
at::Tensor label_tensor(loader::Batch& batch) { return tensors_of(batch, {})->labels; }

}  // namespace stoker::train
