#include "train/trainer/batch_search.h"

#include <algorithm>
#include <sys/resource.h>
#include <utility>

#include "base/file.h"
#include "base/language/counted.h"
#include "base/process.h"
#include "loader/advice.h"
#include "record/metrics.h"
#include "record/run_folder.h"
#include "stoker/dataset.h"
#include "stoker/time.h"
#include "train/trainer/report/progress_line.h"

namespace stoker::train {

namespace {

constexpr std::uint32_t kFirst = 2;  // batch norm cannot learn from one sample
constexpr std::uint64_t kSteps = 8;
constexpr std::size_t kWarmUp = 3;  // steps for memory allocation and bucket rebuilding
constexpr double kNoFaster = 1.02;
constexpr double kAsGood = 0.95;
constexpr double kUsable = 0.9;  // of memory; the system and the page cache use the rest
constexpr std::chrono::minutes kTrialTimeout(5);

// Memory as a linear function of the batch size, through the two largest successful trials.
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

// Why a batch of `next` samples needs no trial; empty: try it.
std::string skip_reason(std::uint64_t next, std::span<const BatchTrial> worked, const BatchLimits& limits) {
  if (next > limits.samples)
    return format("{}: a rank has only {} of the training data", next, counted(limits.samples, "sample"));
  if (next > limits.largest) return format("{}: above the maximum batch of {}", next, limits.largest);
  if (const auto line = memory_line(worked)) {
    const double memory = static_cast<double>(limits.memory.value);
    if (limits.memory.value > 0 && line->at(static_cast<double>(next)) > memory) {
      return format("{}: would need about {} of the {} of memory available to one of {}", next,
                    memory_text(line->at(static_cast<double>(next))), memory_text(memory),
                    counted(limits.ranks, "rank"));
    }
  }
  const std::size_t n = worked.size();
  if (n >= 3) {
    double best = 0;
    for (const BatchTrial& trial : worked.first(n - 2)) best = std::max(best, trial.samples_per_s);
    const double latest = std::max(worked[n - 1].samples_per_s, worked[n - 2].samples_per_s);
    if (latest < kNoFaster * best) return format("{}: the last two batches were not faster", next);
  }
  return "";
}

// The smallest batch that is about as fast as the fastest.
std::uint32_t fastest_of(std::span<const BatchTrial> worked) {
  double best = 0;
  for (const BatchTrial& trial : worked) best = std::max(best, trial.samples_per_s);
  for (const BatchTrial& trial : worked) {
    if (trial.samples_per_s >= kAsGood * best) return trial.batch;
  }
  return 0;
}

// The environment without the variables of a run or of other ranks.
Environment standalone_environment(const Path& attempt) {
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

// The error, without the cure in the line after it.
std::string last_line(std::string_view text) {
  const std::vector<std::string_view> lines = split(trim(text), '\n');
  const bool is_cure = lines.size() > 1 && lines.back().starts_with("  try: ");
  return printable(is_cure ? lines[lines.size() - 2] : lines.back());
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
  STOKER_RETURN_IF_ERROR(make_directory(attempt));
  Command command{.argv = {"/proc/self/exe", "--job", search.job.string()},
                  .environment = standalone_environment(attempt)};
  std::vector<std::string> set = search.set;
  for (const char* text : {"train.validate_every=0", "train.epochs=1000000", "checkpoint.directory=null",
                           "checkpoint.every=never", "record.metrics=true", "record.receipts=false"})
    set.emplace_back(text);
  set.push_back(format("train.batch={}", batch));
  set.push_back(format("train.steps={}", kSteps));
  for (std::string& text : set) command.argv.insert(command.argv.end(), {"--set", std::move(text)});
  const auto ended = run_program(command, Deadline::after(kTrialTimeout), 1_MiB);
  if (!ended.ok()) {
    if (ended.error().code() != Code::timeout) return std::move(ended).error();
    trial.failed =
        format("took longer than {} for {}", rounded_duration(kTrialTimeout), counted(kSteps, "step"));
  } else if (!ended->exit.ok()) {
    trial.failed =
        format("{}{}", to_text(ended->exit), trim(ended->err).empty() ? "" : ": " + last_line(ended->err));
  } else {
    measure(record::Attempt(attempt, 0).metrics(0), trial);
  }
  // The maximum of all children so far. Batches grow, and so does their memory.
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  trial.memory = {static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  if (search.gpu_memory && ended.ok()) trial.memory = {gpu_memory_in(ended->out)};
  return trial;
}

Result<BatchLimits> limits_of(const job::Job& job, std::optional<ByteCount> gpu_memory) {
  BatchLimits limits;
  limits.ranks = gpu_memory ? std::max(1u, job.resources.ranks_per_gpu) : job.resources.ranks_per_node;
  double memory =
      gpu_memory
          ? kUsable * static_cast<double>(gpu_memory->value)
          : kUsable * static_cast<double>(loader::detect_machine("/", current_environment()).memory.value);
  if (job.resources.memory_per_node && !gpu_memory)
    memory = std::min(memory, kUsable * static_cast<double>(job.resources.memory_per_node->value));
  limits.memory = {static_cast<std::uint64_t>(memory / limits.ranks)};
  const auto& source = job.data.at(job.train->training_data);
  const bool is_text = job.train->model == job::ModelKind::gpt;
  STOKER_ASSIGN_OR_RETURN(dataset, dataset::Dataset::open(source.source, source.split.value_or(""),
                                                          is_text ? dataset::LabelPolicy::optional
                                                                  : dataset::LabelPolicy::required));
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

BatchRecommendation recommend_batch(std::span<const BatchTrial> trials, const BatchLimits& limits) {
  BatchRecommendation recommendation;
  if (trials.empty()) {
    recommendation.next = kFirst;
    return recommendation;
  }
  const bool has_failed = !trials.back().failed.empty();
  const auto worked = trials.first(trials.size() - (has_failed ? 1 : 0));
  recommendation.fastest = fastest_of(worked);
  if (const auto line = memory_line(worked); line && line->slope > 0 && limits.memory.value > 0) {
    const double room = static_cast<double>(limits.memory.value) - line->base;
    recommendation.fits =
        static_cast<std::uint64_t>(std::clamp(room / line->slope, 0.0, static_cast<double>(limits.largest)));
  }
  const std::uint64_t next = std::uint64_t{trials.back().batch} * 2;
  recommendation.why = has_failed ? format("{}: {}", trials.back().batch, trials.back().failed)
                                  : skip_reason(next, worked, limits);
  if (recommendation.why.empty()) recommendation.next = static_cast<std::uint32_t>(next);
  return recommendation;
}

Status search_batch(const BatchSearch& search, const job::Job& job, TrainerLog& log) {
  STOKER_ASSIGN_OR_RETURN(limits, limits_of(job, search.gpu_memory));
  const TempDirectory attempts;
  std::vector<BatchTrial> trials;
  BatchRecommendation recommendation = recommend_batch(trials, limits);
  while (recommendation.next) {
    STOKER_ASSIGN_OR_RETURN(
        trial, try_batch(search, *recommendation.next, attempts / format("{}", *recommendation.next)));
    log.info(trial_line(trial));
    trials.push_back(std::move(trial));
    recommendation = recommend_batch(trials, limits);
  }
  if (recommendation.fastest == 0) return invalid("train.batch: {}", recommendation.why);
  log.info(format("stopped at batch {}", recommendation.why));
  if (recommendation.fits > trials.back().batch)
    log.info(
        format("memory: a batch of about {} would fit into {}", recommendation.fits, rounded(limits.memory)));
  log.info(format(
      "fastest: train: {{batch: {}}} (one rank on this machine; the batch size also affects the accuracy)",
      recommendation.fastest));
  return {};
}

}  // namespace stoker::train
