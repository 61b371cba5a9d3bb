#include "train/trainer/checkpoint_manager.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include "base/stopwatch.h"
#include "checkpoint/layout.h"
#include "checkpoint/local/recovery.h"

namespace stoker::train {

namespace {

// Name prefixes of optimizer, EMA and scaler state.
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
  STOKER_ASSIGN_OR_RETURN(dtype, dtype_of(item));
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
    STOKER_ASSIGN_OR_RETURN(view, view_of(item));
    views.push_back(std::move(view));
  }
  return views;
}

constexpr std::string_view kRandom = "random";
constexpr std::string_view kDeviceRandom = "random_cuda";

checkpoint::StateValues::Bytes state_of(const at::Generator& generator) {
  const at::Tensor state = generator.get_state();
  const auto* bytes = static_cast<const std::byte*>(state.const_data_ptr());
  return {bytes, bytes + state.nbytes()};
}

// Only models with dropout use the generators, but a resumed training may be one.
checkpoint::StateValues random_state(at::Device device) {
  checkpoint::StateValues own;
  own.set(std::string(kRandom), state_of(at::detail::getDefaultCPUGenerator()));
  if (!device.is_cpu())
    own.set(std::string(kDeviceRandom), state_of(at::globalContext().defaultGenerator(device)));
  return own;
}

Status restore_generator(const checkpoint::StateValues& own, std::string_view name,
                         const at::Generator& generator) {
  STOKER_ASSIGN_OR_RETURN(bytes, own.bytes(name));
  const at::Tensor state = generator.get_state().clone();
  if (state.nbytes() != bytes.size()) {
    return invalid("state of the random generator: {} bytes (this libtorch's has {})", bytes.size(),
                   state.nbytes());
  }
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  at::Generator(generator).set_state(state);
  return {};
}

// A checkpoint of a training on the CPU has no state of a GPU: its generator then begins with the seed.
Status restore_random(const checkpoint::StateValues& own, at::Device device) {
  STOKER_RETURN_IF_ERROR(restore_generator(own, kRandom, at::detail::getDefaultCPUGenerator()));
  if (device.is_cpu() || !own.values().contains(std::string(kDeviceRandom))) return {};
  return restore_generator(own, kDeviceRandom, at::globalContext().defaultGenerator(device));
}

checkpoint::StateValues to_state(const ResumePosition& position) {
  checkpoint::StateValues state;
  state.set("epoch", position.data.epoch);
  state.set("position", position.data.position);
  state.set("seed", position.data.seed);
  state.set("samples", position.data.samples);
  state.set("epoch_loss_sum", position.sums.loss);
  state.set("epoch_top1_sum", position.sums.top1);
  state.set("epoch_samples", position.sums.samples);
  state.set("epoch_seconds", position.sums.seconds);
  return state;
}

Result<ResumePosition> to_position(const checkpoint::Loaded& loaded) {
  const checkpoint::StateValues& state = loaded.state;
  STOKER_ASSIGN_OR_RETURN(epoch, state.natural("epoch"));
  STOKER_ASSIGN_OR_RETURN(position, state.natural("position"));
  STOKER_ASSIGN_OR_RETURN(seed, state.natural("seed"));
  STOKER_ASSIGN_OR_RETURN(samples, state.natural("samples"));
  STOKER_ASSIGN_OR_RETURN(loss, state.number("epoch_loss_sum"));
  STOKER_ASSIGN_OR_RETURN(top1, state.number("epoch_top1_sum"));
  STOKER_ASSIGN_OR_RETURN(seen, state.number("epoch_samples"));
  STOKER_ASSIGN_OR_RETURN(seconds, state.number("epoch_seconds"));
  return ResumePosition{loaded.step, {seed, epoch, position, samples}, {loss, top1, seen, seconds}};
}

Result<checkpoint::StepContents> contents_of(const ModelState& model, const NamedTensors& optimizer,
                                             const ResumePosition& position, at::Device device) {
  checkpoint::StepContents contents;
  contents.step = position.step;
  STOKER_ASSIGN_OR_RETURN(parameters, views_of<TensorView>(model.parameters));
  STOKER_ASSIGN_OR_RETURN(buffers, views_of<TensorView>(model.buffers));
  STOKER_ASSIGN_OR_RETURN(beside, views_of<TensorView>(optimizer));
  contents.parameters = std::move(parameters);
  contents.buffers = std::move(buffers);
  contents.optimizer = std::move(beside);
  contents.state = to_state(position);
  contents.rank_state = random_state(device);
  return contents;
}

std::uint64_t bytes_of(const checkpoint::StepContents& contents) {
  std::uint64_t bytes = 0;
  for (const auto* list : {&contents.parameters, &contents.buffers, &contents.optimizer}) {
    for (const TensorView& view : *list) bytes += view.data.size();
  }
  return bytes;
}

Path directory_of(const CheckpointManagerOptions& options, const RankEnvironment& environment) {
  return environment.checkpoints.empty() ? options.directory : environment.checkpoints;
}

// The node-local folder of this run. Outside a run it would never be cleaned up.
Path local_of(const CheckpointManagerOptions& options, const RankEnvironment& environment) {
  const bool is_in_run = !environment.attempt.empty() && !environment.run_id.empty();
  return options.local.empty() || !is_in_run ? Path() : options.local / environment.run_id;
}

std::string value_text(const checkpoint::StateValues::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return format("{}", *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return std::to_string(*whole);
  return "(bytes)";
}

constexpr std::string_view kOrder = "shuffle";

// The settings besides the seed that determine an epoch's order.
std::string order_text(const job::TrainOptions& train) {
  const std::string_view kind = job::to_text(train.shuffle);
  return train.window ? format("{} in windows of {}", kind, *train.window) : std::string(kind);
}

// Whether both values are known and differ.
bool differs(const checkpoint::StateValues& then, const checkpoint::StateValues& now, std::string_view name) {
  const auto saved = then.values().find(name);
  const auto asked = now.values().find(name);
  return saved != then.values().end() && asked != now.values().end() && saved->second != asked->second;
}

// Within an epoch, a different order would repeat some samples and skip others.
Status check_order(const checkpoint::StateValues& then, const checkpoint::StateValues& now) {
  if (!differs(then, now, kOrder)) return {};
  return invalid("train.shuffle: the checkpoint was saved within an epoch of order {}, this training uses {}",
                 value_text(then.values().at(std::string(kOrder))),
                 value_text(now.values().at(std::string(kOrder))))
      .cure("resume with that order, or from a checkpoint at the end of an epoch");
}

constexpr std::string_view kKind = "optimizer";

// Resets state that the checkpoint lacks, and the state of a different kind of optimizer: it has the same
// names with a different meaning. Returns a line for each reset.
std::vector<std::string> reset_missing_state(const checkpoint::Loaded& loaded, bool is_other_kind,
                                             const ModelState& model, const NamedTensors& beside) {
  const at::NoGradGuard no_grad;
  const auto lacks = [&](std::string_view begin) {
    return std::ranges::any_of(loaded.missing,
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
  std::vector<std::string> notice;
  if (is_optimizer_new) notice.emplace_back("optimizer state reset");
  if (is_mean_new) notice.emplace_back("weight average (EMA) reset");
  if (lacks(kScaler)) notice.emplace_back("loss scale reset");
  return notice;
}

checkpoint::StateValues hyper_parameters(const job::TrainOptions& train) {
  checkpoint::StateValues state;
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

CheckpointManagerOptions checkpoint_manager_options(const job::Job& job) {
  return {.directory = job.checkpoint.directory.value_or(Path()),
          .local = job.checkpoint.local.value_or(Path()),
          .name = job.name,
          .keep_last = job.checkpoint.keep_last,
          .keep_every = job.checkpoint.keep_every,
          .keep_best = job.checkpoint.keep_best,
          .metric = job.checkpoint.metric,
          .is_automatic = job.checkpoint.every.is_automatic,
          .mtbf = job.checkpoint.mtbf,
          .limit = job.timeouts.checkpoint,
          .hyper_parameters = hyper_parameters(*job.train)};
}

Result<CheckpointManager> CheckpointManager::open(const CheckpointManagerOptions& options,
                                                  const RankEnvironment& environment) {
  CheckpointManager checkpoint_manager;
  checkpoint_manager.limit_ = options.limit;
  checkpoint_manager.hyper_parameters_ = options.hyper_parameters;
  checkpoint_manager.folder_ = directory_of(options, environment);
  if (checkpoint_manager.folder_.empty()) return checkpoint_manager;
  checkpoint_manager.is_automatic_ = options.is_automatic;
  checkpoint_manager.mtbf_ = options.mtbf;
  checkpoint_manager.deadline_ = environment.deadline;
  checkpoint_manager.keeps_best_ = options.keep_best > 0;
  checkpoint::SaverOptions saver_options;
  saver_options.directory = checkpoint_manager.folder_;
  saver_options.local = local_of(options, environment);
  saver_options.rank = environment.rank;
  saver_options.world_size = environment.world_size;
  saver_options.run = environment.run_id.empty() ? options.name : environment.run_id;
  saver_options.writer = environment.attempt_name();
  saver_options.keep_last = static_cast<int>(options.keep_last);
  saver_options.keep_every = options.keep_every;
  saver_options.keep_best = static_cast<int>(options.keep_best);
  saver_options.metric = options.metric;
  saver_options.protected_step = environment.resume;
  saver_options.limit = checkpoint_manager.limit_;
  STOKER_ASSIGN_OR_RETURN(saver, checkpoint::Saver::create(std::move(saver_options)));
  checkpoint_manager.saver_ = std::move(saver);
  return checkpoint_manager;
}

// Of a CPU the tensors themselves.
CheckpointManager::HostState CheckpointManager::host_state(const ModelState& model,
                                                           const NamedTensors& optimizer) {
  const bool is_on_gpu = !model.all.empty() && !model.all.front().tensor.is_cpu();
  if (is_on_gpu && !device_save_)
    device_save_ = std::make_unique<DeviceSave>(model.all.front().tensor.device());
  HostState host;
  host.model.parameters = is_on_gpu ? device_save_->host_memory(model.parameters) : model.parameters;
  host.model.buffers = is_on_gpu ? device_save_->host_memory(model.buffers) : model.buffers;
  host.optimizer = is_on_gpu ? device_save_->host_memory(optimizer) : optimizer;
  return host;
}

Status CheckpointManager::reserve(const ModelState& model, const NamedTensors& optimizer) {
  if (!saver_) return {};
  const HostState host = host_state(model, optimizer);
  STOKER_ASSIGN_OR_RETURN(contents, contents_of(host.model, host.optimizer, {}, at::kCPU));
  if (!costs_.is_measured) costs_ = checkpoint::estimate_costs(bytes_of(contents));
  return saver_->reserve(contents);
}

Status CheckpointManager::save(const ModelState& model, const NamedTensors& optimizer,
                               const ResumePosition& position) {
  if (!saver_ || position.step == saved_) return {};
  const Stopwatch stall;
  const HostState host = host_state(model, optimizer);
  const at::Device device = model.all.empty() ? at::Device(at::kCPU) : model.all.front().tensor.device();
  STOKER_ASSIGN_OR_RETURN(contents, contents_of(host.model, host.optimizer, position, device));
  contents.hyper_parameters = hyper_parameters_;
  if (validated_step_ == position.step) {
    contents.state.set("val_loss", validated_.loss);
    contents.state.set("val_top1", validated_.top1);
    contents.state.set("val_top5", validated_.top5);
  }
  saved_ = position.step;
  if (!device_save_) return saver_->save(contents);
  Status earlier = device_save_->wait();  // it uses the same memory
  const auto joined = [](const NamedTensors& a, const NamedTensors& b, const NamedTensors& c) {
    NamedTensors all = a;
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), c.begin(), c.end());
    return all;
  };
  device_save_->begin(joined(model.parameters, model.buffers, optimizer),
                      joined(host.model.parameters, host.model.buffers, host.optimizer),
                      [this, contents = std::move(contents)] { return saver_->save(contents); });
  device_stall_s_ = stall.seconds();
  return earlier;
}

Status CheckpointManager::wait() {
  if (!saver_) return {};
  const Status begun = device_save_ ? device_save_->wait() : Status();
  const Status written = saver_->wait(Deadline::after(limit_));
  return begun.ok() ? written : begun;
}

Status CheckpointManager::finish() {
  if (!saver_) return {};
  const Status begun = device_save_ ? device_save_->wait() : Status();
  const Status written = saver_->finish(Deadline::after(limit_));
  return begun.ok() ? written : begun;
}

// The saver belongs to the thread of a running device save.
bool CheckpointManager::is_saver_in_use() const { return device_save_ && device_save_->is_running(); }

std::optional<Step> CheckpointManager::step_in_flight() const {
  if (!saver_) return std::nullopt;
  return is_saver_in_use() || saver_->is_busy() ? std::optional(saved_) : std::nullopt;
}

std::optional<checkpoint::SaveTimes> CheckpointManager::published() {
  if (!saver_ || is_saver_in_use()) return std::nullopt;
  std::optional<checkpoint::SaveTimes> times = saver_->last_times();
  if (!times || times->step == published_) return std::nullopt;
  published_ = times->step;
  if (device_save_) {  // the training did not wait for the copy to the saver's memory
    times->write_s += times->stall_s;
    times->stall_s = device_stall_s_;
  }
  // The slowest save of this attempt: a fast outlier must not change the interval.
  costs_.stall_s = costs_.is_measured ? std::max(costs_.stall_s, times->stall_s) : times->stall_s;
  const double write_s = times->write_s + times->commit_s;
  costs_.write_s = costs_.is_measured ? std::max(costs_.write_s, write_s) : write_s;
  costs_.is_measured = true;
  return times;
}

bool CheckpointManager::is_due(double since_last_s, WallTime now) {
  if (!is_automatic_ || !saver_) return false;
  costs_.mtbf = mtbf_;
  costs_.left.reset();
  if (deadline_)
    costs_.left = std::max<Duration>(*deadline_ - now, Duration::zero()) +
                  std::chrono::duration_cast<Duration>(Seconds(since_last_s));
  interval_ = checkpoint::choose_interval(costs_);
  return since_last_s >= Seconds(interval_->every).count();
}

void CheckpointManager::record_validation(Step step, const ValidationMetrics& validated) {
  validated_step_ = step;
  validated_ = validated;
}

std::optional<std::string> CheckpointManager::notice() {
  if (!interval_) return std::nullopt;
  const double now_s = Seconds(interval_->every).count();
  const double reported_s = reported_interval_ ? Seconds(reported_interval_->every).count() : 0;
  // A change of 10 % is not reported, nor a shorter interval before the deadline.
  const bool is_new = !reported_interval_ || (costs_.is_measured && !was_measured_) ||
                      std::abs(now_s - reported_s) > 0.1 * reported_s;
  const checkpoint::Interval chosen = *std::exchange(interval_, std::nullopt);
  if (!is_new || (reported_interval_ && was_measured_ && costs_.left && now_s < reported_s))
    return std::nullopt;
  reported_interval_ = chosen;
  was_measured_ = costs_.is_measured;
  return format("checkpoint every {}: {}", rounded_duration(chosen.every), chosen.reason);
}

std::optional<std::string> CheckpointManager::local_error() {
  if (!saver_ || is_saver_in_use()) return std::nullopt;
  const std::optional<checkpoint::SaveTimes> times = saver_->last_times();
  const std::string now = times ? times->local_error.to_string() : "";
  const bool is_new = !times || times->local_error.ok() ? false : now != local_error_;
  if (is_new) local_error_ = now;
  return is_new ? std::optional(now) : std::nullopt;
}

Result<Restored> restore(const Path& folder, const RankEnvironment& environment, const ModelState& model,
                         const NamedTensors& optimizer, const checkpoint::StateValues& hyper_parameters) {
  checkpoint::Targets targets;
  const NamedTensors host_model = host_copies(model.all);
  const NamedTensors host_optimizer = host_copies(optimizer);
  STOKER_ASSIGN_OR_RETURN(state, views_of<MutableTensorView>(host_model));
  STOKER_ASSIGN_OR_RETURN(beside, views_of<MutableTensorView>(host_optimizer));
  targets.model = std::move(state);
  targets.optimizer = std::move(beside);
  targets.optional_prefixes = {std::string(kOptimizer), std::string(kMean), std::string(kScaler)};
  STOKER_ASSIGN_OR_RETURN(loaded,
                          checkpoint::load(folder, {environment.rank, environment.world_size}, targets));
  copy_values(host_model, model.all);
  copy_values(host_optimizer, optimizer);
  const at::Device device = model.all.empty() ? at::Device(at::kCPU) : model.all.front().tensor.device();
  if (loaded.rank_state) STOKER_RETURN_IF_ERROR(restore_random(*loaded.rank_state, device));
  STOKER_ASSIGN_OR_RETURN(position, to_position(loaded));
  if (position.data.position > 0)
    STOKER_RETURN_IF_ERROR(check_order(loaded.hyper_parameters, hyper_parameters));
  Restored restored{position, {}};
  if (loaded.saved_world_size != environment.world_size)
    restored.differences.push_back(
        format("world size {} → {}", loaded.saved_world_size, environment.world_size));
  // A key unknown to the Stoker that saved the checkpoint is not a difference.
  for (const auto& [name, value] : hyper_parameters.values()) {
    if (differs(loaded.hyper_parameters, hyper_parameters, name))
      restored.differences.push_back(format(
          "{} {} → {}", name, value_text(loaded.hyper_parameters.values().at(name)), value_text(value)));
  }
  const bool is_other_kind = differs(loaded.hyper_parameters, hyper_parameters, kKind);
  for (std::string& notice : reset_missing_state(loaded, is_other_kind, model, optimizer))
    restored.differences.push_back(std::move(notice));
  return restored;
}

Result<ResumeStep> find_resume_step(const CheckpointManagerOptions& options,
                                    const RankEnvironment& environment) {
  const Path directory = directory_of(options, environment);
  const Path local = local_of(options, environment);
  const bool may_be_kept = !local.empty() && !directory.empty() && environment.attempt_name() != "1";
  if (!may_be_kept) return ResumeStep{environment.resume, ""};
  STOKER_ASSIGN_OR_RETURN(recovered,
                          checkpoint::recover_local_steps({.directory = directory,
                                                           .local = local,
                                                           .rank = environment.rank,
                                                           .world_size = environment.world_size,
                                                           .is_local_rank0 = environment.local_rank == 0,
                                                           .writer = environment.attempt_name(),
                                                           .limit = options.limit,
                                                           .observe = {}}));
  if (!recovered.step) return ResumeStep{environment.resume, recovered.lost};
  const std::string where =
      format("step {}: recovered from node-local disks to shared storage", *recovered.step);
  return ResumeStep{directory / checkpoint::step_folder_name(*recovered.step),
                    recovered.lost.empty() ? where : where + "; " + recovered.lost};
}

}  // namespace stoker::train
