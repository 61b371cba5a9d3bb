// How fast samples come, per thread and CPU second: real CIFAR-10 images (the shipped tenth, packed into a
// temporary folder, or the dataset that STOKER_BENCH_DATASET names), batches of 128, augmented as for
// training. Beside it the order of an epoch of ImageNet's size, and one photograph's worth of pixels through
// the random resized crop.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>

#include <benchmark/benchmark.h>

#include "archive/tar.h"
#include "base/file.h"
#include "dataset/shard_source.h"
#include "image/transform/transform.h"
#include "pack/pack.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

constexpr const char* kExample = "examples/cifar10/cifar10-6000.tar";  // script/bench runs in the checkout

void stop_unless(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "loader_bench: %s\n", status.to_string().c_str());
  std::exit(1);
}

Status unpack(const Path& archive, const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(tar, MappedFile::open(archive));
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::copy_n(tar.bytes().begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return Status();
  };
  archive::TarReader reader(read, tar.bytes().size(), archive.string());
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(member, reader.next());
    if (!member) return Status();
    if (member->kind != archive::TarKind::file) continue;
    const Path path = folder / member->name;
    STOKER_RETURN_IF_ERROR(make_directories(path.parent_path()));
    const auto bytes = tar.bytes().subspan(member->data_offset, member->size);
    STOKER_RETURN_IF_ERROR(write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
}

// The example packed, once for all benches.
Status pack_example(const Path& folder) {
  STOKER_RETURN_IF_ERROR(unpack(kExample, folder / "images"));
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(plan,
                          pack::plan_pack({.source = folder / "images", .out = folder / "packed"}, progress));
  return pack::run_pack(plan, progress).status();
}

const dataset::ShardSource& training_images() {
  static TempDirectory folder;
  static const std::unique_ptr<dataset::ShardSource> source = [] {
    Path dataset = folder / "packed";
    if (const char* given = std::getenv("STOKER_BENCH_DATASET")) {
      dataset = given;
    } else {
      stop_unless(pack_example(folder.path()));
    }
    auto opened = dataset::LocalShardSource::open(dataset, "train");
    stop_unless(opened.status());
    return std::move(*opened);
  }();
  return *source;
}

loader::LoaderOptions training_options(std::uint32_t threads) {
  loader::LoaderOptions options;
  options.batch = 128;
  options.threads = threads;
  options.transform.operations = image::recipe("cifar-train").value();
  return options;
}

std::uint64_t read_epoch(loader::Loader& loader) {
  std::uint64_t samples = 0;
  for (;;) {
    auto batch = loader.next(Deadline::after(std::chrono::minutes(1)));
    stop_unless(batch.status());
    if (!*batch) return samples;
    samples += (*batch)->count();
  }
}

void run_epochs(benchmark::State& state, ByteCount cache) {
  loader::LoaderOptions options = training_options(static_cast<std::uint32_t>(state.range(0)));
  options.cache = cache;
  auto loader = loader::Loader::open(training_images(), options).value();
  read_epoch(*loader);  // fills the page cache, and ours
  const double work_before = loader->stats().work_s;
  std::uint64_t samples = 0;
  for (auto _ : state) samples += read_epoch(*loader);
  state.counters["samples/s"] = benchmark::Counter(static_cast<double>(samples), benchmark::Counter::kIsRate);
  state.counters["cpu_ms/1000"] = 1e6 * (loader->stats().work_s - work_before) / static_cast<double>(samples);
}

// Epochs of read, check, decode, crop, flip, normalise; the argument is the number of threads.
void decoding(benchmark::State& state) { run_epochs(state, {0}); }
BENCHMARK(decoding)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// The same with all decoded pixels in the cache.
void cached(benchmark::State& state) { run_epochs(state, 1_GiB); }
BENCHMARK(cached)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// The order of one epoch over as many samples as ImageNet has.
void imagenet_epoch_order(benchmark::State& state) {
  std::int64_t epoch = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(loader::EpochOrder::create({.samples = 1281167}, Epoch{epoch++}));
}
BENCHMARK(imagenet_epoch_order)->Unit(benchmark::kMillisecond);

// Random part of a photograph of 500 x 375 to 224 x 224, normalised.
void scaled_crop(benchmark::State& state) {
  image::Image image{500, 375, std::vector<std::uint8_t>(std::size_t{3} * 500 * 375)};
  std::iota(image.pixels.begin(), image.pixels.end(), std::uint8_t{0});
  auto transform = image::Transform::create({.operations = image::recipe("imagenet-train").value()}).value();
  image::TransformScratch scratch;
  std::vector<std::byte> out(transform.bytes());
  image::SampleKey sample_key;
  for (auto _ : state) {
    ++sample_key.sample;
    stop_unless(transform.apply(image.view(), sample_key, scratch, out));
  }
}
BENCHMARK(scaled_crop)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stoker::loader
