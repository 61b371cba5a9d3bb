#include "job/check.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "slurm/script/batch_script.h"

namespace stoker::job {
namespace {

using config::Effective;
using config::Mistakes;
using config::Origin;

// Set for every rank by Stoker itself (docs/environment.md). MASTER_PORT is no part of it: it is a wish.
constexpr std::array<std::string_view, 6> kContract = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR"};

constexpr std::array kCifarMean = {0.4914, 0.4822, 0.4465};
constexpr std::array kCifarDeviation = {0.2470, 0.2435, 0.2616};
constexpr std::array kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array kImageNetDeviation = {0.229, 0.224, 0.225};

void check_what_runs(const Effective& effective, const Origin& file, Mistakes& mistakes) {
  const bool has_run = effective.has_group("run") || effective.entries().contains("run");
  const bool has_train = effective.has_group("train");
  if (has_run && has_train) {
    const Origin run = effective.origin("run");
    mistakes.add(effective.origin("train"),
                 format("'train' beside 'run' ({}): a job has one of them", run.where()));
  } else if (!has_run && !has_train) {
    mistakes.add(file, "neither 'run' nor 'train' says what to run");
  }
}

void check_names(const Effective& effective, const Job& job, Mistakes& mistakes) {
  const bool is_good = !job.name.empty() && job.name.size() <= 64 && job.name.front() != '.' &&
                       std::all_of(job.name.begin(), job.name.end(), is_name_character);
  if (!is_good && effective.entries().contains("name")) {
    mistakes.add(
        effective.origin("name"),
        format("name: '{}' does not fit: letters, digits, '.', '_' and '-', at most 64, no '.' first",
               printable(job.name)));
  }
  for (const auto& [name, source] : job.data) {
    const bool is_lower = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_lower) {
      mistakes.add(effective.origin(format("data.{}", name)),
                   format("data.{}: lower-case letters, digits and '_' only, for STOKER_DATA_{}", name,
                          config::variable_name(name)));
    }
    if (source.split && (source.split->empty() ||
                         !std::all_of(source.split->begin(), source.split->end(), is_name_character))) {
      mistakes.add(effective.origin(format("data.{}.split", name)),
                   format("data.{}.split: '{}' is no split's name", name, printable(*source.split)));
    }
  }
  for (const auto& [name, value] : job.environment.variables) {
    const std::string key = format("environment.variables.{}", name);
    if (name.find('-') != std::string::npos) {
      mistakes.add(effective.origin(key), format("{}: a variable's name has no '-'", key));
    } else if (name.starts_with("STOKER_") ||
               std::find(kContract.begin(), kContract.end(), name) != kContract.end()) {
      mistakes.add(effective.origin(key), format("{}: is set by Stoker for every rank", key));
    } else if (std::int64_t port = 0;
               name == "MASTER_PORT" && (!parse_number(value, &port) || port < 1 || port > 65535)) {
      mistakes.add(effective.origin(key), format("{}: '{}' is not a port", key, printable(value)));
    }
  }
}

void check_command(const Effective& effective, const Job& job, Mistakes& mistakes) {
  if (!job.command) return;
  const std::string& program = job.command->arguments.front();
  const std::size_t equals = program.find('=');
  if (job.command->is_shell) {
    if (trim(job.command->arguments.back()).empty())
      mistakes.add(effective.origin("run.shell"), "run.shell: is empty");
  } else if (equals != std::string::npos && config::is_name(program.substr(0, equals))) {
    mistakes.add(
        effective.origin("run"),
        format("run: '{}' is no program; write environment: {{variables: {{{}: {}}}}}", printable(program),
               program.substr(0, equals), config::yaml_scalar(program.substr(equals + 1))));
  }
}

// What goes into a batch script is quoted there; here is only refused what can mean nothing.
void check_slurm(const Effective& effective, const job::SlurmOptions& slurm, Mistakes& mistakes) {
  const auto check_word = [&](std::string_view key, const std::optional<std::string>& word) {
    if (!word) return;
    const bool is_word = !word->empty() && word->size() <= 256 && word->front() != '-' &&
                         std::all_of(word->begin(), word->end(), [](char c) {
                           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
                         });
    if (!is_word) mistakes.add(effective.origin(key), format("{}: '{}' is no name", key, printable(*word)));
  };
  check_word("slurm.account", slurm.account);
  check_word("slurm.partition", slurm.partition);
  check_word("slurm.qos", slurm.qos);
  check_word("slurm.reservation", slurm.reservation);
  for (const std::string& option : slurm.extra) {
    const Status status = slurm::check_extra(option);
    if (!status.ok())
      mistakes.add(effective.origin("slurm.extra"), format("slurm.extra: {}", status.message()));
  }
}

void complete_image(const Effective& effective, TrainOptions& train) {
  const auto is_set = [&](std::string_view key) { return effective.entries().contains(key); };
  const bool is_cifar = train.model == Model::cifar_resnet20;
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

void complete_train(const Effective& effective, Job& job, Mistakes& mistakes) {
  TrainOptions& train = *job.train;
  if (!effective.entries().contains("train.validation_batch")) train.validation_batch = train.batch;
  complete_image(effective, train);
  check_image(effective, train.image, mistakes);
  check_data_name(effective, job, "train.training_data", train.training_data, mistakes);
  if (train.validation_data) {
    check_data_name(effective, job, "train.validation_data", *train.validation_data, mistakes);
  } else if (job.data.contains("validation")) {
    train.validation_data = "validation";
  }
  if (train.optimizer.nesterov && train.optimizer.momentum == 0) {
    mistakes.add(effective.origin("train.optimizer.nesterov"),
                 "train.optimizer.nesterov: needs momentum, and train.optimizer.momentum is 0");
  }
  if (train.schedule.cycle_momentum && train.schedule.momentum_low > train.schedule.momentum_high) {
    mistakes.add(effective.origin("train.schedule.momentum_low"),
                 format("train.schedule.momentum_low: {} is above momentum_high ({})",
                        train.schedule.momentum_low, train.schedule.momentum_high));
  }
}

}  // namespace

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

void complete_and_check(const Effective& effective, const Origin& file, Job& job, Mistakes& mistakes) {
  const bool is_readable = mistakes.empty();
  check_names(effective, job, mistakes);
  check_slurm(effective, job.slurm, mistakes);
  if (!is_readable) return;
  check_what_runs(effective, file, mistakes);
  check_command(effective, job, mistakes);
  if (job.train && mistakes.empty()) complete_train(effective, job, mistakes);
}

}  // namespace stoker::job
