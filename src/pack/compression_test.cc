#include "pack/compression.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "sources/files/tree.h"

namespace stoker::pack {
namespace {

using ::testing::StartsWith;

Result<CompressionAdvice> advice_on(const TempDirectory& folder) {
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(
      source, sources::list_source({.where = folder.path().string(), .layout = sources::SourceLayout::files},
                                   progress));
  return advise_compression(source, progress);
}

TEST(Compression, samples_a_bounded_part_of_each_extension) {
  TempDirectory folder;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(write_file(folder / format("{}.txt", i), std::string(3u << 20, 'x')).ok());
    ASSERT_TRUE(write_file(folder / format("{}.csv", i), "a,b\n").ok());
  }
  const auto advice = advice_on(folder);
  ASSERT_TRUE(advice.ok()) << advice.status().to_string();
  EXPECT_EQ(advice->sampled_bytes, (8u << 20) + 12 * 4);
  ASSERT_EQ(advice->kinds.size(), 2U);
  EXPECT_EQ(advice->kinds[0].extension, "txt");
  EXPECT_GT(advice->kinds[0].share, 0.99);
  EXPECT_LT(advice->kinds[0].ratio, 0.01);
  EXPECT_EQ(advice->verdict, "none");
  EXPECT_THAT(advice->why, StartsWith("zstd 9 would reach 0.00 (zstd 3: txt 0.00, csv "));
}

TEST(Compression, gives_no_advice_without_bytes) {
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "1.txt", "").ok());
  const auto advice = advice_on(folder);
  ASSERT_TRUE(advice.ok()) << advice.status().to_string();
  EXPECT_EQ(advice->why, "there is no data to measure");
  for (const CompressionTrial& trial : advice->trials) EXPECT_EQ(trial.ratio, 1);
}

TEST(Compression, is_cancellable) {
  class Stopped final : public Progress {
   public:
    void report(const ProgressState&) override {}
    bool stop_requested() const override { return true; }
  };
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "1.txt", "x").ok());
  NoProgress progress;
  const auto source = sources::list_source(
      {.where = folder.path().string(), .layout = sources::SourceLayout::files}, progress);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(advise_compression(*source, Stopped()).status().code(), Code::cancelled);
}

}  // namespace
}  // namespace stoker::pack
