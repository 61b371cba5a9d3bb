#include "torch/trainer/setup/setup.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include "data/loader/advice.h"
#include "torch/edge.h"
#include "torch/trainer/learn/numerics.h"
#include "torch/trainer/setup/datasets.h"
#include "torch/trainer/setup/meeting_place.h"

namespace stoker::torch {

namespace {

std::string differences_text(const std::vector<std::string>& differences) {
  std::string text = "not as it was saved:";
  for (const std::string& one : differences) text += (text.back() == ':' ? " " : ", ") + one;
  return text;
}

// `columns` as column_count says.
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

// How gradients of that model are exchanged.
DataParallelOptions parallel_options(const job::TrainOptions& train, const Model& model) {
  DataParallelOptions options{.gradients = Gradients::bucketed};
  if (train.find_unused_parameters || model.leaves_out()) options.unused = Unused::search;
  if (train.sync_batch_norm) options.statistics = Statistics::of_all_ranks;
  if (train.compress_gradients == job::GradientCompression::fp16) options.compression = Compression::float16;
  if (train.compress_gradients == job::GradientCompression::bf16) options.compression = Compression::bfloat16;
  options.bucket = train.bucket;
  options.first_bucket = std::min(options.first_bucket, train.bucket);
  return options;
}

// What `train` asks for that makes no difference here, in one line each.
std::vector<std::string> without_effect(const job::TrainOptions& train, WorldSize world_size) {
  std::vector<std::string> lines;
  const bool compresses = train.compress_gradients != job::GradientCompression::none;
  if (world_size.value == 1 && compresses)
    lines.emplace_back("train.compress_gradients: changes nothing: there is one rank");
  if (world_size.value == 1 && train.sync_batch_norm)
    lines.emplace_back("train.sync_batch_norm: changes nothing: there is one rank");
  if (train.tf32) lines.emplace_back("train.tf32: changes nothing: there is no GPU");
  return lines;
}

class Setup {
 public:
  Setup(const job::Job& job, const RankEnvironment& environment, Voice& voice)
      : job_(job), train_(*job.train), environment_(environment), voice_(voice) {}

  Result<std::unique_ptr<Parts>> run();

 private:
  bool is_first() const { return environment_.rank.value == 0; }
  Status open_data();
  Status build_model();
  Status restore_from_checkpoint();
  Status open_loader();
  void say_what_holds();
  Status meet();
  Rates first_rates() const { return RatePlan(train_, {}).at(0); }

  const job::Job& job_;
  const job::TrainOptions& train_;
  const RankEnvironment& environment_;
  Voice& voice_;
  std::unique_ptr<Parts> parts_ = std::make_unique<Parts>();
};

Result<std::unique_ptr<Parts>> Setup::run() {
  set_up_numerics(train_);
  OK_OR_RETURN(recorder, Recorder::open(environment_, job_.record));
  parts_->recorder = std::move(recorder);
  RETURN_IF_ERROR(open_data());
  OK_OR_RETURN(saving, Saving::open(saving_options(job_), environment_));
  parts_->saving = std::move(saving);
  RETURN_IF_ERROR(caught(Code::internal, "model", [&] { return build_model(); }));
  RETURN_IF_ERROR(caught(Code::internal, "checkpoint", [&] { return restore_from_checkpoint(); }));
  // Without the memory the first save takes it; then it only lasts longer.
  const Status reserved = parts_->saving.reserve(parts_->model->state(), parts_->learner->state());
  if (!reserved.ok()) voice_.warn(reserved.to_string());
  // The loader's threads decode the first batches while the ranks meet.
  RETURN_IF_ERROR(open_loader());
  say_what_holds();
  RETURN_IF_ERROR(meet());
  return std::move(parts_);
}

Status Setup::open_data() {
  OK_OR_RETURN(training, open_dataset(job_, environment_, train_.training_data));
  parts_->training_data.emplace(std::move(training));
  if (train_.validation_data && train_.validate_every > 0) {
    OK_OR_RETURN(validation, open_dataset(job_, environment_, *train_.validation_data));
    parts_->validation_data.emplace(std::move(validation));
  }
  const auto small = data::small_cache(parts_->training_data->source(), train_.chunk_cache);
  if (is_first() && small) {
    voice_.warn(format("data.{}: {} (train.chunk_cache)\n  try: train: {{chunk_cache: {}}}",
                       train_.training_data, small->what, to_text(small->enough)));
  }
  return {};
}

Status Setup::build_model() {
  std::vector<NamedDataset> datasets{{train_.training_data, &*parts_->training_data}};
  if (parts_->validation_data) datasets.push_back({*train_.validation_data, &*parts_->validation_data});
  OK_OR_RETURN(classes, class_count(train_, datasets));
  OK_OR_RETURN(columns, column_count(train_, *parts_->training_data));
  OK_OR_RETURN(model, make_model(model_spec(train_, classes, columns)));
  const std::uint64_t world = static_cast<std::uint64_t>(environment_.world_size.value);
  const std::uint64_t share = (parts_->training_data->samples() + world - 1) / world;
  if (!train_.drop_last && share % train_.batch == 1 && model->last_stage_size(train_.image.size) == 1) {
    return invalid(
               "train.batch: {} leaves one image for the last step of an epoch ({} of {} samples per rank), "
               "which "
               "batch norm cannot learn from",
               train_.batch, share, parts_->training_data->samples())
        .cure("train.batch: {}", train_.batch > 2 ? train_.batch - 1 : train_.batch + 1);
  }
  parts_->model = std::move(model);
  parts_->form = {
      .input = parts_->model->input(), .columns = train_.mlp.columns.size(), .vocabulary = classes};
  parts_->learner.emplace(train_, environment_.rank, *parts_->model, parts_->form);
  // What a step may leave out has no state before its first use: then all of it is made now, so that each
  // checkpoint holds the same.
  const bool may_skip = train_.precision == job::Precision::fp16;  // whole steps, the first one too
  if (parts_->model->leaves_out() || train_.find_unused_parameters || may_skip)
    parts_->learner->make_state(first_rates());
  parts_->orders = at::zeros({1}, at::kLong);
  return {};
}

Status Setup::restore_from_checkpoint() {
  if (environment_.resume.empty()) return {};
  parts_->learner->make_state(first_rates());
  OK_OR_RETURN(restored, restore(environment_.resume, environment_, parts_->model->state(),
                                 parts_->learner->state(), saving_options(job_).hyper_parameters));
  parts_->place = restored.place;
  parts_->saving.resumed_from(parts_->place.step);
  if (!is_first()) parts_->place.sums = {};
  voice_.say(format("resumed from {}: epoch {}, step {}", environment_.resume, parts_->place.data.epoch + 1,
                    parts_->place.step));
  if (is_first() && !restored.differences.empty()) voice_.say(differences_text(restored.differences));
  const Status recorded = parts_->recorder.resumed(
      {parts_->place.step.value, static_cast<std::int64_t>(parts_->place.data.epoch), environment_.resume});
  if (!recorded.ok()) voice_.warn(format("record: {}", recorded.to_string()));
  return {};
}

Status Setup::open_loader() {
  std::optional<data::OrderState> resume;
  if (parts_->place.step.value > 0) resume = parts_->place.data;
  OK_OR_RETURN(loader, data::Loader::open(parts_->training_data->source(),
                                          training_loader(train_, environment_), resume));
  parts_->loader = std::move(loader);
  if (!resume) parts_->place.data = parts_->loader->state();
  const std::uint64_t batches = parts_->loader->batches_per_epoch();
  if (batches == 0) return invalid("train.drop_last: no batch is full (train.batch: {})", train_.batch);
  parts_->rates.emplace(train_, PlanFacts{steps_of(train_, batches), environment_.world_size});
  return {};
}

void Setup::say_what_holds() {
  if (!is_first()) return;
  if (const std::string scaling = parts_->rates->scaling_text(); !scaling.empty()) voice_.say(scaling);
  if (train_.accumulate > 1) {
    const auto world = static_cast<std::uint64_t>(environment_.world_size.value);
    voice_.say(format("{} samples a step: {} batches of {} on {} ranks (train.accumulate)",
                      world * train_.accumulate * train_.batch, train_.accumulate, train_.batch, world));
  }
  for (const std::string& line : without_effect(train_, environment_.world_size)) voice_.say(line);
}

Status Setup::meet() {
  Rendezvous meeting = rendezvous(environment_, job_);
  meeting.trace = parts_->recorder.trace();
  meeting.on_late = [&voice = voice_](std::string_view text) { voice.warn(text); };
  OK_OR_RETURN(group, ProcessGroup::connect(meeting));
  parts_->group = std::move(group);
  const ModelState& state = parts_->model->state();
  NamedTensors buffers = state.buffers;
  buffers.push_back({"orders", parts_->orders});
  OK_OR_RETURN(parallel, DataParallel::wrap(*parts_->group, state.parameters, std::move(buffers),
                                            parallel_options(train_, *parts_->model)));
  parts_->parallel = std::move(parallel);
  return {};
}

}  // namespace

std::int64_t steps_of(const job::TrainOptions& train, std::uint64_t batches) {
  return static_cast<std::int64_t>((batches + train.accumulate - 1) / train.accumulate);
}

Result<std::unique_ptr<Parts>> set_up(const job::Job& job, const RankEnvironment& environment, Voice& voice) {
  return Setup(job, environment, voice).run();
}

}  // namespace stoker::torch
