#include "launch/next/links.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "record/metrics.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

constexpr int kUnknownLinks = 10;
constexpr double kMostLinks = 1000;
constexpr std::size_t kRunsLookedAt = 50;

// The mean over the epochs of the newest attempt that has some, and the number of epochs done.
struct Measured {
  double epoch_seconds = 0;
  double epochs_done = 0;
};
std::optional<Measured> measure(const record::RunFolder& run) {
  const auto attempts = run.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    const auto epochs = record::read_metrics(attempt->epochs());
    if (!epochs.ok() || epochs->rows() == 0) continue;
    double sum = 0;
    for (double seconds : epochs->column("seconds")) sum += seconds;
    const auto numbers = epochs->column("epoch");
    if (!(sum > 0) || !std::isfinite(sum) || numbers.empty()) continue;
    return Measured{sum / static_cast<double>(epochs->rows()), numbers.back() + 1};
  }
  return std::nullopt;
}

// An epoch of that run says something about one of this job.
bool is_alike(const record::RunFolder& run, const job::Job& job) {
  if (run.description().name != job.name ||
      run.description().world_size != static_cast<int>(job.resources.world_size()))
    return false;
  const auto other = job::load(run.job());
  return other.ok() && other->train && other->train->model == job.train->model && other->data == job.data &&
         other->train->batch == job.train->batch;
}

// What of a link's time is left for training: before its end the ranks are asked to stop.
double useful_seconds(const job::Job& job) {
  const Duration link = *job.chain.time_per_link;
  return Seconds(link - slurm::signal_before(job.checkpoint.before_end, link)).count();
}

int at_most(double links) { return static_cast<int>(std::clamp(std::ceil(links), 1.0, kMostLinks)); }

}  // namespace

std::optional<Pace> measured_pace(const job::Job& job, const std::optional<record::RunFolder>& resumed) {
  if (!job.chain.is_on() || !job.train) return std::nullopt;
  const double epochs = job.train->epochs;
  if (resumed) {
    if (const auto found = measure(*resumed))
      return Pace{found->epoch_seconds, std::max(0.0, epochs - found->epochs_done), resumed->id()};
  }
  const auto runs = record::list_runs(job.record.directory);
  if (!runs.ok()) return std::nullopt;
  std::size_t looked_at = 0;
  for (auto each = runs->rbegin(); each != runs->rend() && looked_at < kRunsLookedAt; ++each) {
    if (!each->run || !is_alike(*each->run, job)) continue;
    ++looked_at;
    if (const auto found = measure(*each->run)) return Pace{found->epoch_seconds, epochs, each->run->id()};
  }
  return std::nullopt;
}

Links count_links(const job::Job& job, const std::optional<Pace>& pace) {
  if (!job.chain.is_on()) return {};
  if (job.chain.links) return {static_cast<int>(*job.chain.links), "chain.links"};
  const double useful = useful_seconds(job);
  std::optional<Links> by_time;
  if (job.resources.time) {
    const double total = Seconds(*job.resources.time).count();
    by_time = {at_most(total / useful), format("resources.time: {}", duration_text(*job.resources.time))};
  }
  if (pace) {
    // A link begins with what was lost of the one before it: half an epoch in the mean.
    const double needed = pace->epochs_left * pace->epoch_seconds / useful;
    const int count = at_most(needed * 1.1 + 1);
    if (by_time && by_time->count < count) return *by_time;
    return {count,
            format("{:.0f} epochs of {} as in run {}, and one to spare", pace->epochs_left,
                   rounded_duration(std::chrono::duration_cast<Duration>(Seconds(pace->epoch_seconds))),
                   pace->from)};
  }
  if (by_time) return *by_time;
  return {kUnknownLinks, "how long it takes is not known: resources.time or chain.links would say"};
}

}  // namespace stoker::launch
