#include "train/trainer/setup/setup.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include "base/language/counted.h"
#include "job/memory_error.h"
#include "loader/advice.h"
#include "stoker/exceptions.h"
#include "train/device/cuda_part.h"
#include "train/device/device.h"
#include "train/device/pinned_memory.h"
#include "train/trainer/learn/numerics.h"
#include "train/trainer/setup/datasets.h"
#include "train/trainer/setup/rendezvous_setup.h"

namespace stoker::train {

namespace {

std::string differences_text(const std::vector<std::string>& differences) {
  std::string text = "differences from the checkpoint:";
  for (const std::string& one : differences) text += (text.back() == ':' ? " " : ", ") + one;
  return text;
}

// `columns` as from column_count().
ModelSpec model_spec(const job::TrainOptions& train, std::int64_t classes, std::int64_t columns) {
  ModelSpec spec{.name = std::string(job::to_text(train.model)), .classes = classes, .seed = train.seed};
  spec.image_size = train.image.size;
  if (train.file) spec.file = *train.file;
  spec.heads = train.heads;
  spec.drop = train.stochastic_depth;
  spec.gpt = {train.gpt.layers, train.gpt.heads, train.gpt.width, train.gpt.length};
  spec.mlp.push_back(columns);
  for (double width : train.mlp.hidden) spec.mlp.push_back(static_cast<std::int64_t>(width));
  return spec;
}

// Whether the training reaches the end of an epoch, and the last batch there has one sample.
bool reaches_a_batch_of_one(const job::TrainOptions& train, std::uint64_t samples_per_rank) {
  if (train.drop_last || samples_per_rank % train.batch != 1) return false;
  const std::uint64_t batches = samples_per_rank / train.batch + 1;
  const std::uint64_t steps = (batches + train.accumulate - 1) / train.accumulate;
  return !train.steps || *train.steps >= steps;
}

// Options of the gradient exchange for this model.
DataParallelOptions parallel_options(const job::TrainOptions& train, const Model& model) {
  DataParallelOptions options{.gradient_storage = GradientStorage::bucket_view};
  if (train.find_unused_parameters || model.may_skip_parameters())
    options.unused_parameters = UnusedParameters::find;
  if (train.sync_batch_norm) options.batch_norm_sync = BatchNormSync::all_ranks;
  options.compression = train.compress_gradients;
  options.bucket = train.bucket;
  options.first_bucket = std::min(options.first_bucket, train.bucket);
  return options;
}

// Options of `train` without effect here, one line each.
std::vector<std::string> ineffective_settings(const job::TrainOptions& train, WorldSize world_size,
                                              at::Device device) {
  std::vector<std::string> lines;
  const bool compresses = train.compress_gradients != Compression::none;
  if (world_size.value == 1 && compresses)
    lines.emplace_back("train.compress_gradients: no effect with one rank");
  if (world_size.value == 1 && train.sync_batch_norm)
    lines.emplace_back("train.sync_batch_norm: no effect with one rank");
  if (train.tf32 && device.is_cpu()) lines.emplace_back("train.tf32: no effect without a GPU");
  return lines;
}

class Setup {
 public:
  Setup(const job::Job& job, const RankEnvironment& environment, TrainerLog& log)
      : job_(job), train_(*job.train), environment_(environment), log_(log) {}

  Result<std::unique_ptr<Parts>> run();

 private:
  bool is_rank0() const { return environment_.rank.value == 0; }
  Status open_device();
  Status open_data();
  Status build_model();
  Status restore_from_checkpoint();
  Status open_loader();
  void log_settings();
  Status connect();
  Rates first_rates() const { return RatePlan(train_, {}).at(0); }

  const job::Job& job_;
  const job::TrainOptions& train_;
  const RankEnvironment& environment_;
  TrainerLog& log_;
  std::unique_ptr<Parts> parts_ = std::make_unique<Parts>();
};

Result<std::unique_ptr<Parts>> Setup::run() {
  configure_numerics(train_);
  STOKER_ASSIGN_OR_RETURN(recorder, Recorder::open(environment_, job_.record));
  parts_->recorder = std::move(recorder);
  STOKER_RETURN_IF_ERROR(open_data());
  STOKER_RETURN_IF_ERROR(catch_exceptions(Code::unavailable, "train.device", [&] { return open_device(); }));
  STOKER_ASSIGN_OR_RETURN(checkpoint_manager,
                          CheckpointManager::open(checkpoint_manager_options(job_), environment_));
  parts_->checkpoint_manager = std::move(checkpoint_manager);
  Status built = catch_exceptions(Code::internal, "model", [&] { return build_model(); });
  if (!built.ok() && job::is_out_of_memory(built.message()))
    built = job::model_memory_error(parts_->device.str(), built.message());
  STOKER_RETURN_IF_ERROR(std::move(built));
  STOKER_RETURN_IF_ERROR(
      catch_exceptions(Code::internal, "checkpoint", [&] { return restore_from_checkpoint(); }));
  // Without this the first save allocates the memory and takes longer.
  const Status reserved =
      parts_->checkpoint_manager.reserve(parts_->model->state(), parts_->learner->state());
  if (!reserved.ok()) log_.warn(reserved.to_string());
  // The loader's threads decode the first batches during the rendezvous.
  STOKER_RETURN_IF_ERROR(open_loader());
  log_settings();
  STOKER_RETURN_IF_ERROR(connect());
  return std::move(parts_);
}

Status Setup::open_data() {
  STOKER_ASSIGN_OR_RETURN(training, open_dataset(job_, environment_, train_.training_data));
  parts_->training_data.emplace(std::move(training));
  if (train_.validation_data && train_.validate_every > 0) {
    STOKER_ASSIGN_OR_RETURN(validation, open_dataset(job_, environment_, *train_.validation_data));
    parts_->validation_data.emplace(std::move(validation));
  }
  const auto small = loader::check_chunk_cache(parts_->training_data->source(), train_.chunk_cache);
  if (is_rank0() && small) {
    log_.warn(format("data.{}: {} (train.chunk_cache)\n  try: train: {{chunk_cache: {}}}",
                     train_.training_data, small->message.english(), to_text(small->recommended)));
  }
  return {};
}

// Before the model is built: its tensors then need not move between streams.
Status Setup::open_device() {
  if (train_.device == job::DeviceChoice::cpu) return {};
  const HostPosition position{environment_.local_rank, environment_.gpus_per_rank};
  STOKER_ASSIGN_OR_RETURN(chosen, choose_device(train_.device, position, visible_gpus()));
  if (is_rank0() && !chosen.notice.empty()) log_.info(chosen.notice);
  parts_->device = chosen.device;
  if (chosen.device.is_cpu()) return {};
  if (is_rank0())
    log_.info(format("training on {} ({})", chosen.device.str(), cuda_part()->description(chosen.device)));
  parts_->stream.emplace(new_stream(chosen.device));
  parts_->place = {true, pinned_batches(chosen.device)};
  return {};
}

Status Setup::build_model() {
  std::vector<NamedDataset> datasets{{train_.training_data, &*parts_->training_data}};
  if (parts_->validation_data) datasets.push_back({*train_.validation_data, &*parts_->validation_data});
  STOKER_ASSIGN_OR_RETURN(classes, class_count(train_, datasets));
  STOKER_ASSIGN_OR_RETURN(columns, column_count(train_, *parts_->training_data));
  STOKER_ASSIGN_OR_RETURN(model, make_model(model_spec(train_, classes, columns)));
  const std::uint64_t world = static_cast<std::uint64_t>(environment_.world_size.value);
  const std::uint64_t share = (parts_->training_data->samples() + world - 1) / world;
  if (reaches_a_batch_of_one(train_, share) && model->last_stage_size(train_.image.size) == 1) {
    return invalid(
               "train.batch: {} leaves one image for the last step of an epoch ({} of {} samples per rank), "
               "which "
               "batch norm cannot learn from",
               train_.batch, share, parts_->training_data->samples())
        .cure("train.batch: {}", train_.batch > 2 ? train_.batch - 1 : train_.batch + 1);
  }
  parts_->model = std::move(model);
  // Every device starts with the random weights of the CPU.
  if (!parts_->device.is_cpu()) move_to(parts_->model->state(), parts_->device, train_.channels_last);
  parts_->form = {
      .input = parts_->model->input(), .columns = train_.mlp.columns.size(), .vocabulary = classes};
  parts_->learner.emplace(train_, environment_.rank, *parts_->model, parts_->device);
  parts_->uploader = std::make_unique<BatchUploader>(parts_->device, parts_->form);
  // Parameters that a step may skip have no state before their first use. Creating all state now gives every
  // checkpoint the same tensors.
  const bool may_skip = train_.precision == job::Precision::fp16;  // whole steps, the first one too
  if (parts_->model->may_skip_parameters() || train_.find_unused_parameters || may_skip)
    parts_->learner->make_state(first_rates());
  parts_->control_flags = at::zeros({1}, at::kLong);
  return {};
}

Status Setup::restore_from_checkpoint() {
  if (environment_.resume.empty()) return {};
  parts_->learner->make_state(first_rates());
  STOKER_ASSIGN_OR_RETURN(
      restored, restore(environment_.resume, environment_, parts_->model->state(), parts_->learner->state(),
                        checkpoint_manager_options(job_).hyper_parameters));
  parts_->position = restored.position;
  parts_->checkpoint_manager.resumed_from(parts_->position.step);
  if (!is_rank0()) parts_->position.sums = {};
  log_.info(format("resumed from {}: epoch {}, step {}", environment_.resume, parts_->position.data.epoch + 1,
                   parts_->position.step));
  if (is_rank0() && !restored.differences.empty()) log_.info(differences_text(restored.differences));
  const Status recorded =
      parts_->recorder.resumed({parts_->position.step.value,
                                static_cast<std::int64_t>(parts_->position.data.epoch), environment_.resume});
  if (!recorded.ok()) log_.warn(format("record: {}", recorded.to_string()));
  return {};
}

Status Setup::open_loader() {
  std::optional<loader::OrderState> resume;
  if (parts_->position.step.value > 0) resume = parts_->position.data;
  STOKER_ASSIGN_OR_RETURN(loader,
                          loader::Loader::open(parts_->training_data->source(),
                                               training_loader(train_, environment_, parts_->place), resume));
  parts_->loader = std::move(loader);
  if (!resume) parts_->position.data = parts_->loader->state();
  const std::uint64_t batches = parts_->loader->batches_per_epoch();
  if (batches == 0) return invalid("train.drop_last: no full batch per rank (train.batch: {})", train_.batch);
  parts_->rates.emplace(train_, TrainingLength{steps_of(train_, batches), environment_.world_size});
  return {};
}

void Setup::log_settings() {
  if (!is_rank0()) return;
  if (const std::string scaling = parts_->rates->scaling_text(); !scaling.empty()) log_.info(scaling);
  if (train_.accumulate > 1) {
    const auto world = static_cast<std::uint64_t>(environment_.world_size.value);
    log_.info(format("{} samples per step: {} batches of {} on {} (train.accumulate)",
                     world * train_.accumulate * train_.batch, train_.accumulate, train_.batch,
                     counted(world, "rank")));
  }
  for (const std::string& line : ineffective_settings(train_, environment_.world_size, parts_->device))
    log_.info(line);
}

Status Setup::connect() {
  RendezvousOptions rendezvous = rendezvous_options(environment_, job_);
  rendezvous.trace = parts_->recorder.trace();
  rendezvous.on_straggler = [&log = log_](std::string_view text) { log.warn(text); };
  STOKER_ASSIGN_OR_RETURN(group, ProcessGroup::connect(rendezvous));
  parts_->group = std::move(group);
  STOKER_RETURN_IF_ERROR(parts_->group->use_device(parts_->device));
  const ModelState& state = parts_->model->state();
  NamedTensors buffers = state.buffers;
  if (parts_->device.is_cpu()) buffers.push_back({"orders", parts_->control_flags});
  STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(*parts_->group, state.parameters, std::move(buffers),
                                                       parallel_options(train_, *parts_->model)));
  parts_->parallel = std::move(parallel);
  const GraphSituation situation{
      .device = parts_->device,
      .has_peers = parts_->parallel->has_peers(),
      .are_gradients_staged =
          parts_->parallel->has_peers() && parts_->group->device_transport() != Transport::nccl};
  parts_->learner->allow_graphs(situation);
  if (is_rank0() && situation.are_gradients_staged && !parts_->device.is_cpu())
    log_.info("ranks share a GPU: gradients travel through host memory (train.backend)");
  return {};
}

}  // namespace

std::int64_t steps_of(const job::TrainOptions& train, std::uint64_t batches) {
  return static_cast<std::int64_t>((batches + train.accumulate - 1) / train.accumulate);
}

Result<std::unique_ptr<Parts>> set_up(const job::Job& job, const RankEnvironment& environment,
                                      TrainerLog& log) {
  return Setup(job, environment, log).run();
}

}  // namespace stoker::train
