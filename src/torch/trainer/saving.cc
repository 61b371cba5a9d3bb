#include "torch/trainer/saving.h"

#include <cstring>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

namespace stoker::torch {

namespace {

Result<DType> dtype_of(const NamedTensor& item) {
  switch (item.tensor.scalar_type()) {
    case at::kFloat:
      return DType::f32;
    case at::kDouble:
      return DType::f64;
    case at::kLong:
      return DType::i64;
    case at::kInt:
      return DType::i32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kByte:
      return DType::u8;
    case at::kBool:
      return DType::boolean;
    default:
      return internal("'{}' is of type {}, which checkpoints do not hold", item.name,
                      c10::toString(item.tensor.scalar_type()));
  }
}

Result<MutableTensorView> view_of(const NamedTensor& item) {
  OK_OR_RETURN(dtype, dtype_of(item));
  if (!item.tensor.is_contiguous()) return internal("'{}' is not contiguous", item.name);
  return MutableTensorView{item.name,
                           dtype,
                           Shape(item.tensor.sizes().begin(), item.tensor.sizes().end()),
                           {static_cast<std::byte*>(item.tensor.data_ptr()), item.tensor.nbytes()}};
}

template <typename View>
Result<std::vector<View>> views_of(const NamedTensors& tensors) {
  std::vector<View> views;
  for (const NamedTensor& item : tensors) {
    OK_OR_RETURN(view, view_of(item));
    views.push_back(std::move(view));
  }
  return views;
}

// Only a model with dropout draws from it, but whoever resumes cannot know.
checkpoint::State random_state() {
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const auto* bytes = static_cast<const std::byte*>(state.const_data_ptr());
  checkpoint::State own;
  own.set("random", checkpoint::State::Bytes(bytes, bytes + state.nbytes()));
  return own;
}

Status restore_random(const checkpoint::State& own) {
  OK_OR_RETURN(bytes, own.bytes("random"));
  const at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = generator.get_state().clone();
  if (state.nbytes() != bytes.size()) {
    return invalid("state of the random generator: {} bytes (this libtorch's has {})", bytes.size(),
                   state.nbytes());
  }
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  at::Generator(generator).set_state(state);
  return {};
}

checkpoint::State to_state(const Place& place) {
  checkpoint::State state;
  state.set("epoch", place.data.epoch);
  state.set("position", place.data.position);
  state.set("seed", place.data.seed);
  state.set("samples", place.data.samples);
  state.set("epoch_loss_sum", place.sums.loss);
  state.set("epoch_top1_sum", place.sums.top1);
  state.set("epoch_samples", place.sums.samples);
  state.set("epoch_seconds", place.sums.seconds);
  return state;
}

Result<Place> to_place(const checkpoint::Loaded& loaded) {
  const checkpoint::State& state = loaded.state;
  OK_OR_RETURN(epoch, state.natural("epoch"));
  OK_OR_RETURN(position, state.natural("position"));
  OK_OR_RETURN(seed, state.natural("seed"));
  OK_OR_RETURN(samples, state.natural("samples"));
  OK_OR_RETURN(loss, state.number("epoch_loss_sum"));
  OK_OR_RETURN(top1, state.number("epoch_top1_sum"));
  OK_OR_RETURN(seen, state.number("epoch_samples"));
  OK_OR_RETURN(seconds, state.number("epoch_seconds"));
  return Place{loaded.step, {seed, epoch, position, samples}, {loss, top1, seen, seconds}};
}

Result<checkpoint::Contents> contents_of(const Model& model, const Sgd& sgd, const Place& place) {
  checkpoint::Contents contents;
  contents.step = place.step;
  OK_OR_RETURN(parameters, views_of<TensorView>(model.state().parameters));
  OK_OR_RETURN(buffers, views_of<TensorView>(model.state().buffers));
  OK_OR_RETURN(optimizer, views_of<TensorView>(sgd.state()));
  contents.parameters = std::move(parameters);
  contents.buffers = std::move(buffers);
  contents.optimizer = std::move(optimizer);
  contents.state = to_state(place);
  contents.rank_state = random_state();
  return contents;
}

checkpoint::State hyper_parameters(const job::TrainOptions& train) {
  checkpoint::State state;
  state.set("model", std::string(job::to_text(train.model)));
  state.set("schedule", std::string(job::to_text(train.schedule.kind)));
  state.set("epochs", std::uint64_t{train.epochs});
  state.set("batch", std::uint64_t{train.batch});
  state.set("seed", train.seed);
  state.set("lr", train.optimizer.lr);
  state.set("momentum", train.optimizer.momentum);
  state.set("nesterov", train.optimizer.nesterov);
  state.set("weight_decay", train.optimizer.weight_decay);
  return state;
}

}  // namespace

Result<Saving> Saving::open(const job::Job& job, const RankEnvironment& environment) {
  Saving saving;
  saving.limit_ = job.timeouts.checkpoint;
  saving.hyper_parameters_ = hyper_parameters(*job.train);
  saving.folder_ =
      environment.checkpoints.empty() ? job.checkpoint.directory.value_or(Path()) : environment.checkpoints;
  if (saving.folder_.empty()) return saving;
  checkpoint::SaverOptions options;
  options.directory = saving.folder_;
  options.rank = environment.rank;
  options.world_size = environment.world_size;
  options.run = environment.run_id.empty() ? job.name : environment.run_id;
  options.writer = environment.attempt_name();
  options.keep = static_cast<int>(job.checkpoint.keep);
  options.reading = environment.resume;
  options.limit = saving.limit_;
  OK_OR_RETURN(saver, checkpoint::Saver::create(std::move(options)));
  saving.saver_ = std::move(saver);
  return saving;
}

Status Saving::reserve(const Model& model, const Sgd& sgd) {
  if (!saver_) return {};
  OK_OR_RETURN(contents, contents_of(model, sgd, {}));
  return saver_->reserve(contents);
}

Status Saving::save(const Model& model, const Sgd& sgd, const Place& place) {
  if (!saver_ || place.step == saved_) return {};
  OK_OR_RETURN(contents, contents_of(model, sgd, place));
  contents.hyper_parameters = hyper_parameters_;
  saved_ = place.step;
  return saver_->save(contents);
}

Status Saving::finish() { return saver_ ? saver_->finish(Deadline::after(limit_)) : Status(); }

std::optional<checkpoint::SaveTimes> Saving::published() {
  if (!saver_) return std::nullopt;
  std::optional<checkpoint::SaveTimes> times = saver_->last_times();
  if (!times || times->step == published_) return std::nullopt;
  published_ = times->step;
  return times;
}

Result<Place> restore(const Path& folder, const RankEnvironment& environment, Model& model, Sgd& sgd) {
  checkpoint::Targets targets;
  OK_OR_RETURN(state, views_of<MutableTensorView>(model.state().all));
  OK_OR_RETURN(optimizer, views_of<MutableTensorView>(sgd.state()));
  targets.model = std::move(state);
  targets.optimizer = std::move(optimizer);
  OK_OR_RETURN(loaded, checkpoint::load(folder, {environment.rank, environment.world_size}, targets));
  if (loaded.rank_state) RETURN_IF_ERROR(restore_random(*loaded.rank_state));
  return to_place(loaded);
}

}  // namespace stoker::torch
