#include "data/pack/shard/jpeg_rewrite.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker::data {
namespace {

TEST(RestartInterval, divides_a_row_and_is_near_four) {
  EXPECT_EQ(restart_interval(32), 4u);
  EXPECT_EQ(restart_interval(30), 5u);
  EXPECT_EQ(restart_interval(63), 3u);
  EXPECT_EQ(restart_interval(14), 7u);
  EXPECT_EQ(restart_interval(22), 2u);
  EXPECT_EQ(restart_interval(31), 31u);  // a prime: once a row
  EXPECT_EQ(restart_interval(1), 1u);
}

TEST(RewriteJpeg, refuses_what_is_damaged_or_cut_off) {
  const std::string text = "no JPEG";
  EXPECT_EQ(rewrite_jpeg(std::as_bytes(std::span(text)), RestartMarkers::some).error().message(),
            "JPEG: Not a JPEG file: starts with 0x6e 0x6f");
  EXPECT_FALSE(rewrite_jpeg({}, RestartMarkers::none).ok());
}

}  // namespace
}  // namespace stoker::data
