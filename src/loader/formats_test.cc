// Everything with threads, on shards of every kind: packing that is interrupted and resumed, and a loader
// that is cancelled, destroyed and resumed while its threads read. Made for ThreadSanitizer (script/soak
// tsan), and quick without it.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/test_pictures.h"
#include "pack/pack.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kPictures = 96;

// Requests a stop after that many progress reports. Some threads poll it while others report.
class StopsAfter final : public Progress {
 public:
  explicit StopsAfter(int times) : left_(times) {}
  void report(const ProgressState&) override { left_.fetch_sub(1); }
  bool stop_requested() const override { return left_.load() <= 0; }

 private:
  std::atomic<int> left_;
};

class Formats : public testing::TestWithParam<pack::ShardFormat> {
 protected:
  Formats() {
    for (std::uint64_t i = 0; i < kPictures; ++i) {
      const Path folder = images_ / format("class-{}", i % 3);
      STOKER_CHECK(make_directories(folder).ok() &&
                   write_file(folder / format("{:04}.png", i), picture(i)).ok());
    }
  }

  Path dataset() const { return out_ / "dataset"; }

  pack::PackOptions packing() const {
    pack::PackOptions options;
    options.source.where = images_.path().string();
    options.source.threads = options.threads = 4;
    options.out = dataset();
    options.format = GetParam();
    options.sizing.shards = 5;
    return options;
  }

  std::unique_ptr<dataset::ShardSource> packed() const {
    NoProgress progress;
    const auto plan = plan_pack(packing(), progress);
    STOKER_CHECK(plan.ok() && run_pack(*plan, progress).ok());
    return dataset::LocalShardSource::open(dataset(), "").value();
  }

  static LoaderOptions loading() {
    LoaderOptions options = options_of(7);
    options.threads = 4;
    options.prefetch = 3;
    return options;
  }

 private:
  const TempDirectory images_, out_;
};

std::string name_of_format(const testing::TestParamInfo<pack::ShardFormat>& info) {
  constexpr const char* kNames[] = {"automatic", "tar", "tfrecord", "parquet", "hdf5", "zarr", "zarr_2"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Loader, Formats,
                         testing::Values(pack::ShardFormat::tar, pack::ShardFormat::tfrecord,
                                         pack::ShardFormat::parquet, pack::ShardFormat::hdf5,
                                         pack::ShardFormat::zarr),
                         name_of_format);

TEST_P(Formats, packing_interrupted_anywhere_resumes) {
  NoProgress calm;
  const auto plan = plan_pack(packing(), calm);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  for (const int times : {1, 3, 20, 60}) {
    StopsAfter progress(times);
    const auto summary = run_pack(*plan, progress);
    if (summary.ok()) return;
    ASSERT_EQ(summary.status().code(), Code::cancelled) << summary.status().to_string();
  }
  const auto summary = run_pack(*plan, calm);
  ASSERT_TRUE(summary.ok()) << summary.status().to_string();
  EXPECT_EQ(summary->manifest.splits.front().samples, kPictures);
}

TEST_P(Formats, threads_and_resuming_change_no_batch) {
  const auto source = packed();
  LoaderOptions alone = loading();
  alone.threads = 1;
  const std::vector<ReceivedBatch> expected = read_epochs(*Loader::open(*source, alone).value(), 2);
  EXPECT_EQ(read_epochs(*Loader::open(*source, loading()).value(), 2), expected);
  const std::vector<ReceivedBatch> rest(expected.begin() + 5, expected.end());
  auto resumed = Loader::open(*source, loading(), expected[4].after).value();
  EXPECT_EQ(read_epochs(*resumed, 2), rest);
  ASSERT_TRUE(resumed->restart(expected[4].after).ok());
  EXPECT_EQ(read_epochs(*resumed, 2), rest);
}

TEST_P(Formats, a_loader_can_be_destroyed_at_any_time) {
  const auto source = packed();
  for (int taken = 0; taken < 12; ++taken) {
    auto loader = Loader::open(*source, loading()).value();
    for (int i = 0; i < taken; ++i) next_batch(*loader);
    std::thread other([&] {
      if (taken % 2 == 0) loader->cancel();
    });
    while (loader->next(soon()).ok() && taken % 2 == 0) continue;
    other.join();
  }
}

TEST_P(Formats, damage_stops_every_thread) {
  const auto source = packed();
  const dataset::Locator at = *source->samples().image(kPictures / 2);
  File file = File::open_read_write(dataset() / source->split().shards[at.shard].file).value();
  const std::byte zeros[8] = {};
  ASSERT_TRUE(file.write_at(at.offset + at.length / 2, zeros).ok());
  auto loader = Loader::open(*source, loading()).value();
  Status status;
  while (status.ok()) status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::corrupt) << status.to_string();
}

}  // namespace
}  // namespace stoker::loader
