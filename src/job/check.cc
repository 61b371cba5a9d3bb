#include "job/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <re2/re2.h>

#include "job/profile_settings.h"
#include "slurm/script/batch_script.h"
#include "stoker/text.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;
using config::Origin;

// Set for every rank by Stoker (docs/environment.md). Users may set MASTER_PORT as a preference.
constexpr std::array<std::string_view, 6> kContract = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR"};

// `run` is a scalar or a map.
bool has_run(const EffectiveConfig& effective) {
  return effective.has_group("run") || effective.entries().contains("run");
}

void check_has_workload(const EffectiveConfig& effective, const Origin& file, ErrorList& errors) {
  if (!has_run(effective) && !effective.has_group("train"))
    errors.add(file, "neither 'run' nor 'train' is set");
}

void check_names(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  const bool is_good = !job.name.empty() && job.name.size() <= 64 && job.name.front() != '.' &&
                       std::all_of(job.name.begin(), job.name.end(), is_name_character);
  if (!is_good && effective.entries().contains("name")) {
    errors.add(
        effective.origin("name"),
        format(
            "name: '{}' is not a valid name: letters, digits, '.', '_' and '-', at most 64, no leading '.'",
            printable(job.name)));
  }
  for (const auto& [name, source] : job.data) {
    const bool is_lower = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_lower) {
      errors.add(effective.origin(format("data.{}", name)),
                 format("data.{}: lower-case letters, digits and '_' only, for STOKER_DATA_{}", name,
                        config::variable_name(name)));
    }
    if (source.split && (source.split->empty() ||
                         !std::all_of(source.split->begin(), source.split->end(), is_name_character))) {
      errors.add(effective.origin(format("data.{}.split", name)),
                 format("data.{}.split: '{}' is not a valid split name", name, printable(*source.split)));
    }
    if (source.start != DataStart::automatic && source.place == DataPlace::shared) {
      errors.add(
          effective.origin(format("data.{}.start", name)),
          format("data.{}.start: applies only to a copy on the nodes (data.{}.place is shared)", name, name));
    }
  }
  for (const auto& [name, value] : job.environment.variables) {
    const std::string key = format("environment.variables.{}", name);
    if (name.find('-') != std::string::npos) {
      errors.add(effective.origin(key), format("{}: a variable name must not contain '-'", key));
    } else if (name.starts_with("STOKER_") ||
               std::find(kContract.begin(), kContract.end(), name) != kContract.end()) {
      errors.add(effective.origin(key), format("{}: is set by Stoker for every rank", key));
    } else if (name == "MASTER_PORT" && !is_port(value)) {
      errors.add(effective.origin(key), format("{}: '{}' is not a port", key, printable(value)));
    }
  }
}

void check_command(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  if (!job.command) return;
  const std::string& program = job.command->arguments.front();
  const std::size_t equals = program.find('=');
  if (job.command->is_shell) {
    if (trim(job.command->arguments.back()).empty())
      errors.add(effective.origin("run.shell"), "run.shell: is empty");
  } else if (equals != std::string::npos && config::is_name(program.substr(0, equals))) {
    errors.add(
        effective.origin("run"),
        format("run: '{}' is not a program; write environment: {{variables: {{{}: {}}}}}", printable(program),
               program.substr(0, equals), config::yaml_scalar(program.substr(equals + 1))));
  }
}

// Number and distribution of the ranks. With `ranks`, ranks_per_node is the maximum of a node.
void complete_and_check_ranks(const EffectiveConfig& effective, Resources& resources, ErrorList& errors) {
  if (resources.ranks_per_gpu > 1 && resources.gpus_per_rank > 1) {
    errors.add(effective.origin("resources.ranks_per_gpu"),
               format("resources.ranks_per_gpu: {} ranks share a GPU, but resources.gpus_per_rank is {}",
                      resources.ranks_per_gpu, resources.gpus_per_rank));
  }
  if (!resources.ranks) return;
  const std::uint32_t ranks = *resources.ranks;
  const Origin origin = effective.origin("resources.ranks");
  if (effective.origin("resources.ranks_per_node").layer() == config::Layer::built_in) {
    resources.ranks_per_node = (ranks + resources.nodes - 1) / resources.nodes;
  }
  if (ranks < resources.nodes) {
    errors.add(origin,
               format("resources.ranks: {} leave one of {} nodes without a rank", ranks, resources.nodes));
  } else if (ranks > resources.nodes * resources.ranks_per_node) {
    errors.add(origin, format("resources.ranks: {} are more than {} nodes x {} ranks_per_node", ranks,
                              resources.nodes, resources.ranks_per_node));
  }
}

// Names that reach a command line of `module` or conda, where a leading dash would start an option.
void check_environment(const EffectiveConfig& effective, const job::Environment& environment,
                       ErrorList& errors) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= 256 && name.front() != '-' &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
  };
  for (const std::string& module : environment.modules) {
    if (!is_name(module))
      errors.add(effective.origin("environment.modules"),
                 format("environment.modules: '{}' is not a valid module name", printable(module)));
  }
  if (environment.conda && !is_name(*environment.conda)) {
    errors.add(
        effective.origin("environment.conda"),
        format("environment.conda: '{}' is not a valid environment name", printable(*environment.conda)));
  }
  if (environment.container && environment.venv) {
    errors.add(effective.origin("environment.container"),
               "environment.container: contains its own Python; remove `venv`");
  }
  if (environment.wheelhouse && !environment.venv) {
    errors.add(effective.origin("environment.wheelhouse"),
               "environment.wheelhouse: has no effect without `venv`");
  }
}

// Batch scripts quote these values; this only refuses meaningless ones.
void check_slurm(const EffectiveConfig& effective, const job::SlurmOptions& slurm, ErrorList& errors) {
  const auto check_word = [&](std::string_view key, const std::optional<std::string>& word) {
    if (!word) return;
    const bool is_word = !word->empty() && word->size() <= 256 && word->front() != '-' &&
                         std::all_of(word->begin(), word->end(), [](char c) {
                           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
                         });
    if (!is_word)
      errors.add(effective.origin(key), format("{}: '{}' is not a valid name", key, printable(*word)));
  };
  check_word("slurm.account", slurm.account);
  check_word("slurm.partition", slurm.partition);
  check_word("slurm.qos", slurm.qos);
  check_word("slurm.reservation", slurm.reservation);
  for (const std::string& option : slurm.extra) {
    const Status status = slurm::check_extra(option);
    if (!status.ok())
      errors.add(effective.origin("slurm.extra"), format("slurm.extra: {}", status.message()));
  }
}

// Contradictions between several jobs of one run.
void check_many_jobs(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  if (job.chain.is_enabled() && job.array.is_enabled() && job.array.bundle.value_or(1) > 1) {
    errors.add(effective.origin("array.bundle"),
               format("array.bundle: {}, but tasks with chains cannot share a job (chain, {})",
                      *job.array.bundle, effective.origin("chain").where()));
  }
  const bool is_short =
      job.chain.time_per_link && job.resources.time && *job.resources.time < *job.chain.time_per_link;
  if (is_short) {
    errors.add(
        effective.origin("chain.time_per_link"),
        format("chain.time_per_link: {} is more than resources.time, the total time of all links ({}, {})",
               duration_text(*job.chain.time_per_link), duration_text(*job.resources.time),
               effective.origin("resources.time").where()));
  }
  for (const std::string& option : job.slurm.extra) {
    if (!job.after.empty() && (option.starts_with("--dep") || option.starts_with("-d")))
      errors.add(effective.origin("after"),
                 format("after: conflicts with '{}' in slurm.extra ({})", printable(option),
                        effective.origin("slurm.extra").where()));
  }
  for (const std::string& entry : job.after) {
    if (trim(entry).empty() || entry.size() > 4096)
      errors.add(effective.origin("after"),
                 format("after: '{}' is neither a job file nor a run", printable(entry.substr(0, 40))));
  }
}

// Results must be inside the folder on the node.
void check_stage(const EffectiveConfig& effective, const job::StageOptions& stage, ErrorList& errors) {
  for (const std::string& name : stage.back) {
    const Path path = Path(name).lexically_normal();
    const bool is_inside =
        !name.empty() && path.is_relative() && path != "." && !path.string().starts_with("..");
    if (!is_inside) {
      errors.add(
          effective.origin("stage.back"),
          format("stage.back: '{}' is not a path below STOKER_STAGE_DIR (such as results)", printable(name)));
    }
  }
}

constexpr std::array kCifarMean = {0.4914, 0.4822, 0.4465};
constexpr std::array kCifarDeviation = {0.2470, 0.2435, 0.2616};
constexpr std::array kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array kImageNetDeviation = {0.229, 0.224, 0.225};
constexpr double kOneCycleWarmup = 0.3;
constexpr std::array kHidden = {256.0, 256.0};

void complete_image(const EffectiveConfig& effective, TrainOptions& train) {
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

void check_image(const EffectiveConfig& effective, const ImageOptions& image, ErrorList& errors) {
  if (image.validation_resize < image.size) {
    errors.add(effective.origin("train.image.validation_resize"),
               format("train.image.validation_resize: {} is smaller than train.image.size ({})",
                      image.validation_resize, image.size));
  }
  const auto check_channels = [&](std::string_view key, const std::vector<double>& values) {
    if (values.size() != 3) {
      errors.add(effective.origin(key),
                 format("{}: expected 3 numbers (red, green, blue), got {}", key, values.size()));
    }
  };
  check_channels("train.image.mean", image.mean);
  check_channels("train.image.standard_deviation", image.standard_deviation);
}

void check_data_name(const EffectiveConfig& effective, const Job& job, std::string_view key,
                     std::string_view name, ErrorList& errors) {
  if (job.data.contains(std::string(name))) return;
  std::vector<std::string_view> known;
  for (const auto& [other, source] : job.data) known.push_back(other);
  const bool is_written = effective.origin(key).source != nullptr;
  errors.add(effective.origin(is_written ? key : "train"),
             format("{}: no '{}' in data{}", key, printable(name),
                    known.empty() ? format("; add data: {{{}: {{source: FOLDER}}}}", printable(name))
                                  : suggestion(name, known)));
}

// Position of the error: the key if it is set, else `train`.
Origin origin_of(const EffectiveConfig& effective, std::string_view key) {
  return effective.origin(effective.origin(key).source != nullptr ? key : "train");
}

void complete_shape(const EffectiveConfig& effective, TrainOptions& train) {
  const auto is_set = [&](std::string_view key) { return effective.entries().contains(key); };
  if (!is_set("train.validation_batch")) train.validation_batch = train.batch;
  if (!is_set("train.schedule.warmup"))
    train.schedule.warmup = train.schedule.kind == ScheduleKind::one_cycle ? kOneCycleWarmup : 0;
  if (!is_set("train.mlp.hidden")) train.mlp.hidden.assign(kHidden.begin(), kHidden.end());
}

void check_optimizer(const EffectiveConfig& effective, const TrainOptions& train, ErrorList& errors) {
  const OptimizerOptions& optimizer = train.optimizer;
  const bool is_sgd = optimizer.kind == OptimizerKind::sgd;
  if (!is_sgd && effective.origin("train.optimizer.lr").source == nullptr) {
    errors.add(origin_of(effective, "train.optimizer.kind"),
               format("train.optimizer.lr: required (train.optimizer.kind: {})", to_text(optimizer.kind)));
  }
  if (is_sgd && optimizer.nesterov && optimizer.momentum == 0) {
    errors.add(effective.origin("train.optimizer.nesterov"),
               "train.optimizer.nesterov: needs momentum, and train.optimizer.momentum is 0");
  }
}

void check_schedule(const EffectiveConfig& effective, const ScheduleOptions& schedule, ErrorList& errors) {
  if (schedule.cycle_momentum && schedule.momentum_low > schedule.momentum_high) {
    errors.add(effective.origin("train.schedule.momentum_low"),
               format("train.schedule.momentum_low: {} is above momentum_high ({})", schedule.momentum_low,
                      schedule.momentum_high));
  }
  if (!std::is_sorted(schedule.drop_at.begin(), schedule.drop_at.end())) {
    errors.add(effective.origin("train.schedule.drop_at"), "train.schedule.drop_at: must be ascending");
  }
}

// Keys that apply only to some models.
void check_fits_model(const EffectiveConfig& effective, const TrainOptions& train, ErrorList& errors) {
  const std::string_view model = to_text(train.model);
  const bool is_residual = model.find("resnet") != std::string_view::npos;
  const bool has_images = train.model != ModelKind::gpt && train.model != ModelKind::mlp;
  const auto refuse = [&](std::string_view key, std::string_view who) {
    errors.add(origin_of(effective, key),
               format("{}: applies only to {} (train.model: {})", key, who, model));
  };
  if (train.model == ModelKind::torchscript && !train.file)
    errors.add(origin_of(effective, "train.model"), "train.file: required (train.model: torchscript)");
  if (train.model != ModelKind::torchscript && train.file) refuse("train.file", "the model torchscript");
  if (!is_residual && train.sync_batch_norm) refuse("train.sync_batch_norm", "residual networks");
  if (!is_residual && train.heads > 1) refuse("train.heads", "residual networks");
  if (!is_residual && train.stochastic_depth > 0) refuse("train.stochastic_depth", "residual networks");
  if (!has_images && train.mixup > 0) refuse("train.mixup", "images");
  if (!has_images && train.cutmix > 0) refuse("train.cutmix", "images");
  if (!has_images && train.channels_last) refuse("train.channels_last", "images");
}

void complete_order(const EffectiveConfig& effective, TrainOptions& train, ErrorList& errors) {
  constexpr std::uint32_t kShards = 16;
  constexpr std::uint32_t kChunks = 256;
  const bool has_windows = train.shuffle == Shuffle::by_shard || train.shuffle == Shuffle::by_chunk;
  if (train.window && !has_windows) {
    errors.add(effective.origin("train.window"),
               format("train.window: applies only to by_shard and by_chunk (train.shuffle: {})",
                      to_text(train.shuffle)));
  } else if (!train.window && has_windows) {
    train.window = train.shuffle == Shuffle::by_shard ? kShards : kChunks;
  }
}

void check_mixing(const EffectiveConfig& effective, const TrainOptions& train, ErrorList& errors) {
  constexpr double kLeast = 0.05;  // below this the shares are 0 and 1 up to rounding
  const auto check = [&](std::string_view key, double alpha) {
    if (alpha > 0 && alpha < kLeast)
      errors.add(effective.origin(key), format("{}: {} is below {} (0 to disable)", key, alpha, kLeast));
  };
  check("train.mixup", train.mixup);
  check("train.cutmix", train.cutmix);
}

void check_model(const EffectiveConfig& effective, const TrainOptions& train, ErrorList& errors) {
  constexpr std::uint32_t kPatch = 16;
  if (train.model == ModelKind::vit_s16 && train.image.size % kPatch != 0) {
    errors.add(origin_of(effective, "train.image.size"),
               format("train.image.size: {} is not a multiple of {} (train.model: vit-s16)", train.image.size,
                      kPatch));
  }
  if (train.model == ModelKind::gpt && !train.classes) {
    errors.add(effective.origin("train"),
               "train.classes: the size of the vocabulary is required (train.model: gpt)");
  }
  if (train.gpt.width % train.gpt.heads != 0) {
    errors.add(origin_of(effective, "train.gpt.width"),
               format("train.gpt.width: {} is not divisible by train.gpt.heads ({})", train.gpt.width,
                      train.gpt.heads));
  }
  if (train.mlp.component && !train.mlp.columns.empty())
    errors.add(effective.origin("train.mlp.component"),
               "train.mlp.component: applies only to arrays, but train.mlp.columns selects JSON numbers");
  const auto is_whole = [](double width) { return width == std::floor(width); };
  if (!std::all_of(train.mlp.hidden.begin(), train.mlp.hidden.end(), is_whole))
    errors.add(effective.origin("train.mlp.hidden"), "train.mlp.hidden: expected whole numbers");
}

void check_metrics_regex(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  if (!job.record.metrics_regex) return;
  const RE2 pattern(*job.record.metrics_regex, RE2::Quiet);
  const Origin origin = effective.origin("record.metrics_from.regex");
  if (!pattern.ok()) {
    errors.add(origin, format("record.metrics_from.regex: {} at '{}'", pattern.error(),
                              printable(pattern.error_arg())));
    return;
  }
  const auto& names = pattern.NamedCapturingGroups();
  if (names.size() == names.count("step"))
    errors.add(origin,
               "record.metrics_from.regex: no named group for a metric, such as 'loss: (?P<loss>\\S+)'");
}

void check_trackers(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  const RecordOptions& record = job.record;
  if (record.mlflow && !record.mlflow->starts_with("http://") && !record.mlflow->starts_with("https://")) {
    errors.add(
        effective.origin("record.mlflow"),
        format("record.mlflow: '{}' does not begin with http:// or https://", printable(*record.mlflow)));
  }
  // As MLflow checks it.
  if (record.mlflow_register && record.mlflow_register->find_first_of("/:") != std::string::npos) {
    errors.add(effective.origin("record.mlflow_register"),
               format("record.mlflow_register: '{}' contains / or :, which names of models must not",
                      printable(*record.mlflow_register)));
  }
  if (record.mlflow_register_path && !record.mlflow_register) {
    errors.add(effective.origin("record.mlflow_register_path"),
               "record.mlflow_register_path: needs record.mlflow_register, the name of the model");
  }
}

}  // namespace

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool is_port(std::string_view text) {
  std::int64_t port = 0;
  return parse_number(text, &port) && port >= 1 && port <= 65535;
}

bool check_run_or_train(const EffectiveConfig& effective, ErrorList& errors) {
  if (!has_run(effective) || !effective.has_group("train")) return true;
  errors.add(effective.origin("train"),
             format("'train' and 'run' ({}) cannot both be set", effective.origin("run").where()));
  return false;
}

void complete_and_check(const EffectiveConfig& effective, const Origin& file, Job& job, ErrorList& errors) {
  const bool is_readable = errors.empty();
  check_names(effective, job, errors);
  check_metrics_regex(effective, job, errors);
  check_slurm(effective, job.slurm, errors);
  check_environment(effective, job.environment, errors);
  check_stage(effective, job.stage, errors);
  check_trackers(effective, job, errors);
  if (!is_readable) return;
  check_has_workload(effective, file, errors);
  check_command(effective, job, errors);
  complete_and_check_ranks(effective, job.resources, errors);
  check_many_jobs(effective, job, errors);
  check_profile(effective, job, errors);
  if (job.train && errors.empty()) complete_and_check_train(effective, job, errors);
}

void complete_and_check_train(const EffectiveConfig& effective, Job& job, ErrorList& errors) {
  TrainOptions& train = *job.train;
  complete_shape(effective, train);
  complete_image(effective, train);
  check_image(effective, train.image, errors);
  check_data_name(effective, job, "train.training_data", train.training_data, errors);
  if (train.validation_data) {
    check_data_name(effective, job, "train.validation_data", *train.validation_data, errors);
  } else if (job.data.contains("validation")) {
    train.validation_data = "validation";
  }
  complete_order(effective, train, errors);
  check_optimizer(effective, train, errors);
  check_schedule(effective, train.schedule, errors);
  check_fits_model(effective, train, errors);
  check_mixing(effective, train, errors);
  check_model(effective, train, errors);
  const bool validates = train.validation_data && train.validate_every > 0;
  if (job.checkpoint.keep_best > 0 && !validates) {
    errors.add(effective.origin("checkpoint.keep_best"),
               "checkpoint.keep_best: requires validation "
               "(train.validation_data, validate_every)");
  }
}

}  // namespace stoker::job
