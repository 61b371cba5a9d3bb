#include "torch/trainer/saving.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include "checkpoint/layout.h"
#include "checkpoint/local/meeting.h"

namespace stoker::torch {

namespace {

// How the names of what lies beside the model begin: of an Optimizer, an Ema, a LossScaler.
constexpr std::string_view kOptimizer = "state.";
constexpr std::string_view kMean = "ema.";
constexpr std::string_view kScaler = "scaler.";

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

Result<checkpoint::Contents> contents_of(const ModelState& model, const NamedTensors& optimizer,
                                         const Place& place) {
  checkpoint::Contents contents;
  contents.step = place.step;
  OK_OR_RETURN(parameters, views_of<TensorView>(model.parameters));
  OK_OR_RETURN(buffers, views_of<TensorView>(model.buffers));
  OK_OR_RETURN(beside, views_of<TensorView>(optimizer));
  contents.parameters = std::move(parameters);
  contents.buffers = std::move(buffers);
  contents.optimizer = std::move(beside);
  contents.state = to_state(place);
  contents.rank_state = random_state();
  return contents;
}

std::uint64_t bytes_of(const checkpoint::Contents& contents) {
  std::uint64_t bytes = 0;
  for (const auto* list : {&contents.parameters, &contents.buffers, &contents.optimizer}) {
    for (const TensorView& view : *list) bytes += view.data.size();
  }
  return bytes;
}

Path directory_of(const SavingOptions& options, const RankEnvironment& environment) {
  return environment.checkpoints.empty() ? options.directory : environment.checkpoints;
}

// The folder of this run on the node's own disk. Outside a run nobody would look for what is left there.
Path local_of(const SavingOptions& options, const RankEnvironment& environment) {
  const bool is_in_run = !environment.attempt.empty() && !environment.run_id.empty();
  return options.local.empty() || !is_in_run ? Path() : options.local / environment.run_id;
}

std::string value_text(const checkpoint::State::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return format("{}", *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return std::to_string(*whole);
  return "(bytes)";
}

constexpr std::string_view kOrder = "shuffle";

// Everything beside the seed that decides an epoch's order.
std::string order_text(const job::TrainOptions& train) {
  const std::string_view kind = job::to_text(train.shuffle);
  return train.window ? format("{} in windows of {}", kind, *train.window) : std::string(kind);
}

// Whether both are known and not the same.
bool differs(const checkpoint::State& then, const checkpoint::State& now, std::string_view name) {
  const auto saved = then.values().find(name);
  const auto asked = now.values().find(name);
  return saved != then.values().end() && asked != now.values().end() && saved->second != asked->second;
}

// Within an epoch another order would show some of its samples twice and others never.
Status check_order(const checkpoint::State& then, const checkpoint::State& now) {
  if (!differs(then, now, kOrder)) return {};
  return invalid("train.shuffle: the checkpoint stands within an epoch of the order {}, this training has {}",
                 value_text(then.values().at(std::string(kOrder))),
                 value_text(now.values().at(std::string(kOrder))))
      .cure("resume with the order it was saved with, or from a checkpoint of an epoch's end");
}

constexpr std::string_view kKind = "optimizer";

// What the checkpoint lacks of what lies beside the model begins anew, as does all that another kind of
// optimizer left: its numbers mean something else under the same names. Says what does.
std::vector<std::string> begin_anew(const checkpoint::Loaded& loaded, bool is_other_kind,
                                    const ModelState& model, const NamedTensors& beside) {
  const at::NoGradGuard no_grad;
  const auto lacks = [&](std::string_view begin) {
    return std::ranges::any_of(loaded.lacked,
                               [&](const std::string& name) { return name.starts_with(begin); });
  };
  const bool is_optimizer_new = is_other_kind || lacks(kOptimizer);
  const bool is_mean_new = lacks(kMean);
  for (const NamedTensor& item : beside) {
    if (is_optimizer_new && item.name.starts_with(kOptimizer)) item.tensor.zero_();
    if (!is_mean_new || !item.name.starts_with(kMean)) continue;
    for (const NamedTensor& parameter : model.parameters) {
      if (parameter.name == std::string_view(item.name).substr(kMean.size()))
        item.tensor.copy_(parameter.tensor);
    }
  }
  std::vector<std::string> news;
  if (is_optimizer_new) news.emplace_back("the optimizer begins anew");
  if (is_mean_new) news.emplace_back("the mean of weights begins anew");
  if (lacks(kScaler)) news.emplace_back("the scale of the loss begins anew");
  return news;
}

checkpoint::State hyper_parameters(const job::TrainOptions& train) {
  checkpoint::State state;
  state.set("model", std::string(job::to_text(train.model)));
  state.set("schedule", std::string(job::to_text(train.schedule.kind)));
  state.set("epochs", std::uint64_t{train.epochs});
  state.set("batch", std::uint64_t{train.batch});
  state.set("seed", train.seed);
  state.set(std::string(kOrder), order_text(train));
  state.set(std::string(kKind), std::string(job::to_text(train.optimizer.kind)));
  state.set("lr", train.optimizer.lr);
  state.set("momentum", train.optimizer.momentum);
  state.set("nesterov", train.optimizer.nesterov);
  state.set("weight_decay", train.optimizer.weight_decay);
  state.set("accumulate", std::uint64_t{train.accumulate});
  state.set("precision", std::string(job::to_text(train.precision)));
  state.set("label_smoothing", train.label_smoothing);
  state.set("mixup", train.mixup);
  state.set("cutmix", train.cutmix);
  state.set("clip_norm", train.clip_norm.value_or(0));
  state.set("ema", train.ema.value_or(0));
  state.set("sync_batch_norm", train.sync_batch_norm);
  state.set("compress_gradients", std::string(job::to_text(train.compress_gradients)));
  return state;
}

}  // namespace

SavingOptions saving_options(const job::Job& job) {
  return {.directory = job.checkpoint.directory.value_or(Path()),
          .local = job.checkpoint.local.value_or(Path()),
          .name = job.name,
          .keep = job.checkpoint.keep,
          .keep_every = job.checkpoint.keep_every,
          .keep_best = job.checkpoint.keep_best,
          .metric = job.checkpoint.metric,
          .is_automatic = job.checkpoint.every.is_automatic,
          .mtbf = job.checkpoint.mtbf,
          .limit = job.timeouts.checkpoint,
          .hyper_parameters = hyper_parameters(*job.train)};
}

Result<Saving> Saving::open(const SavingOptions& options, const RankEnvironment& environment) {
  Saving saving;
  saving.limit_ = options.limit;
  saving.hyper_parameters_ = options.hyper_parameters;
  saving.folder_ = directory_of(options, environment);
  if (saving.folder_.empty()) return saving;
  saving.is_automatic_ = options.is_automatic;
  saving.mtbf_ = options.mtbf;
  saving.deadline_ = environment.deadline;
  saving.keeps_best_ = options.keep_best > 0;
  checkpoint::SaverOptions saver_options;
  saver_options.directory = saving.folder_;
  saver_options.local = local_of(options, environment);
  saver_options.rank = environment.rank;
  saver_options.world_size = environment.world_size;
  saver_options.run = environment.run_id.empty() ? options.name : environment.run_id;
  saver_options.writer = environment.attempt_name();
  saver_options.keep = static_cast<int>(options.keep);
  saver_options.keep_every = options.keep_every;
  saver_options.keep_best = static_cast<int>(options.keep_best);
  saver_options.metric = options.metric;
  saver_options.reading = environment.resume;
  saver_options.limit = saving.limit_;
  OK_OR_RETURN(saver, checkpoint::Saver::create(std::move(saver_options)));
  saving.saver_ = std::move(saver);
  return saving;
}

Status Saving::reserve(const ModelState& model, const NamedTensors& optimizer) {
  if (!saver_) return {};
  OK_OR_RETURN(contents, contents_of(model, optimizer, {}));
  if (!costs_.is_measured) costs_ = checkpoint::guess_costs(bytes_of(contents));
  return saver_->reserve(contents);
}

Status Saving::save(const ModelState& model, const NamedTensors& optimizer, const Place& place) {
  if (!saver_ || place.step == saved_) return {};
  OK_OR_RETURN(contents, contents_of(model, optimizer, place));
  contents.hyper_parameters = hyper_parameters_;
  if (validated_step_ == place.step) {
    contents.state.set("val_loss", validated_.loss);
    contents.state.set("val_top1", validated_.top1);
    contents.state.set("val_top5", validated_.top5);
  }
  saved_ = place.step;
  return saver_->save(contents);
}

Status Saving::wait() { return saver_ ? saver_->wait(Deadline::after(limit_)) : Status(); }
Status Saving::finish() { return saver_ ? saver_->finish(Deadline::after(limit_)) : Status(); }

std::optional<checkpoint::SaveTimes> Saving::published() {
  if (!saver_) return std::nullopt;
  std::optional<checkpoint::SaveTimes> times = saver_->last_times();
  if (!times || times->step == published_) return std::nullopt;
  published_ = times->step;
  // The slowest of this attempt: a choice that rests on a lucky one would move with every save.
  costs_.stall_s = costs_.is_measured ? std::max(costs_.stall_s, times->stall_s) : times->stall_s;
  const double write_s = times->write_s + times->commit_s;
  costs_.write_s = costs_.is_measured ? std::max(costs_.write_s, write_s) : write_s;
  costs_.is_measured = true;
  return times;
}

bool Saving::is_due(double since_last_s, WallTime now) {
  if (!is_automatic_ || !saver_) return false;
  costs_.mtbf = mtbf_;
  costs_.left.reset();
  if (deadline_)
    costs_.left = std::max<Duration>(*deadline_ - now, Duration::zero()) +
                  std::chrono::duration_cast<Duration>(Seconds(since_last_s));
  interval_ = checkpoint::choose_interval(costs_);
  return since_last_s >= Seconds(interval_->every).count();
}

void Saving::saw_validation(Step step, const Validated& validated) {
  validated_step_ = step;
  validated_ = validated;
}

std::optional<std::string> Saving::news() {
  if (!interval_) return std::nullopt;
  const double now_s = Seconds(interval_->every).count();
  const double told_s = told_ ? Seconds(told_->every).count() : 0;
  // A tenth is no news, nor is what the coming deadline takes off.
  const bool is_new =
      !told_ || (costs_.is_measured && !was_measured_) || std::abs(now_s - told_s) > 0.1 * told_s;
  const checkpoint::Interval chosen = *std::exchange(interval_, std::nullopt);
  if (!is_new || (told_ && was_measured_ && costs_.left && now_s < told_s)) return std::nullopt;
  told_ = chosen;
  was_measured_ = costs_.is_measured;
  return format("checkpoints every {}: {}", rounded_duration(chosen.every), chosen.reason);
}

std::optional<std::string> Saving::local_problem() {
  if (!saver_) return std::nullopt;
  const std::optional<checkpoint::SaveTimes> times = saver_->last_times();
  const std::string now = times ? times->local_problem.to_string() : "";
  const bool is_new = !times || times->local_problem.ok() ? false : now != local_problem_;
  if (is_new) local_problem_ = now;
  return is_new ? std::optional(now) : std::nullopt;
}

Result<Restored> restore(const Path& folder, const RankEnvironment& environment, const ModelState& model,
                         const NamedTensors& optimizer, const checkpoint::State& hyper_parameters) {
  checkpoint::Targets targets;
  OK_OR_RETURN(state, views_of<MutableTensorView>(model.all));
  OK_OR_RETURN(beside, views_of<MutableTensorView>(optimizer));
  targets.model = std::move(state);
  targets.optimizer = std::move(beside);
  targets.may_lack = {std::string(kOptimizer), std::string(kMean), std::string(kScaler)};
  OK_OR_RETURN(loaded, checkpoint::load(folder, {environment.rank, environment.world_size}, targets));
  if (loaded.rank_state) RETURN_IF_ERROR(restore_random(*loaded.rank_state));
  OK_OR_RETURN(place, to_place(loaded));
  if (place.data.position > 0) RETURN_IF_ERROR(check_order(loaded.hyper_parameters, hyper_parameters));
  Restored restored{place, {}};
  if (loaded.saved_by != environment.world_size)
    restored.differences.push_back(format("world size {} → {}", loaded.saved_by, environment.world_size));
  // A key that the Stoker which saved it did not know is no difference.
  for (const auto& [name, value] : hyper_parameters.values()) {
    if (differs(loaded.hyper_parameters, hyper_parameters, name))
      restored.differences.push_back(format(
          "{} {} → {}", name, value_text(loaded.hyper_parameters.values().at(name)), value_text(value)));
  }
  const bool is_other_kind = differs(loaded.hyper_parameters, hyper_parameters, kKind);
  for (std::string& news : begin_anew(loaded, is_other_kind, model, optimizer))
    restored.differences.push_back(std::move(news));
  return restored;
}

Result<StepToResume> step_to_resume(const SavingOptions& options, const RankEnvironment& environment) {
  const Path directory = directory_of(options, environment);
  const Path local = local_of(options, environment);
  const bool may_be_kept = !local.empty() && !directory.empty() && environment.attempt_name() != "1";
  if (!may_be_kept) return StepToResume{environment.resume, ""};
  OK_OR_RETURN(brought, checkpoint::bring_kept_steps({.directory = directory,
                                                      .local = local,
                                                      .rank = environment.rank,
                                                      .world_size = environment.world_size,
                                                      .is_first_of_node = environment.is_first_of_node,
                                                      .writer = environment.attempt_name(),
                                                      .limit = options.limit,
                                                      .observe = {}}));
  if (!brought.step) return StepToResume{environment.resume, brought.lost};
  const std::string where =
      format("step {}: was on the nodes' own disks only, and is on shared storage now", *brought.step);
  return StepToResume{directory / checkpoint::step_folder_name(*brought.step),
                      brought.lost.empty() ? where : where + "; " + brought.lost};
}

}  // namespace stoker::torch
