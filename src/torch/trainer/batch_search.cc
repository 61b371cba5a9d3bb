#include "torch/trainer/batch_search.h"

#include <algorithm>
#include <sys/resource.h>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/time.h"
#include "data/dataset.h"
#include "data/loader/advice.h"
#include "record/metrics.h"
#include "record/run_folder.h"

namespace stoker::torch {

namespace {

constexpr std::uint32_t kFirst = 2;  // batch norm cannot learn from one sample
constexpr std::uint64_t kSteps = 8;
constexpr std::size_t kWarmUp = 3;  // steps: memory is taken, buckets are laid out
constexpr double kNoFaster = 1.02;
constexpr double kAsGood = 0.95;
constexpr double kUsable = 0.9;  // of memory: the system and the page cache live there, too
constexpr std::chrono::minutes kPatience(5);

// Bytes for another batch, on the line through the two largest that worked.
struct MemoryLine {
  double base = 0;
  double slope = 0;
  double at(double batch) const { return base + slope * batch; }
};
std::optional<MemoryLine> memory_line(std::span<const BatchTrial> trials) {
  if (trials.size() < 2) return std::nullopt;
  const BatchTrial& a = trials[trials.size() - 2];
  const BatchTrial& b = trials.back();
  const double slope = (static_cast<double>(b.memory.value) - static_cast<double>(a.memory.value)) /
                       (static_cast<double>(b.batch) - static_cast<double>(a.batch));
  return MemoryLine{static_cast<double>(b.memory.value) - slope * b.batch, std::max(0.0, slope)};
}

std::string memory_text(double bytes) { return rounded(ByteCount{static_cast<std::uint64_t>(bytes)}); }

// Why a batch of `next` samples is not worth a trial; empty: it is.
std::string why_not(std::uint64_t next, std::span<const BatchTrial> worked, const BatchLimits& limits) {
  if (next > limits.samples)
    return format("{}: a rank has only {} samples of the training data", next, limits.samples);
  if (next > limits.largest) return format("{}: a job takes {} at most", next, limits.largest);
  if (const auto line = memory_line(worked)) {
    const double memory = static_cast<double>(limits.memory.value);
    if (limits.memory.value > 0 && line->at(static_cast<double>(next)) > memory) {
      return format("{}: would take about {} of the {} that one of {} has here", next,
                    memory_text(line->at(static_cast<double>(next))), memory_text(memory),
                    limits.ranks == 1 ? "1 rank" : format("{} ranks", limits.ranks));
    }
  }
  const std::size_t n = worked.size();
  if (n >= 3) {
    double best = 0;
    for (const BatchTrial& trial : worked.first(n - 2)) best = std::max(best, trial.samples_per_s);
    const double latest = std::max(worked[n - 1].samples_per_s, worked[n - 2].samples_per_s);
    if (latest < kNoFaster * best) return format("{}: the last two were no faster", next);
  }
  return "";
}

// The least of those tried that is about as fast as the fastest.
std::uint32_t fastest_of(std::span<const BatchTrial> worked) {
  double best = 0;
  for (const BatchTrial& trial : worked) best = std::max(best, trial.samples_per_s);
  for (const BatchTrial& trial : worked) {
    if (trial.samples_per_s >= kAsGood * best) return trial.batch;
  }
  return 0;
}

// A process that knows of no run and of no other ranks.
Environment alone(const Path& attempt) {
  constexpr std::string_view kRank[] = {"RANK",      "LOCAL_RANK",  "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                        "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"};
  Environment environment = current_environment();
  std::erase_if(environment, [&](const auto& entry) {
    const std::string_view name = entry.first;
    const bool is_ours =
        name.starts_with("STOKER_") && !name.starts_with("STOKER_DATA_") && !name.starts_with("STOKER_SET_");
    return is_ours || std::ranges::find(kRank, name) != std::end(kRank);
  });
  environment.emplace_back("STOKER_ATTEMPT_DIR", attempt.string());
  return environment;
}

std::string last_line(std::string_view text) {
  const std::vector<std::string_view> lines = split(trim(text), '\n');
  return printable(lines.back());
}

void measure(const Path& metrics, BatchTrial& trial) {
  const auto table = record::read_metrics(metrics);
  if (!table.ok() || table->rows() == 0) {
    trial.failed = "recorded no step";
    return;
  }
  const auto samples = table->column("samples"), seconds = table->column("step_s");
  const std::size_t first = std::min(kWarmUp, table->rows() - 1);
  double sum_samples = 0, sum_s = 0;
  for (std::size_t i = first; i < table->rows(); ++i) {
    sum_samples += samples[i];
    sum_s += seconds[i];
  }
  trial.step_s = sum_s / static_cast<double>(table->rows() - first);
  trial.samples_per_s = sum_s > 0 ? sum_samples / sum_s : 0;
}

Result<BatchTrial> try_batch(const BatchSearch& search, std::uint32_t batch, const Path& attempt) {
  BatchTrial trial{.batch = batch, .failed = ""};
  RETURN_IF_ERROR(make_directory(attempt));
  Command command{.argv = {"/proc/self/exe", "--job", search.job.string()}, .environment = alone(attempt)};
  std::vector<std::string> set = search.set;
  for (const char* text : {"train.validate_every=0", "train.epochs=1000000", "checkpoint.directory=null",
                           "checkpoint.every=never", "record.metrics=true", "record.receipts=false"})
    set.emplace_back(text);
  set.push_back(format("train.batch={}", batch));
  set.push_back(format("train.steps={}", kSteps));
  for (std::string& text : set) command.argv.insert(command.argv.end(), {"--set", std::move(text)});
  const auto ended = run_program(command, Deadline::after(kPatience), 1_MiB);
  if (!ended.ok()) {
    if (ended.error().code() != Code::timeout) return std::move(ended).error();
    trial.failed = format("took longer than {} for {} steps", rounded_duration(kPatience), kSteps);
  } else if (!ended->exit.ok()) {
    trial.failed =
        format("{}{}", to_text(ended->exit), trim(ended->err).empty() ? "" : ": " + last_line(ended->err));
  } else {
    measure(record::Attempt(attempt, 0).metrics(0), trial);
  }
  // Of all children so far: batches grow, and so does what they take.
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  trial.memory = {static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  return trial;
}

Result<BatchLimits> limits_of(const job::Job& job) {
  BatchLimits limits;
  limits.ranks = job.resources.ranks_per_node;
  double memory = kUsable * static_cast<double>(data::this_machine("/", current_environment()).memory.value);
  if (job.resources.memory_per_node)
    memory = std::min(memory, kUsable * static_cast<double>(job.resources.memory_per_node->value));
  limits.memory = {static_cast<std::uint64_t>(memory / limits.ranks)};
  const auto& source = job.data.at(job.train->training_data);
  const bool is_text = job.train->model == job::Model::gpt;
  OK_OR_RETURN(dataset, data::Dataset::open(source.source, source.split.value_or(""),
                                            is_text ? data::Labels::unneeded : data::Labels::needed));
  const std::uint64_t world = job.resources.world_size();
  limits.samples = (dataset.samples() + world - 1) / world;
  return limits;
}

std::string trial_line(const BatchTrial& trial) {
  if (!trial.failed.empty()) return format("batch {:>6}   {}", trial.batch, trial.failed);
  return format("batch {:>6}   step {:>8}   {:>9} samples/s   {:>8}", trial.batch,
                rounded_duration(std::chrono::duration_cast<Duration>(Seconds(trial.step_s))),
                format("{:.1f}", trial.samples_per_s), rounded(trial.memory));
}

}  // namespace

BatchVerdict judge_batches(std::span<const BatchTrial> trials, const BatchLimits& limits) {
  BatchVerdict verdict;
  if (trials.empty()) {
    verdict.next = kFirst;
    return verdict;
  }
  const bool has_failed = !trials.back().failed.empty();
  const auto worked = trials.first(trials.size() - (has_failed ? 1 : 0));
  verdict.fastest = fastest_of(worked);
  if (const auto line = memory_line(worked); line && line->slope > 0 && limits.memory.value > 0) {
    const double room = static_cast<double>(limits.memory.value) - line->base;
    verdict.fits =
        static_cast<std::uint64_t>(std::clamp(room / line->slope, 0.0, static_cast<double>(limits.largest)));
  }
  const std::uint64_t next = std::uint64_t{trials.back().batch} * 2;
  verdict.why = has_failed ? format("{}: {}", trials.back().batch, trials.back().failed)
                           : why_not(next, worked, limits);
  if (verdict.why.empty()) verdict.next = static_cast<std::uint32_t>(next);
  return verdict;
}

Status search_batch(const BatchSearch& search, const job::Job& job, Voice& voice) {
  OK_OR_RETURN(limits, limits_of(job));
  const TempDirectory attempts;
  std::vector<BatchTrial> trials;
  BatchVerdict verdict = judge_batches(trials, limits);
  while (verdict.next) {
    OK_OR_RETURN(trial, try_batch(search, *verdict.next, attempts / format("{}", *verdict.next)));
    voice.say(trial_line(trial));
    trials.push_back(std::move(trial));
    verdict = judge_batches(trials, limits);
  }
  if (verdict.fastest == 0) return invalid("train.batch: {}", verdict.why);
  voice.say(format("not tried {}", verdict.why));
  if (verdict.fits > trials.back().batch)
    voice.say(format("memory: about {} samples would fit into {}", verdict.fits, rounded(limits.memory)));
  voice.say(format(
      "fastest: train: {{batch: {}}}, one rank alone on this machine; a larger batch is another training",
      verdict.fastest));
  return {};
}

}  // namespace stoker::torch
