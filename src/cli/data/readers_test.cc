#include "cli/data/readers.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(Readers, are_ranks_times_workers) {
  EXPECT_FALSE(parse_readers("data pack", "").value().has_value());
  const auto readers = parse_readers("data pack", "ranks=64, workers=8").value();
  ASSERT_TRUE(readers.has_value());
  EXPECT_EQ(readers->ranks, 64u);
  EXPECT_EQ(readers->workers, 8u);
}

TEST(Readers, invalid_values_name_the_option) {
  for (const char* text : {"ranks", "ranks=", "ranks=0", "ranks=-1", "ranks=1000000", "nodes=2", "ranks=2,"})
    EXPECT_EQ(parse_readers("data pack", text).error().code(), Code::invalid) << text;
  EXPECT_EQ(parse_readers("data pack", "ranks=x").error().message(),
            "data pack: --for: 'ranks=x' is neither ranks=N nor workers=N");
  EXPECT_EQ(parse_readers("data pack", "ranks=1000,workers=1000").error().message(),
            "data pack: --for: 1000000 readers, at most 999999");
}

}  // namespace
}  // namespace stoker::cli
