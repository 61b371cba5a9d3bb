#include "diagnose/use/usage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "base/file.h"
#include "observe/gpu_health.h"
#include "record/points/points.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// Samples are usually one second apart: less than a minute is not significant.
constexpr std::size_t kFewest = 60;
// The first samples are start-up; checks over time ignore them.
constexpr std::size_t kStartUp = 5;  // a fifth
constexpr int kMaxNodes = 16;
// Utilization of a GPU with only a context.
constexpr double kUnused = 1;
constexpr double kLow = 30;
constexpr double kHigh = 80;
constexpr double kShare = 0.2;
constexpr std::size_t kFewestSwings = 4;
constexpr double kThrottled = 0.1;
constexpr double kGrowth = 0.1;
constexpr double kSmallestGrowth = 64 << 20;
constexpr double kWait = 0.3;
constexpr double kCommunication = 0.5;

using Values = std::vector<double>;

Values numbers_of(std::span<const double> column) {
  Values values;
  std::copy_if(column.begin(), column.end(), std::back_inserter(values),
               [](double value) { return std::isfinite(value); });
  return values;
}

Values after_start_up(std::span<const double> column) {
  Values values = numbers_of(column);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / kStartUp));
  return values;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// REQUIRES: values is not empty.
double quantile(Values values, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// The indices of columns such as "gpu3.busy_percent".
std::vector<int> indices_of(const record::MetricTable& table, std::string_view stem, std::string_view end) {
  std::vector<int> found;
  for (const std::string_view column : table.columns) {
    std::int64_t index = -1;
    const bool fits =
        column.starts_with(stem) && column.ends_with(end) && column.size() > stem.size() + end.size();
    if (fits && parse_number(column.substr(stem.size(), column.size() - stem.size() - end.size()), &index) &&
        index >= 0 && index < 1'000'000)
      found.push_back(static_cast<int>(index));
  }
  return found;
}

std::string list_of(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, ", ");
}

std::string bytes_text(double bytes) {
  return rounded(ByteCount{static_cast<std::uint64_t>(std::max(0.0, bytes))});
}

struct FindingKind {
  std::string_view rule;
  Level level;
};

Finding finding(const NodeUsage& use, FindingKind kind, Message what, Message evidence, Message cure) {
  return {.rule = std::string(kind.rule),
          .level = kind.level,
          .what = std::move(what),
          .evidence = {{use.file, std::move(evidence)}},
          .cure = std::move(cure)};
}

void judge_unused_gpus(const NodeUsage& use, std::vector<Finding>& found) {
  const auto asked = static_cast<std::size_t>(use.asked.gpus_per_node());
  std::vector<int> unused;
  std::size_t seen = 0;
  for (const int gpu : indices_of(use.samples, "gpu", ".busy_percent")) {
    const Values busy = numbers_of(use.samples.column(format("gpu{}.busy_percent", gpu)));
    if (busy.size() < kFewest) continue;
    ++seen;
    if (*std::max_element(busy.begin(), busy.end()) <= kUnused) unused.push_back(gpu);
  }
  // A node may also show GPUs of other jobs.
  if (asked == 0 || seen < asked || seen - unused.size() >= asked) return;
  const std::size_t idle = asked - (seen - unused.size());
  found.push_back(finding(
      use, {"gpus-unused", Level::time},
      idle == 1 ? message("1 of {} GPUs of node {} was never used", asked, use.node)
                : message("{} of {} GPUs of node {} were never used", idle, asked, use.node),
      message("GPU {}: at most {:.0f} % busy", list_of(unused), kUnused),
      message("use one rank per GPU (`resources: {{ranks_per_node: {}}}`) with "
              "`torch.cuda.set_device(int(os.environ['LOCAL_RANK']) % torch.cuda.device_count())`, or "
              "fewer GPUs",
              asked)));
}

std::size_t swings_of(const Values& busy) {
  std::size_t swings = 0;
  int before = 0;  // -1 low, 1 high
  for (const double value : busy) {
    const int now = value < kLow ? -1 : value >= kHigh ? 1 : 0;
    if (now != 0 && before != 0 && now != before) ++swings;
    if (now != 0) before = now;
  }
  return swings;
}

void judge_swinging_gpus(const NodeUsage& use, std::vector<Finding>& found) {
  std::vector<int> swinging;
  double low = 0, high = 0;
  for (const int gpu : indices_of(use.samples, "gpu", ".busy_percent")) {
    const Values busy = after_start_up(use.samples.column(format("gpu{}.busy_percent", gpu)));
    if (busy.size() * kStartUp < kFewest * (kStartUp - 1)) continue;
    const double few = kShare * static_cast<double>(busy.size());
    const auto lows = std::count_if(busy.begin(), busy.end(), [](double value) { return value < kLow; });
    const auto highs = std::count_if(busy.begin(), busy.end(), [](double value) { return value >= kHigh; });
    const bool is_split = static_cast<double>(lows) >= few && static_cast<double>(highs) >= few;
    if (!is_split || swings_of(busy) < kFewestSwings) continue;
    if (swinging.empty()) {
      low = quantile(busy, 0.1);
      high = quantile(busy, 0.9);
    }
    swinging.push_back(gpu);
  }
  if (swinging.empty()) return;
  found.push_back(finding(
      use, {"gpu-swings", Level::time},
      message("GPU {} of node {} alternates between {:.0f} % and {:.0f} %: it waits repeatedly",
              swinging.front(), use.node, low, high),
      message("GPU {}: busy_percent", list_of(swinging)),
      message("use more loader workers, copy the data to the local disks (`stage: {{copy: [FOLDER]}}`), or "
              "write fewer logs and checkpoints")));
}

// The share of the samples in which a GPU is throttled by more than its power limit, which is normal under
// load.
double throttled_share(std::span<const double> column) {
  const Values values = after_start_up(column);
  if (values.size() * kStartUp < kFewest * (kStartUp - 1)) return 0;
  const auto count = std::count_if(values.begin(), values.end(), [](double value) {
    if (value < 0 || value > 1e15) return false;
    const auto texts = observe::throttle_texts(static_cast<std::uint64_t>(value));
    return std::any_of(texts.begin(), texts.end(),
                       [](const std::string& text) { return text != observe::kPowerLimitText; });
  });
  return static_cast<double>(count) / static_cast<double>(values.size());
}

void judge_throttled_gpus(const NodeUsage& use, std::vector<Finding>& found) {
  std::vector<int> throttled;
  double most = 0;
  for (const int gpu : indices_of(use.samples, "gpu", ".throttle_reasons")) {
    const double share = throttled_share(use.samples.column(format("gpu{}.throttle_reasons", gpu)));
    if (share < kThrottled) continue;
    throttled.push_back(gpu);
    most = std::max(most, share);
  }
  if (throttled.empty()) return;
  found.push_back(finding(
      use, {"gpu-throttled", Level::time},
      message("GPU {} of node {} runs below its clock {:.0f} % of the time: it is too hot, or its power "
              "supply is too weak",
              list_of(throttled), use.node, 100 * most),
      message("GPU {}: throttle_reasons", list_of(throttled)),
      message("leave that node out (`--exclude` of sbatch) and inform the administrators")));
}

void judge_idle_cpus(const NodeUsage& use, std::vector<Finding>& found) {
  const auto asked = use.asked.cpus_per_rank.value_or(0);
  if (asked < 2) return;
  Values used;
  for (const int rank : indices_of(use.samples, "rank", ".cpu_cores")) {
    const Values cores = after_start_up(use.samples.column(format("rank{}.cpu_cores", rank)));
    if (cores.size() * kStartUp < kFewest * (kStartUp - 1)) return;
    used.push_back(quantile(cores, 0.95));
  }
  if (used.empty()) return;
  const double most = *std::max_element(used.begin(), used.end());
  if (most >= asked / 2.0) return;
  found.push_back(finding(use, {"cpus-idle", Level::advice},
                          message("ranks of node {} use {:.1f} of their {} CPUs", use.node, most, asked),
                          message("rank*.cpu_cores, 95 % of the samples are below"),
                          message("`resources: {{cpus_per_rank: {}}}`, or more loader workers",
                                  std::max(1, static_cast<int>(std::ceil(most))))));
}

struct Growth {
  double from = 0;
  double to = 0;
  double per_second = 0;
};

// Memory that grows until the end: the floor of each quarter exceeds the previous one, and the last step is
// at least half of the mean one. This excludes caches that fill up and memory that is freed again. The floor
// is the 20 % quantile: the last samples may belong to an exiting process.
std::optional<Growth> growth_of(std::span<const double> time, std::span<const double> bytes) {
  Values at, size;
  for (std::size_t i = bytes.size() / kStartUp; i < bytes.size() && i < time.size(); ++i) {
    if (!std::isfinite(bytes[i]) || !std::isfinite(time[i])) continue;
    at.push_back(time[i]);
    size.push_back(bytes[i]);
  }
  constexpr std::size_t kQuarters = 4;
  if (size.size() * kStartUp < kFewest * (kStartUp - 1)) return std::nullopt;
  double floors[kQuarters], times[kQuarters];
  for (std::size_t q = 0; q < kQuarters; ++q) {
    const std::size_t begin = q * size.size() / kQuarters;
    const std::size_t count = (q + 1) * size.size() / kQuarters - begin;
    const auto quarter = std::span(size).subspan(begin, count);
    floors[q] = quantile(Values(quarter.begin(), quarter.end()), 0.2);
    times[q] = mean(std::span(at).subspan(begin, count));
    if (q > 0 && floors[q] <= floors[q - 1]) return std::nullopt;
  }
  const double whole = floors[3] - floors[0];
  const bool is_large = whole >= kSmallestGrowth && whole >= kGrowth * floors[0];
  if (!is_large || times[3] <= times[0] || floors[3] - floors[2] < whole / 6) return std::nullopt;
  const double top =
      *std::max_element(size.end() - static_cast<std::ptrdiff_t>(size.size() / kQuarters), size.end());
  return Growth{.from = size.front(), .to = top, .per_second = whole / (times[3] - times[0])};
}

// "1.2 MB a step", otherwise "70 MB a minute".
Message rate_text(const Growth& growth, const NodeUsage& use) {
  const auto time = use.steps.column("time");
  if (time.size() >= 2 && time.back() > time.front()) {
    const double step = (time.back() - time.front()) / static_cast<double>(time.size() - 1);
    return message("{} a step", bytes_text(growth.per_second * step));
  }
  return message("{} a minute", bytes_text(60 * growth.per_second));
}

void judge_growing_memory(const NodeUsage& use, std::vector<Finding>& found) {
  std::vector<int> growing;
  std::optional<Growth> first;
  for (const int rank : indices_of(use.samples, "rank", ".rss_bytes")) {
    const auto growth =
        growth_of(use.samples.column("time"), use.samples.column(format("rank{}.rss_bytes", rank)));
    if (!growth) continue;
    if (!first) first = growth;
    growing.push_back(rank);
  }
  if (!first) return;
  const auto limits = numbers_of(use.samples.column("cgroup_memory_limit_bytes"));
  const auto totals = numbers_of(use.samples.column("host_memory_total_bytes"));
  const auto usages =
      numbers_of(use.samples.column(limits.empty() ? "host_memory_bytes" : "cgroup_memory_bytes"));
  Message full;
  if (const Values& most = limits.empty() ? totals : limits; !most.empty() && !usages.empty()) {
    const double left =
        (most.back() - usages.back()) / (first->per_second * static_cast<double>(growing.size()));
    const double minutes = std::round(left / 60);
    if (minutes >= 1 && minutes < 30 * 24 * 60)
      full = message(", memory full in {}", rounded_duration(std::chrono::minutes(std::llround(minutes))));
  }
  found.push_back(finding(
      use, {"memory-grows", Level::time},
      message("memory of rank {} grows by {}, from {} to {}{}", growing.front(), rate_text(*first, use),
              bytes_text(first->from), bytes_text(first->to), full),
      message("rank {}: rss_bytes", list_of(growing)),
      message("check what each step keeps: losses without `item()`, lists of outputs, an unbounded cache")));
}

// The fraction of the step time in that column; 0 with too few steps.
double share_of(std::string_view column, const record::MetricTable& steps) {
  const Values part = numbers_of(steps.column(column));
  const Values whole = numbers_of(steps.column("step_s"));
  if (part.size() < kFewest || whole.size() != part.size()) return 0;
  return mean(part) / std::max(mean(whole), 1e-9);
}

}  // namespace

std::vector<Finding> node_usage_findings(const NodeUsage& use) {
  std::vector<Finding> found;
  judge_unused_gpus(use, found);
  judge_swinging_gpus(use, found);
  judge_throttled_gpus(use, found);
  judge_growing_memory(use, found);
  judge_idle_cpus(use, found);
  return found;
}

std::vector<Finding> step_findings(const std::string& file, const record::MetricTable& steps) {
  std::vector<Finding> found;
  if (const double share = share_of("data_s", steps); share >= kWait) {
    found.push_back(
        {.rule = "data-wait",
         .level = Level::time,
         .what = message("{:.0f} % of a step waits for data", 100 * share),
         .evidence = {{file, "data_s of step_s"}},
         .cure = message("`stoker data bench DATASET` shows the bottleneck; use more loader workers, or copy "
                         "the data to the local disks: `stage: {{copy: [FOLDER]}}`")});
  }
  if (const double share = share_of("communication_s", steps); share >= kCommunication) {
    found.push_back(
        {.rule = "communication-wait",
         .level = Level::time,
         .what = message("{:.0f} % of a step is communication between the ranks", 100 * share),
         .evidence = {{file, "communication_s of step_s"}},
         .cure = message("`stoker hello JOB` measures the network; use a larger batch or fewer nodes if "
                         "the network is fine")});
  }
  return found;
}

std::vector<Finding> metric_findings(const record::Attempt& attempt) {
  std::vector<Finding> found;
  const std::vector<record::PointFile> files = record::list_point_files(attempt);
  const auto first = std::find_if(files.begin(), files.end(),
                                  [&](const record::PointFile& file) { return file.rank != files[0].rank; });
  const record::RankPoints rank = record::read_points({files.begin(), first});
  for (const auto& [metric, points] : rank.metrics) {
    auto broken = points.end();
    while (broken != points.begin() && !std::isfinite(std::prev(broken)->value)) --broken;
    if (broken == points.end() || broken == points.begin()) continue;
    const Message evidence = message("{} of rank {} is finite until step {}", printable(metric),
                                     files[0].rank, std::prev(broken)->step);
    found.push_back(
        {.rule = "metric-not-finite",
         .level = Level::time,
         .what = std::isnan(broken->value)
                     ? message("{} is NaN from step {}", printable(metric), broken->step)
                     : message("{} is infinite from step {}", printable(metric), broken->step),
         .evidence = {{files[0].path.filename().string(), evidence}},
         .cure = message("resume from a checkpoint before that step with a lower learning rate, or clip the "
                         "gradients")});
  }
  return found;
}

std::vector<Finding> usage_findings(const record::Attempt& attempt) {
  std::vector<Finding> found = metric_findings(attempt);
  std::set<std::string> reported;
  NodeUsage use;
  if (const auto job = job::load(attempt.job()); job.ok()) use.asked = job->resources;
  if (auto steps = record::read_metrics(attempt.metrics(0)); steps.ok()) {
    for (Finding& each : step_findings(attempt.metrics(0).filename().string(), *steps))
      found.push_back(std::move(each));
    use.steps = *std::move(steps);
  }
  for (use.node = 0; use.node < kMaxNodes; ++use.node) {
    auto samples = record::read_metrics(attempt.system(use.node));
    if (!samples.ok()) continue;
    use.samples = *std::move(samples);
    use.file = attempt.system(use.node).filename().string();
    // Other nodes usually have the same finding.
    for (Finding& each : node_usage_findings(use)) {
      if (reported.insert(each.rule).second) found.push_back(std::move(each));
    }
  }
  return found;
}

}  // namespace stoker::diagnose
