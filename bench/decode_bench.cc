// Photographs to tensors: the loader with the recipe imagenet-train (read, CRC, crop, decode, resize, flip,
// normalise; batches of 64), and the bounds it is held to: libjpeg-turbo decoding random crops of the same
// files from memory, with as many threads, alone and with our resize and nothing else. STOKER_BENCH_DATASET
// names a packed dataset of JPEGs; without it there is nothing to measure. bench/decode.py runs it.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <time.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <jpeglib.h>

#include "dataset/shard_source.h"
#include "image/transform/resize.h"
#include "stoker/loader.h"

namespace stoker::image {
namespace {

void stop_unless(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "decode_bench: %s\n", status.to_string().c_str());
  std::exit(1);
}

const dataset::ShardSource* photographs() {
  static const std::unique_ptr<dataset::ShardSource> source = []() -> std::unique_ptr<dataset::ShardSource> {
    const char* dataset = std::getenv("STOKER_BENCH_DATASET");
    if (!dataset) return nullptr;
    auto opened = dataset::LocalShardSource::open(dataset, "");
    stop_unless(opened.status());
    return std::move(*opened);
  }();
  return source.get();
}

using File = std::vector<std::byte>;

const std::vector<File>& files_in_memory() {
  static const std::vector<File> files = [] {
    std::vector<File> all;
    const dataset::ShardSource& source = *photographs();
    for (std::uint64_t i = 0; i < source.samples().size(); ++i) {
      const dataset::Locator at = *source.samples().image(i);
      all.emplace_back(at.length);
      stop_unless(source.read(at.shard, at.offset, all.back()));
    }
    return all;
  }();
  return files;
}

double process_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Images per second, and milliseconds of CPU for each: on a machine with other work, the steadier figure.
void report(benchmark::State& state, std::uint64_t images, double cpu_before) {
  const double cpu = process_cpu_seconds() - cpu_before;
  state.counters["images/s"] = benchmark::Counter(static_cast<double>(images), benchmark::Counter::kIsRate);
  state.counters["cpu_ms"] = 1e3 * cpu / static_cast<double>(images);
}

struct CropRect {
  JDIMENSION x, y, width, height;
};

// torchvision's RandomResizedCrop, its first attempt that fits.
CropRect random_crop(std::mt19937& rng, JDIMENSION width, JDIMENSION height) {
  std::uniform_real_distribution<double> area(0.08, 1), log_ratio(std::log(3.0 / 4), std::log(4.0 / 3));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area(rng) * width * height;
    const double ratio = std::exp(log_ratio(rng));
    const auto w = static_cast<JDIMENSION>(std::lround(std::sqrt(target * ratio)));
    const auto h = static_cast<JDIMENSION>(std::lround(std::sqrt(target / ratio)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    return {static_cast<JDIMENSION>(rng() % (width - w + 1)),
            static_cast<JDIMENSION>(rng() % (height - h + 1)), w, h};
  }
  return {0, 0, width, height};
}

// No error handling: pack has decoded these files before.
enum class Bound { whole, crop, crop_resize };

// Buffers of one thread.
struct BoundScratch {
  std::mt19937 rng{1};
  std::vector<unsigned char> pixels;
  image::Resizer resizer;
  std::vector<unsigned char> resized = std::vector<unsigned char>(std::size_t{3} * 224 * 224);
};

void resize(const CropRect& part, BoundScratch& scratch) {
  scratch.resizer.start({.part = {0, 0, part.width, part.height},
                         .width = 224,
                         .height = 224,
                         .window = {0, 0, 224, 224},
                         .filter = image::ResizeFilter::bilinear});
  scratch.resizer.set_source({{part.width, part.height, scratch.pixels}, 0, 0});
  for (std::uint32_t y = 0; y < 224; ++y)
    std::copy_n(scratch.resizer.row(y), 3 * 224, scratch.resized.data() + std::size_t{3} * 224 * y);
}

void decode_crop(const File& file, Bound bound, BoundScratch& scratch) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.jpeg_color_space != JCS_CMYK && jpeg.jpeg_color_space != JCS_YCCK) jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  CropRect part{0, 0, jpeg.output_width, jpeg.output_height};
  if (bound != Bound::whole) {
    part = random_crop(scratch.rng, jpeg.output_width, jpeg.output_height);
    jpeg_crop_scanline(&jpeg, &part.x, &part.width);
    if (part.y > 0) jpeg_skip_scanlines(&jpeg, part.y);
  }
  const std::size_t stride = std::size_t{static_cast<unsigned>(jpeg.output_components)} * part.width;
  scratch.pixels.resize(stride * part.height);
  for (std::size_t y = 0; jpeg.output_scanline < part.y + part.height; ++y) {
    unsigned char* rows[] = {scratch.pixels.data() + y * stride};
    jpeg_read_scanlines(&jpeg, rows, 1);
  }
  const bool is_rgb = jpeg.output_components == 3;
  jpeg_destroy_decompress(&jpeg);
  if (bound == Bound::crop_resize && is_rgb) resize(part, scratch);
}

void libjpeg(benchmark::State& state, Bound bound) {
  if (!photographs()) return state.SkipWithError("STOKER_BENCH_DATASET names no dataset");
  const std::vector<File>& files = files_in_memory();
  std::uint64_t images = 0;
  const double before = process_cpu_seconds();
  for (auto _ : state) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      BoundScratch scratch;
      for (std::size_t i; (i = next.fetch_add(1)) < files.size();) decode_crop(files[i], bound, scratch);
    };
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < state.range(0); ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    images += files.size();
  }
  report(state, images, before);
}

void libjpeg_crop(benchmark::State& state) { libjpeg(state, Bound::crop); }
BENCHMARK(libjpeg_crop)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void libjpeg_crop_resize(benchmark::State& state) { libjpeg(state, Bound::crop_resize); }
BENCHMARK(libjpeg_crop_resize)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void libjpeg_whole(benchmark::State& state) { libjpeg(state, Bound::whole); }
BENCHMARK(libjpeg_whole)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void loader(benchmark::State& state, loader::Check check) {
  if (!photographs()) return state.SkipWithError("STOKER_BENCH_DATASET names no dataset");
  loader::LoaderOptions options;
  options.batch = 64;
  options.prefetch = 2;
  options.threads = static_cast<std::uint32_t>(state.range(0));
  options.check = check;
  options.transform.operations = recipe("imagenet-train").value();
  auto loader = loader::Loader::open(*photographs(), options);
  stop_unless(loader.status());
  std::uint64_t images = 0;
  const auto epoch = [&] {
    for (;;) {
      auto batch = (*loader)->next(Deadline::after(std::chrono::minutes(1)));
      stop_unless(batch.status());
      if (!*batch) return;
      images += (*batch)->count();
    }
  };
  epoch();
  images = 0;
  const loader::LoaderStats warm = (*loader)->stats();
  const double before = process_cpu_seconds();
  for (auto _ : state) epoch();
  report(state, images, before);
  const loader::LoaderStats done = (*loader)->stats();
  const auto busy = [](const loader::LoaderStats& stats) {
    return stats.read_s + stats.check_s + stats.decode_s;
  };
  state.counters["check_share"] = (done.check_s - warm.check_s) / (busy(done) - busy(warm));
}

void loader_checked(benchmark::State& state) { loader(state, loader::Check::crc); }
BENCHMARK(loader_checked)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void loader_unchecked(benchmark::State& state) { loader(state, loader::Check::none); }
BENCHMARK(loader_unchecked)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stoker::image
