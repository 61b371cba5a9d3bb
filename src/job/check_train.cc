#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "job/check.h"

namespace stoker::job {
namespace {

using config::Effective;
using config::Mistakes;
using config::Origin;

constexpr std::array kCifarMean = {0.4914, 0.4822, 0.4465};
constexpr std::array kCifarDeviation = {0.2470, 0.2435, 0.2616};
constexpr std::array kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array kImageNetDeviation = {0.229, 0.224, 0.225};
constexpr double kOneCycleWarmup = 0.3;
constexpr std::array kHidden = {256.0, 256.0};

void complete_image(const Effective& effective, TrainOptions& train) {
  const auto is_set = [&](std::string_view key) { return effective.entries().contains(key); };
  const bool is_cifar = to_text(train.model).starts_with("cifar");
  ImageOptions& image = train.image;
  if (!is_set("train.image.size")) image.size = is_cifar ? 32 : 224;
  if (!is_set("train.image.validation_resize"))
    image.validation_resize = is_cifar ? image.size : image.size * 8 / 7;
  if (!is_set("train.image.crop")) image.crop = is_cifar ? Crop::pad : Crop::resize;
  const auto& mean = is_cifar ? kCifarMean : kImageNetMean;
  const auto& deviation = is_cifar ? kCifarDeviation : kImageNetDeviation;
  if (!is_set("train.image.mean")) image.mean.assign(mean.begin(), mean.end());
  if (!is_set("train.image.standard_deviation"))
    image.standard_deviation.assign(deviation.begin(), deviation.end());
}

void check_image(const Effective& effective, const ImageOptions& image, Mistakes& mistakes) {
  if (image.validation_resize < image.size) {
    mistakes.add(effective.origin("train.image.validation_resize"),
                 format("train.image.validation_resize: {} is smaller than train.image.size ({})",
                        image.validation_resize, image.size));
  }
  const auto check_channels = [&](std::string_view key, const std::vector<double>& values) {
    if (values.size() != 3) {
      mistakes.add(effective.origin(key),
                   format("{}: wants 3 numbers (red, green, blue), got {}", key, values.size()));
    }
  };
  check_channels("train.image.mean", image.mean);
  check_channels("train.image.standard_deviation", image.standard_deviation);
}

void check_data_name(const Effective& effective, const Job& job, std::string_view key, std::string_view name,
                     Mistakes& mistakes) {
  if (job.data.contains(std::string(name))) return;
  std::vector<std::string_view> known;
  for (const auto& [other, source] : job.data) known.push_back(other);
  const bool is_written = effective.origin(key).source != nullptr;
  mistakes.add(effective.origin(is_written ? key : "train"),
               format("{}: no '{}' in data{}", key, printable(name),
                      known.empty() ? format("; add data: {{{}: {{source: FOLDER}}}}", printable(name))
                                    : suggestion(name, known)));
}

// Where the mistake is shown: at the key if somebody wrote it, else at `train`.
Origin origin_of(const Effective& effective, std::string_view key) {
  return effective.origin(effective.origin(key).source != nullptr ? key : "train");
}

void complete_shape(const Effective& effective, TrainOptions& train) {
  const auto is_set = [&](std::string_view key) { return effective.entries().contains(key); };
  if (!is_set("train.validation_batch")) train.validation_batch = train.batch;
  if (!is_set("train.schedule.warmup"))
    train.schedule.warmup = train.schedule.kind == ScheduleKind::one_cycle ? kOneCycleWarmup : 0;
  if (!is_set("train.mlp.hidden")) train.mlp.hidden.assign(kHidden.begin(), kHidden.end());
}

void check_optimizer(const Effective& effective, const TrainOptions& train, Mistakes& mistakes) {
  const OptimizerOptions& optimizer = train.optimizer;
  const bool is_sgd = optimizer.kind == OptimizerKind::sgd;
  if (!is_sgd && effective.origin("train.optimizer.lr").source == nullptr) {
    mistakes.add(
        origin_of(effective, "train.optimizer.kind"),
        format("train.optimizer.lr: has to be given (train.optimizer.kind: {})", to_text(optimizer.kind)));
  }
  if (is_sgd && optimizer.nesterov && optimizer.momentum == 0) {
    mistakes.add(effective.origin("train.optimizer.nesterov"),
                 "train.optimizer.nesterov: needs momentum, and train.optimizer.momentum is 0");
  }
}

void check_schedule(const Effective& effective, const ScheduleOptions& schedule, Mistakes& mistakes) {
  if (schedule.cycle_momentum && schedule.momentum_low > schedule.momentum_high) {
    mistakes.add(effective.origin("train.schedule.momentum_low"),
                 format("train.schedule.momentum_low: {} is above momentum_high ({})", schedule.momentum_low,
                        schedule.momentum_high));
  }
  if (!std::is_sorted(schedule.drop_at.begin(), schedule.drop_at.end())) {
    mistakes.add(effective.origin("train.schedule.drop_at"), "train.schedule.drop_at: is not ascending");
  }
}

// Keys that mean something to some models only.
void check_fits_model(const Effective& effective, const TrainOptions& train, Mistakes& mistakes) {
  const std::string_view model = to_text(train.model);
  const bool is_residual = model.find("resnet") != std::string_view::npos;
  const bool has_images = train.model != Model::gpt && train.model != Model::mlp;
  const auto refuse = [&](std::string_view key, std::string_view who) {
    mistakes.add(origin_of(effective, key), format("{}: is for {} (train.model: {})", key, who, model));
  };
  if (train.model == Model::torchscript && !train.file)
    mistakes.add(origin_of(effective, "train.model"),
                 "train.file: has to be given (train.model: torchscript)");
  if (train.model != Model::torchscript && train.file) refuse("train.file", "the model torchscript");
  if (!is_residual && train.sync_batch_norm) refuse("train.sync_batch_norm", "residual networks");
  if (!is_residual && train.heads > 1) refuse("train.heads", "residual networks");
  if (!is_residual && train.stochastic_depth > 0) refuse("train.stochastic_depth", "residual networks");
  if (!has_images && train.mixup > 0) refuse("train.mixup", "images");
  if (!has_images && train.cutmix > 0) refuse("train.cutmix", "images");
  if (!has_images && train.channels_last) refuse("train.channels_last", "images");
}

void complete_order(const Effective& effective, TrainOptions& train, Mistakes& mistakes) {
  constexpr std::uint32_t kShards = 16;
  constexpr std::uint32_t kChunks = 256;
  const bool has_windows = train.shuffle == ShuffleKind::by_shard || train.shuffle == ShuffleKind::by_chunk;
  if (train.window && !has_windows) {
    mistakes.add(
        effective.origin("train.window"),
        format("train.window: is for by_shard and by_chunk (train.shuffle: {})", to_text(train.shuffle)));
  } else if (!train.window && has_windows) {
    train.window = train.shuffle == ShuffleKind::by_shard ? kShards : kChunks;
  }
}

void check_mixing(const Effective& effective, const TrainOptions& train, Mistakes& mistakes) {
  constexpr double kLeast = 0.05;  // below it the shares are 0 and 1 but for rounding
  const auto check = [&](std::string_view key, double alpha) {
    if (alpha > 0 && alpha < kLeast)
      mistakes.add(effective.origin(key), format("{}: {} is below {} (0 for never)", key, alpha, kLeast));
  };
  check("train.mixup", train.mixup);
  check("train.cutmix", train.cutmix);
}

void check_model(const Effective& effective, const TrainOptions& train, Mistakes& mistakes) {
  constexpr std::uint32_t kPatch = 16;
  if (train.model == Model::vit_s16 && train.image.size % kPatch != 0) {
    mistakes.add(
        origin_of(effective, "train.image.size"),
        format("train.image.size: {} is no multiple of {} (train.model: vit-s16)", train.image.size, kPatch));
  }
  if (train.model == Model::gpt && !train.classes) {
    mistakes.add(effective.origin("train"),
                 "train.classes: the vocabulary has to be given (train.model: gpt)");
  }
  if (train.gpt.width % train.gpt.heads != 0) {
    mistakes.add(origin_of(effective, "train.gpt.width"),
                 format("train.gpt.width: {} does not divide by train.gpt.heads ({})", train.gpt.width,
                        train.gpt.heads));
  }
  if (train.mlp.component && !train.mlp.columns.empty())
    mistakes.add(effective.origin("train.mlp.component"),
                 "train.mlp.component: is for arrays, and train.mlp.columns are numbers of JSON");
  const auto is_whole = [](double width) { return width == std::floor(width); };
  if (!std::all_of(train.mlp.hidden.begin(), train.mlp.hidden.end(), is_whole))
    mistakes.add(effective.origin("train.mlp.hidden"), "train.mlp.hidden: wants whole numbers");
}

}  // namespace

void complete_and_check_train(const Effective& effective, Job& job, Mistakes& mistakes) {
  TrainOptions& train = *job.train;
  complete_shape(effective, train);
  complete_image(effective, train);
  check_image(effective, train.image, mistakes);
  check_data_name(effective, job, "train.training_data", train.training_data, mistakes);
  if (train.validation_data) {
    check_data_name(effective, job, "train.validation_data", *train.validation_data, mistakes);
  } else if (job.data.contains("validation")) {
    train.validation_data = "validation";
  }
  complete_order(effective, train, mistakes);
  check_optimizer(effective, train, mistakes);
  check_schedule(effective, train.schedule, mistakes);
  check_fits_model(effective, train, mistakes);
  check_mixing(effective, train, mistakes);
  check_model(effective, train, mistakes);
  const bool validates = train.validation_data && train.validate_every > 0;
  if (job.checkpoint.keep_best > 0 && !validates) {
    mistakes.add(effective.origin("checkpoint.keep_best"),
                 "checkpoint.keep_best: nothing is validated, so no checkpoint is best "
                 "(train.validation_data, validate_every)");
  }
}

}  // namespace stoker::job
