#include "launch/start/links.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/language/counted.h"
#include "record/metrics.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

constexpr int kUnknownLinks = 10;
constexpr double kMaxLinks = 1000;
constexpr std::size_t kMaxRunsRead = 50;

// The mean epoch time of the newest attempt with epochs, and the number of finished epochs.
struct MeasuredEpochs {
  double epoch_seconds = 0;
  double epochs_done = 0;
};
std::optional<MeasuredEpochs> measure(const record::RunFolder& run) {
  const auto attempts = run.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    const auto epochs = record::read_metrics(attempt->epochs());
    if (!epochs.ok() || epochs->rows() == 0) continue;
    double sum = 0;
    for (double seconds : epochs->column("seconds")) sum += seconds;
    const auto numbers = epochs->column("epoch");
    if (!(sum > 0) || !std::isfinite(sum) || numbers.empty()) continue;
    return MeasuredEpochs{sum / static_cast<double>(epochs->rows()), numbers.back() + 1};
  }
  return std::nullopt;
}

// Whether an epoch of that run is comparable with one of this job.
bool is_comparable(const record::RunFolder& run, const job::Job& job) {
  if (run.description().name != job.name ||
      run.description().world_size != static_cast<int>(job.resources.world_size()))
    return false;
  const auto other = job::load(run.job());
  return other.ok() && other->train && other->train->model == job.train->model && other->data == job.data &&
         other->train->batch == job.train->batch;
}

// The training time per link: the ranks are asked to stop before its end.
double useful_seconds(const job::Job& job) {
  const Duration link = *job.chain.time_per_link;
  return Seconds(link - slurm::signal_before(job.checkpoint.before_end, link)).count();
}

int clamp_links(double links) { return static_cast<int>(std::clamp(std::ceil(links), 1.0, kMaxLinks)); }

}  // namespace

std::optional<EpochEstimate> estimate_epochs(const job::Job& job,
                                             const std::optional<record::RunFolder>& resumed) {
  if (!job.chain.is_enabled() || !job.train) return std::nullopt;
  const double epochs = job.train->epochs;
  if (resumed) {
    if (const auto found = measure(*resumed))
      return EpochEstimate{found->epoch_seconds, std::max(0.0, epochs - found->epochs_done), resumed->id()};
  }
  const auto runs = record::list_runs(job.record.directory);
  if (!runs.ok()) return std::nullopt;
  std::size_t runs_read = 0;
  for (auto each = runs->rbegin(); each != runs->rend() && runs_read < kMaxRunsRead; ++each) {
    if (!each->run || !is_comparable(*each->run, job)) continue;
    ++runs_read;
    if (const auto found = measure(*each->run))
      return EpochEstimate{found->epoch_seconds, epochs, each->run->id()};
  }
  return std::nullopt;
}

Links count_links(const job::Job& job, const std::optional<EpochEstimate>& estimate) {
  if (!job.chain.is_enabled()) return {};
  if (job.chain.links) return {static_cast<int>(*job.chain.links), "chain.links"};
  const double useful = useful_seconds(job);
  std::optional<Links> by_time;
  if (job.resources.time) {
    const double total = Seconds(*job.resources.time).count();
    by_time = {clamp_links(total / useful), format("resources.time: {}", duration_text(*job.resources.time))};
  }
  if (estimate) {
    // A link repeats the lost part of the previous one: half an epoch on average.
    const double needed = estimate->epochs_left * estimate->epoch_seconds / useful;
    const int count = clamp_links(needed * 1.1 + 1);
    if (by_time && by_time->count < count) return *by_time;
    return {count,
            format("{} of {} as in run {}, plus one spare",
                   counted(static_cast<std::uint64_t>(std::llround(estimate->epochs_left)), "epoch"),
                   rounded_duration(std::chrono::duration_cast<Duration>(Seconds(estimate->epoch_seconds))),
                   estimate->from)};
  }
  if (by_time) return *by_time;
  return {kUnknownLinks, "duration unknown: set resources.time or chain.links"};
}

}  // namespace stoker::launch
