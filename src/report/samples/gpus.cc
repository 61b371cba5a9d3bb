#include "report/samples/gpus.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "observe/gpu.h"
#include "observe/gpu_health.h"

namespace stoker::report {

namespace {

constexpr double kUnrecorded = std::numeric_limits<double>::quiet_NaN();

// Mean and peak of the finite values of one column, over all attempts.
struct ColumnSummary {
  double sum = 0;
  double peak = kUnrecorded;
  std::size_t count = 0;

  void add(std::span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      sum += value;
      peak = count == 0 ? value : std::max(peak, value);
      ++count;
    }
  }
  double mean() const { return count == 0 ? kUnrecorded : sum / static_cast<double>(count); }
};

}  // namespace

// Everything about one GPU, over all attempts.
struct GpuTable::Summary {
  GpuFacts facts;
  ColumnSummary busy, memory, memory_total, power, sm_clock, memory_clock, temperature;
  std::size_t samples = 0;  // with known throttle reasons
  std::size_t throttled = 0;
  std::map<std::string, std::size_t> by_reason;
  double ecc_errors = kUnrecorded;

  void add(const record::MetricTable& table, const std::string& prefix);
  GpuFacts finish() &&;
};

void GpuTable::Summary::add(const record::MetricTable& table, const std::string& prefix) {
  busy.add(table.column(prefix + "busy_percent"));
  memory.add(table.column(prefix + "memory_bytes"));
  memory_total.add(table.column(prefix + "memory_total_bytes"));
  power.add(table.column(prefix + "power_w"));
  sm_clock.add(table.column(prefix + "sm_clock_mhz"));
  memory_clock.add(table.column(prefix + "memory_clock_mhz"));
  temperature.add(table.column(prefix + "temperature_c"));
  constexpr double kMostBits = 1e15;  // exact as a double
  for (const double value : table.column(prefix + "throttle_reasons")) {
    if (!(value >= 0 && value < kMostBits)) continue;
    const auto reasons = observe::throttle_texts(static_cast<std::uint64_t>(value));
    ++samples;
    if (!reasons.empty()) ++throttled;
    for (const std::string& reason : reasons) ++by_reason[reason];
  }
  // A count since the driver was loaded: what an attempt adds is the difference.
  ColumnSummary errors;
  errors.add(table.column(prefix + "ecc_errors"));
  if (errors.count == 0) return;
  double first = errors.peak;
  for (const double value : table.column(prefix + "ecc_errors")) {
    if (std::isfinite(value)) first = std::min(first, value);
  }
  ecc_errors = (std::isfinite(ecc_errors) ? ecc_errors : 0) + errors.peak - first;
}

GpuFacts GpuTable::Summary::finish() && {
  facts.busy_mean = busy.mean();
  facts.busy_peak = busy.peak;
  facts.memory_peak = memory.peak;
  facts.memory_total = memory_total.peak;
  facts.power_mean = power.mean();
  facts.power_peak = power.peak;
  facts.sm_clock_mean = sm_clock.mean();
  facts.memory_clock_mean = memory_clock.mean();
  facts.temperature_peak = temperature.peak;
  facts.ecc_errors = ecc_errors;
  const auto share = [&](std::size_t part) {
    return samples == 0 ? kUnrecorded : static_cast<double>(part) / static_cast<double>(samples);
  };
  facts.throttled_share = share(throttled);
  for (const auto& [reason, part] : by_reason) facts.throttle_shares.emplace_back(reason, share(part));
  std::ranges::stable_sort(facts.throttle_shares,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return std::move(facts);
}

GpuTable::GpuTable() = default;
GpuTable::~GpuTable() = default;

GpuTable::Summary& GpuTable::at(int node, int gpu) {
  auto& summary = all_[{node, gpu}];
  if (!summary) summary = std::make_unique<Summary>();
  return *summary;
}

void GpuTable::add_samples(const record::MetricTable& table, int node) {
  for (int gpu = 0; gpu < observe::kMaxGpus && table.has(format("gpu{}.busy_percent", gpu)); ++gpu)
    at(node, gpu).add(table, format("gpu{}.", gpu));
}

void GpuTable::add_events(const record::EventLog& log) {
  for (const record::Event& event : log.events) {
    if (const auto found = record::gpu_found(event)) {
      GpuFacts& facts = at(found->node, found->gpu).facts;
      facts.host = found->host;
      facts.name = found->name;
      facts.uuid = found->uuid;
      facts.pci_bus_id = found->pci_bus_id;
      facts.mig_devices = found->mig_devices;
    } else if (const auto fault = record::gpu_fault(event)) {
      at(fault->node, fault->gpu).facts.xids.push_back({event.time, fault->code});
    }
  }
}

std::vector<GpuFacts> GpuTable::finish() {
  std::vector<GpuFacts> gpus;
  for (auto& [place, summary] : all_) {
    summary->facts.node = place.first;
    summary->facts.gpu = place.second;
    gpus.push_back(std::move(*summary).finish());
  }
  return gpus;
}

}  // namespace stoker::report
