#include "torch/trainer/command_line.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/version.h"
#include "job/job.h"
#include "torch/trainer/batch_search.h"
#include "torch/trainer/switches.h"

namespace stoker::torch {

namespace {

constexpr std::string_view kHelp =
    R"(stoker-train: one rank of the built-in trainer

  stoker-train [--job FILE] [--set KEY=VALUE]... [switch]...

  --job FILE                     the job file; its `train:` says what to do (default: $STOKER_JOB)
  --set KEY=VALUE                overrides a key of the job file: stoker check --keys has all
  --find-batch                   tries batches in short trainings and says which fit and which is fastest
  --version                      prints the version
  --help                         prints this

Switches, each in place of a key of the job file; of several for one key the last counts:

{}
`stoker run JOB` starts one for each rank and records the run. Alone, it is a world of one that records nothing:

  stoker-train --job examples/cifar10/job.yaml

Sent SIGTERM, SIGUSR1, SIGINT (Ctrl-C) or SIGHUP, it finishes the step, writes a checkpoint and exits with 75.
)";

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kUnavailable = 3, kBug = 70, kStopped = 75 };

struct Arguments {
  Path job;
  Switched switched;  ///< --set among them
  bool wants_help = false;
  bool wants_version = false;
  bool finds_batch = false;
};

std::string refusal(std::string_view word) {
  std::vector<std::string_view> known = {"--job", "--set", "--find-batch", "--version", "--help"};
  for (const Switch& item : switches()) known.push_back(item.name);
  return format("'{}': no such option{}", printable(word), suggestion(word, known));
}

Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    OK_OR_RETURN(is_switch, read_switch(words, i, arguments.switched));
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
      if (flag == "--set") arguments.switched.set.push_back(*value);
    } else {
      return invalid("{}", refusal(flag));
    }
  }
  return arguments;
}

Result<job::Job> load_job(const Arguments& arguments, const RankEnvironment& environment,
                          const Variables& variables) {
  job::LoadOptions options;
  options.set = arguments.switched.set;
  Path file = arguments.job;
  if (file.empty()) {
    // The effective job of an attempt: what the environment overrides is in it already.
    file = environment.job;
  } else {
    for (const auto& [name, value] : variables) options.environment.push_back(name + "=" + value);
  }
  if (file.empty()) return invalid("--job: not given (STOKER_JOB is not set)");
  OK_OR_RETURN(job, job::load(file, options));
  if (!job.train) return invalid("{}: has no 'train'", file).cure("stoker run {}", file);
  return std::move(job);
}

Status find_batch(const Arguments& arguments, Voice& voice) {
  const Variables variables = own_variables();
  OK_OR_RETURN(environment, read_environment(variables));
  OK_OR_RETURN(job, load_job(arguments, environment, variables));
  const Path& file = arguments.job.empty() ? environment.job : arguments.job;
  return search_batch({.job = file, .set = arguments.switched.set}, job, voice);
}

int code_of(const Status& error) {
  switch (error.code()) {
    case Code::ok:
      return kDone;
    case Code::invalid:
      return kUsage;
    case Code::internal:
      return kBug;
    case Code::unavailable:
    case Code::timeout:
    case Code::not_found:
    case Code::exists:
    case Code::cancelled:
    case Code::corrupt:
    case Code::no_space:
      return kFailed;
  }
  return kFailed;
}

Result<std::unique_ptr<Training>> prepare(const Arguments& arguments, const StopSignals& signals,
                                          Voice& voice) {
  const Variables variables = own_variables();
  OK_OR_RETURN(environment, read_environment(variables));
  OK_OR_RETURN(job, load_job(arguments, environment, variables));
  if (environment.rank.value == 0) {
    for (const std::string& note : arguments.switched.notes) voice.say(note);
  }
  return Training::prepare(job, environment, signals, voice);
}

int failed(const Status& error, Voice& voice) {
  voice.warn(error.to_string());
  return code_of(error);
}

int train(const Arguments& arguments, Voice& voice) {
  const StopSignals signals;
  auto training = prepare(arguments, signals, voice);
  if (!training.ok()) return failed(training.status(), voice);
  const auto ending = (*training)->run();
  if (!ending.ok()) {
    const int code = failed(ending.status(), voice);
    (*training)->keep_what_is_handed_over(ending.status());
    // A loader's thread may be in a read that never returns. The process ends after this.
    (void)training->release();
    return code;
  }
  if (*ending == Ending::stopped_unsaved) {
    voice.warn("stopped without a checkpoint (checkpoint.directory is not set)");
    return kFailed;
  }
  return *ending == Ending::finished ? kDone : kStopped;
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, Voice& voice) {
  const auto arguments = parse(words);
  if (!arguments.ok()) {
    voice.warn("stoker-train: " + arguments.status().to_string() + "\n  try: stoker-train --help");
    return kUsage;
  }
  if (arguments->wants_help) {
    voice.say(trim(format(kHelp, switches_help())));
    return kDone;
  }
  if (arguments->wants_version) {
    voice.say(format("stoker-train {}", version()));
    return kDone;
  }
  if (arguments->finds_batch) {
    const Status found = find_batch(*arguments, voice);
    if (!found.ok()) voice.warn(found.to_string());
    return code_of(found);
  }
  return train(*arguments, voice);
}

}  // namespace stoker::torch
