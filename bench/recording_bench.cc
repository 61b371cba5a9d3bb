// What recording costs a trainer per step: one row of metrics, one receipt of 64 samples, eight beacon
// updates (the phases of a step and its number). Budget: 0.5 % of a 150 ms step, 750 us. And one sample of
// the supervisor: budget 0.5 % of a second of one core, 5 ms.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/file.h"
#include "observe/system_sampler.h"
#include "record/beacon.h"
#include "record/metrics.h"
#include "record/receipts.h"
#include "stoker/metrics.h"

namespace stoker {
namespace {

constexpr record::Phase kPhases[] = {record::Phase::data,      record::Phase::forward,
                                     record::Phase::backward,  record::Phase::communication,
                                     record::Phase::optimizer, record::Phase::checkpoint,
                                     record::Phase::data};

void record_one_step(benchmark::State& state) {
  TempDirectory box;
  auto metrics = record::MetricWriter::create(box / "metrics-0000.csv", record::kStepColumns);
  auto receipts = record::ReceiptWriter::create(box / "receipts-0000.bin");
  auto beacon = record::Beacon::create(box / "rank-0000.beacon", 0);
  const std::vector<std::uint64_t> samples(64, 12345);
  double row[std::size(record::kStepColumns)];
  for (std::size_t i = 0; i < std::size(row); ++i) row[i] = 1.0 / static_cast<double>(i + 3);
  row[0] = 1'763'719'391.123456;
  std::uint32_t step = 0;
  for (auto _ : state) {
    row[2] = ++step;
    beacon->at(0, step);
    for (record::Phase phase : kPhases) beacon->enter(phase);
    if (!metrics->append(row).ok() || !receipts->append(0, step, samples).ok())
      state.SkipWithError("disk full");
  }
}
BENCHMARK(record_one_step)->Unit(benchmark::kMicrosecond);

// One metric of a program that logs its own: budget 1 us.
void log_one_metric(benchmark::State& state) {
  TempDirectory box;
  record::MetricLog log(record::MetricLogOptions{.attempt = box.path(), .report = {}});
  std::int64_t step = 0;
  for (auto _ : state) {
    if (!log.log({{"loss", 0.5123}}, ++step).ok()) state.SkipWithError("refused");
  }
}
BENCHMARK(log_one_metric);

// A million points in a row, until all of them survive a kill -9: budget 1 s.
void log_a_million_points(benchmark::State& state) {
  constexpr std::int64_t kPoints = 1'000'000;
  for (auto _ : state) {
    TempDirectory box;
    record::MetricLog log(record::MetricLogOptions{.attempt = box.path(), .report = {}});
    for (std::int64_t step = 1; step <= kPoints; ++step)
      (void)log.log({{"loss", 1 / static_cast<double>(step)}}, step);
    if (!log.flush(Deadline::after(std::chrono::seconds(60))).ok()) state.SkipWithError("not written");
    state.PauseTiming();
    const auto text = read_file(box / "points-0000.csv", 256_MiB);
    if (!text.ok() || std::count(text->begin(), text->end(), '\n') != kPoints + 1)
      state.SkipWithError("points are missing");
    state.ResumeTiming();
  }
}
BENCHMARK(log_a_million_points)->Unit(benchmark::kMillisecond)->Iterations(1)->UseRealTime();

void beacon_update(benchmark::State& state) {
  TempDirectory box;
  auto beacon = record::Beacon::create(box / "rank-0000.beacon", 0);
  for (auto _ : state) beacon->enter(record::Phase::forward);
}
BENCHMARK(beacon_update);

void sample_node_with_two_ranks(benchmark::State& state) {
  TempDirectory box;
  auto sampler = observe::SystemSampler::create(box / "system-0000.csv", {{0, ::getpid()}, {1, ::getppid()}});
  double now = 0;
  for (auto _ : state) {
    if (!sampler->sample(now, now).ok()) state.SkipWithError("disk full");
    now += 1;
  }
}
BENCHMARK(sample_node_with_two_ranks)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stoker
