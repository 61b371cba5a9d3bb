#include "torch/trainer/setup.h"

#include <algorithm>

namespace stoker::torch {

namespace {

std::chrono::milliseconds in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

data::LoaderOptions common_loader(const job::TrainOptions& train, const RankEnvironment& environment) {
  data::LoaderOptions options;
  options.seed = train.seed;
  options.rank.rank = environment.rank;
  options.rank.world = environment.world_size;
  options.threads = std::max<std::uint32_t>(1, train.loader_threads);
  options.prefetch = std::max<std::uint32_t>(1, train.prefetch);
  return options;
}

using Operations = std::vector<data::Operation>;

Operations centre_crop(const job::ImageOptions& image) {
  return {{"resize", {{"size", static_cast<double>(image.validation_resize)}}},
          {"center_crop", {{"size", static_cast<double>(image.size)}}}};
}

Operations crop_of(const job::ImageOptions& image) {
  switch (image.crop) {
    case job::Crop::pad:
      return {{"random_crop",
               {{"size", static_cast<double>(image.size)}, {"padding", static_cast<double>(image.padding)}}}};
    case job::Crop::resize:
      return {{"random_resized_crop", {{"size", static_cast<double>(image.size)}}}};
    case job::Crop::none:
      break;
  }
  return centre_crop(image);
}

data::Operation normalize(const job::ImageOptions& image) {
  return {"normalize", {{"mean", image.mean}, {"std", image.standard_deviation}}};
}

}  // namespace

Rendezvous rendezvous(const RankEnvironment& environment, const job::Timeouts& timeouts) {
  Rendezvous meeting;
  meeting.rank = environment.rank;
  meeting.world_size = environment.world_size;
  meeting.address = environment.address;
  meeting.port = environment.port;
  meeting.connect_within = in_ms(timeouts.start);
  meeting.answer_within = in_ms(timeouts.communication);
  return meeting;
}

Result<data::Dataset> open_dataset(const job::Job& job, const RankEnvironment& environment,
                                   const std::string& name) {
  const auto entry = job.data.find(name);
  if (entry == job.data.end()) return invalid("data.{}: no such dataset in the job", name);
  const Path folder = dataset_folder(environment, name, entry->second.source);
  return data::Dataset::open(folder, entry->second.split.value_or(""));
}

data::LoaderOptions training_loader(const job::TrainOptions& train, const RankEnvironment& environment) {
  data::LoaderOptions options = common_loader(train, environment);
  options.batch = train.batch;
  options.shuffle = data::Shuffle::every_epoch;
  options.rank.remainder = data::Remainder::pad;
  options.transform.operations = crop_of(train.image);
  if (train.image.flip) options.transform.operations.push_back({"random_horizontal_flip"});
  options.transform.operations.push_back(normalize(train.image));
  return options;
}

data::LoaderOptions validation_loader(const job::TrainOptions& train, const RankEnvironment& environment) {
  data::LoaderOptions options = common_loader(train, environment);
  options.batch = train.validation_batch;
  options.shuffle = data::Shuffle::none;
  options.rank.remainder = data::Remainder::exact;
  options.transform.operations = centre_crop(train.image);
  options.transform.operations.push_back(normalize(train.image));
  return options;
}

Result<std::optional<data::Batch>> next_batch(data::Loader& loader, Duration limit) {
  auto batch = loader.next(Deadline::after(limit));
  if (batch.ok() || batch.error().code() != Code::timeout) return batch;
  return timeout("{} (timeouts.data: {})", batch.error().message(), rounded_duration(limit));
}

Result<std::int64_t> class_count(const job::TrainOptions& train, const std::vector<NamedDataset>& datasets) {
  std::uint64_t classes = train.classes.value_or(0);
  if (!train.classes) {
    for (const NamedDataset& item : datasets) {
      classes = std::max({classes, item.dataset->named_classes(), item.dataset->label_bound()});
    }
  }
  for (const NamedDataset& item : datasets) {
    if (item.dataset->label_bound() > classes) {
      return invalid("train.classes: {} is too few: labels of '{}' go up to {}", classes, item.name,
                     item.dataset->label_bound() - 1);
    }
  }
  return static_cast<std::int64_t>(classes);
}

ModelSpec model_spec(const job::TrainOptions& train, std::int64_t classes) {
  return {std::string(job::to_text(train.model)), classes, train.seed};
}

SgdOptions sgd_options(const job::OptimizerOptions& optimizer) {
  return {.kind = optimizer.nesterov ? Momentum::nesterov : Momentum::classic,
          .weight_decay = optimizer.weight_decay};
}

RatePlan::RatePlan(const job::TrainOptions& train, std::int64_t total_steps)
    : schedule_(train.schedule),
      optimizer_(train.optimizer),
      one_cycle_{
          .peak_lr = train.optimizer.lr,
          .total_steps = std::max<std::int64_t>(1, total_steps),
          .warmup = train.schedule.warmup,
          .start_divisor = train.schedule.start_divisor,
          .end_divisor = train.schedule.end_divisor,
          .annealing = train.schedule.anneal == job::Anneal::linear ? Annealing::linear : Annealing::cosine,
          .momentum_low = train.schedule.momentum_low,
          .momentum_high = train.schedule.momentum_high} {}

Rates RatePlan::at(std::int64_t index) const {
  if (schedule_.kind == job::ScheduleKind::constant) return {optimizer_.lr, optimizer_.momentum};
  Rates rates = one_cycle_.at(std::clamp<std::int64_t>(index, 0, one_cycle_.total_steps - 1));
  if (!schedule_.cycle_momentum) rates.momentum = optimizer_.momentum;
  return rates;
}

}  // namespace stoker::torch
