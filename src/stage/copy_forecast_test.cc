#include "stage/copy_forecast.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

TEST(CopyForecast, counts_files_and_folders_without_links) {
  TempDirectory box;
  ASSERT_TRUE(make_directories(box / "env/lib").ok());
  ASSERT_TRUE(write_file(box / "env/lib/a", std::string(700, 'a')).ok());
  ASSERT_TRUE(write_file(box / "env/b", std::string(2'000'000, 'b')).ok());
  ASSERT_TRUE(write_file(box / "data.tar", std::string(300, 'c')).ok());
  std::filesystem::create_symlink("b", box / "env/link");
  const CopyForecast found = forecast_copy({box / "env", box / "data.tar", box / "gone"});
  EXPECT_EQ(found.bytes, 2'001'000u);
  EXPECT_EQ(found.files, 3u);
  EXPECT_TRUE(found.is_whole);
  EXPECT_GT(found.seconds, 0);
}

TEST(CopyForecast, nothing_to_copy_takes_no_time) {
  TempDirectory box;
  EXPECT_EQ(forecast_copy({box.path()}).seconds, 0);
  EXPECT_EQ(forecast_copy({}).files, 0u);
}

TEST(CopyForecast, many_small_files_are_sampled) {
  TempDirectory box;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(write_file(box / std::to_string(i), "x").ok());
  const CopyForecast found = forecast_copy({box.path()});
  EXPECT_EQ(found.files, 500u);
  EXPECT_EQ(found.bytes, 500u);
  EXPECT_GT(found.seconds, 0);
}

}  // namespace
}  // namespace stoker::stage
