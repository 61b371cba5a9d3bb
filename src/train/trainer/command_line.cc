#include "train/trainer/command_line.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/exit_code.h"
#include "base/version.h"
#include "job/job.h"
#include "train/device/cuda_part.h"
#include "train/device/device.h"
#include "train/trainer/batch_search.h"
#include "train/trainer/switches.h"

namespace stoker::train {

namespace {

constexpr std::string_view kHelp =
    R"(stoker-train: one rank of the built-in trainer

  stoker-train [--job FILE] [--set KEY=VALUE]... [switch]...

  --job FILE                     read this job file, which has a `train` section (default: $STOKER_JOB)
  --set KEY=VALUE                override a key of the job file (all keys: stoker check --keys)
  --find-batch                   find the largest and the fastest batch size by short trainings
  --version                      print the version
  --help                         print this help

Switches set keys of the job file; the last one for a key wins:

{}
`stoker run JOB` starts one process per rank and records the run. Without it, stoker-train runs a single rank and
records nothing:

  stoker-train --job examples/cifar10/job.yaml

On SIGTERM, SIGUSR1, SIGINT (Ctrl-C) or SIGHUP it finishes the step, saves a checkpoint and exits with code 75.
)";

struct TrainArguments {
  Path job;
  SwitchSettings settings;  ///< includes --set
  bool wants_help = false;
  bool wants_version = false;
  bool finds_batch = false;
};

std::string unknown_option_error(std::string_view word) {
  std::vector<std::string_view> known = {"--job", "--set", "--find-batch", "--version", "--help"};
  for (const Switch& item : switches()) known.push_back(item.name);
  return format("'{}': no such option{}", printable(word), suggestion(word, known));
}

Result<TrainArguments> parse(const std::vector<std::string>& words) {
  TrainArguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    STOKER_ASSIGN_OR_RETURN(is_switch, read_switch(words, i, arguments.settings));
    if (is_switch) continue;
    std::string flag = words[i];
    std::optional<std::string> value;
    if (const std::size_t equals = flag.find('='); flag.starts_with("--") && equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    if (flag == "--help" || flag == "-h") {
      arguments.wants_help = true;
    } else if (flag == "--version") {
      arguments.wants_version = true;
    } else if (flag == "--find-batch") {
      arguments.finds_batch = true;
    } else if (flag == "--job" || flag == "--set") {
      if (!value && i + 1 == words.size()) return invalid("{}: a value is missing", flag);
      if (!value) value = words[++i];
      if (flag == "--job") arguments.job = *value;
      if (flag == "--set") arguments.settings.set.push_back(*value);
    } else {
      return invalid("{}", unknown_option_error(flag));
    }
  }
  return arguments;
}

Result<job::Job> load_job(const TrainArguments& arguments, const RankEnvironment& environment,
                          const Variables& variables) {
  job::LoadOptions options;
  options.set = arguments.settings.set;
  Path file = arguments.job;
  if (file.empty()) {
    // The effective job of an attempt already contains the overrides from the environment.
    file = environment.job;
  } else {
    for (const auto& [name, value] : variables) options.environment.push_back(name + "=" + value);
  }
  if (file.empty()) return invalid("--job: missing, and STOKER_JOB is not set");
  STOKER_ASSIGN_OR_RETURN(job, job::load(file, options));
  if (!job.train) return invalid("{}: has no 'train' section", file).cure("stoker run {}", file);
  return std::move(job);
}

Status find_batch(const TrainArguments& arguments, TrainerLog& log) {
  const Variables variables = process_environment();
  STOKER_ASSIGN_OR_RETURN(environment, read_environment(variables));
  STOKER_ASSIGN_OR_RETURN(job, load_job(arguments, environment, variables));
  const Path& file = arguments.job.empty() ? environment.job : arguments.job;
  BatchSearch search{.job = file, .set = arguments.settings.set};
  STOKER_ASSIGN_OR_RETURN(chosen, choose_device(job.train->device, {}, visible_gpus()));
  if (!chosen.device.is_cpu()) search.gpu_memory.emplace(ByteCount{cuda_part()->free_memory(chosen.device)});
  return search_batch(search, job, log);
}

int code_of(const Status& error) {
  switch (error.code()) {
    case Code::ok:
      return exit_code::kOk;
    case Code::invalid:
      return exit_code::kUsage;
    case Code::internal:
      return exit_code::kBug;
    case Code::unavailable:
    case Code::timeout:
    case Code::not_found:
    case Code::exists:
    case Code::cancelled:
    case Code::corrupt:
    case Code::no_space:
      return exit_code::kFailed;
  }
  return exit_code::kFailed;
}

Result<std::unique_ptr<Training>> prepare(const TrainArguments& arguments, const StopSignals& signals,
                                          TrainerLog& log) {
  const Variables variables = process_environment();
  STOKER_ASSIGN_OR_RETURN(environment, read_environment(variables));
  STOKER_ASSIGN_OR_RETURN(job, load_job(arguments, environment, variables));
  if (environment.rank.value == 0) {
    for (const std::string& note : arguments.settings.notes) log.info(note);
  }
  return Training::prepare(job, environment, signals, log);
}

int failed(const Status& error, TrainerLog& log) {
  log.warn(error.to_string());
  return code_of(error);
}

int train(const TrainArguments& arguments, TrainerLog& log) {
  const StopSignals signals;
  auto training = prepare(arguments, signals, log);
  if (!training.ok()) return failed(training.status(), log);
  const auto outcome = (*training)->run();
  if (!outcome.ok()) {
    const int code = failed(outcome.status(), log);
    (*training)->flush_pending_checkpoint(outcome.status());
    // A loader thread may be in a read that never returns. The process ends after this.
    (void)training->release();
    return code;
  }
  if (*outcome == TrainingOutcome::stopped_unsaved) {
    log.warn("stopped without saving a checkpoint (checkpoint.directory is not set)");
    return exit_code::kFailed;
  }
  return *outcome == TrainingOutcome::finished ? exit_code::kOk : exit_code::kStoppedAfterCheckpoint;
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, TrainerLog& log) {
  const auto arguments = parse(words);
  if (!arguments.ok()) {
    log.warn("stoker-train: " + arguments.status().to_string() + "\n  try: stoker-train --help");
    return exit_code::kUsage;
  }
  if (arguments->wants_help) {
    log.info(trim(format(kHelp, switches_help())));
    return exit_code::kOk;
  }
  if (arguments->wants_version) {
    log.info(format("stoker-train {}", version()));
    return exit_code::kOk;
  }
  if (arguments->finds_batch) {
    const Status found = find_batch(*arguments, log);
    if (!found.ok()) log.warn(found.to_string());
    return code_of(found);
  }
  return train(*arguments, log);
}

}  // namespace stoker::train
