// Reads stored samples in random order for bench/samples.py, bench/first_sample.py and
// bench/resume_half_epoch.py.
//
//   samples_bench random DATASET THREADS crc|plain    the loader: samples per second
//   samples_bench bound DATASET                       copies from mapped shards into batches, nothing else
//   samples_bench first DATASET                       ends with the first batch of one sample
//   samples_bench resume DATASET RANKS                half an epoch on two ranks, then on RANKS: seconds to
//                                                     the first batch, repeated samples, missing samples
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/stopwatch.h"
#include "dataset/shard_source.h"
#include "program.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

using bench::fail;
using bench::value_or_fail;

std::uint32_t number(const char* text) {
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || value == 0) fail("no number: " + std::string(text));
  return value;
}

std::unique_ptr<dataset::LocalShardSource> open(const char* dataset) {
  const dataset::Manifest manifest = value_or_fail(dataset::read_manifest(dataset));
  return value_or_fail(dataset::LocalShardSource::open(dataset, manifest.splits.size() == 1 ? "" : "train"));
}

loader::LoaderOptions options_for(std::uint32_t threads) {
  loader::LoaderOptions options;
  options.content = loader::Content::bytes;
  options.batch = 1024;
  options.threads = threads;
  options.prefetch = 4;
  options.resident = 4_GiB;
  return options;
}

std::optional<loader::Batch> next(loader::Loader& loader) {
  return value_or_fail(loader.next(Deadline::after(std::chrono::minutes(1))));
}

void random(const char* dataset, std::uint32_t threads, loader::Check check) {
  const auto source = open(dataset);
  loader::LoaderOptions options = options_for(threads);
  options.check = check;
  const auto loader = value_or_fail(loader::Loader::open(*source, options));
  while (next(*loader)) {
  }
  const double work_before = loader->stats().work_s;
  const Stopwatch watch;
  std::uint64_t samples = 0;
  for (int epochs = 0; watch.seconds() < 1; ++epochs) {
    while (const auto batch = next(*loader)) samples += batch->count();
  }
  const double seconds = watch.seconds();
  std::printf("%.0f %.4f\n", static_cast<double>(samples) / seconds,
              1e6 * (loader->stats().work_s - work_before) / static_cast<double>(samples));
}

void bound(const char* dataset) {
  const auto source = open(dataset);
  std::vector<std::span<const std::byte>> shards;
  for (std::uint32_t i = 0; i < source->split().shards.size(); ++i)
    shards.push_back(value_or_fail(source->map(i)));
  std::vector<std::byte> batch(std::size_t{1024} * 1024 * 16);
  std::uint64_t samples = 0;
  double seconds = 0;
  for (std::int64_t epoch = 0; epoch < 10 || seconds < 1; ++epoch) {
    const Stopwatch watch;
    const loader::EpochOrder order = value_or_fail(
        loader::EpochOrder::create({.samples = source->samples().size(), .seed = 1}, Epoch{epoch}));
    std::size_t used = 0;
    for (std::uint64_t position = 0; position < order.samples(); ++position) {
      if (position % 1024 == 0) used = 0;
      const dataset::Locator at = source->samples().locate(order.at(position), 0);
      std::memcpy(batch.data() + used, shards[at.shard].data() + at.offset, at.length);
      used += at.length;
    }
    if (epoch == 0) continue;  // page faults
    seconds += watch.seconds();
    samples += order.samples();
  }
  std::printf("%.0f 0\n", static_cast<double>(samples) / seconds);
}

void first(const char* dataset) {
  const auto source = open(dataset);
  loader::LoaderOptions options = options_for(1);
  options.batch = 1;
  options.prefetch = 1;
  const auto loader = value_or_fail(loader::Loader::open(*source, options));
  if (!next(*loader)) fail("no sample");
  ::_exit(0);  // what matters is when the sample is there
}

// Takes the samples of every rank from `state` on until the epoch ends, or `most` batches each.
loader::OrderState read_ranks(const dataset::ShardSource& source, const loader::OrderState& state, int world,
                              std::uint64_t most, std::vector<std::uint8_t>& seen) {
  loader::OrderState after = state;
  for (int rank = 0; rank < world; ++rank) {
    loader::LoaderOptions options = options_for(1);
    options.rank = {Rank{rank}, WorldSize{world}, loader::Remainder::exact};
    const auto loader = value_or_fail(loader::Loader::open(source, options, state));
    for (std::uint64_t i = 0; i < most; ++i) {
      const auto batch = next(*loader);
      if (!batch) break;
      for (const std::uint64_t sample : batch->samples()) ++seen[sample];
      if (batch->after().position > after.position) after = batch->after();
    }
  }
  return after;
}

void resume(const char* dataset, int world) {
  constexpr std::uint32_t kBatch = 128;
  const auto source = open(dataset);
  const std::uint64_t samples = source->samples().size();
  std::vector<std::uint8_t> seen(samples);
  const loader::OrderState half =
      read_ranks(*source, {.samples = samples}, 2, samples / 2 / (2 * options_for(1).batch), seen);
  const Stopwatch watch;
  const auto again = open(dataset);
  stoker::loader::LoaderOptions options = options_for(1);
  options.batch = kBatch;
  options.rank = {Rank{0}, WorldSize{world}, stoker::loader::Remainder::exact};
  const auto loader = value_or_fail(stoker::loader::Loader::open(*again, options, half));
  if (!next(*loader)) fail("no sample");
  const double seconds = watch.seconds();
  read_ranks(*source, half, world, samples, seen);
  const auto times = [&](std::uint8_t n) { return std::count(seen.begin(), seen.end(), n); };
  const auto never = times(0);
  std::printf("%.6f %ld %ld\n", seconds, static_cast<long>(seen.size()) - times(1) - never, never);
}

}  // namespace
}  // namespace stoker::loader

int main(int argc, char** argv) {
  using namespace stoker::codec;
  using namespace stoker::dataset;
  using namespace stoker::image;
  using namespace stoker::loader;
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "random" && argc == 5) {
    random(argv[2], number(argv[3]),
           std::string(argv[4]) == "crc" ? stoker::loader::Check::crc : stoker::loader::Check::none);
  } else if (what == "bound" && argc == 3) {
    bound(argv[2]);
  } else if (what == "first" && argc == 3) {
    first(argv[2]);
  } else if (what == "resume" && argc == 4) {
    resume(argv[2], static_cast<int>(number(argv[3])));
  } else {
    std::fprintf(stderr, "samples_bench random|bound|first|resume DATASET ...\n");
    return 2;
  }
}
