#include "cli/data/shard_options.h"

#include <cstdio>
#include <optional>

#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker::cli {
namespace {

// The options applied to a plan of this format, or the error.
Result<pack::PackOptions> apply(std::vector<std::string> words,
                                pack::ShardFormat shard_format = pack::ShardFormat::tar) {
  ShardOptions shards;
  Arguments arguments("test", "Tests.");
  shards.declare(arguments);
  std::FILE* file = std::tmpfile();
  Output out(OutputMode::text, file, file);
  EXPECT_EQ(arguments.parse(words, out), std::nullopt);
  std::fclose(file);
  pack::PackOptions options;
  options.format = shard_format;
  STOKER_RETURN_IF_ERROR(shards.apply("data pack", options));
  return options;
}

TEST(ShardOptions, select_number_or_size_of_shards_but_not_both) {
  EXPECT_EQ(apply({"--shards", "4"}).value().sizing.shards, 4);
  EXPECT_EQ(apply({"--shard-size", "64MB"}).value().sizing.shard_size->value, 64'000'000u);
  EXPECT_EQ(apply({"--shards", "0"}).error().message(), "data pack: --shards: 0 is not between 1 and 999999");
  EXPECT_EQ(apply({"--shards", "4", "--shard-size", "1MB"}).error().code(), Code::invalid);
  EXPECT_EQ(apply({"--shard-size", "0MB"}).error().code(), Code::invalid);
}

TEST(ShardOptions, the_zarr_version_needs_the_zarr_format) {
  EXPECT_EQ(apply({"--zarr-version", "2"}, pack::ShardFormat::zarr).value().format,
            pack::ShardFormat::zarr_2);
  EXPECT_EQ(apply({"--zarr-version", "3"}, pack::ShardFormat::zarr).value().format, pack::ShardFormat::zarr);
  EXPECT_EQ(apply({"--zarr-version", "4"}, pack::ShardFormat::zarr).error().code(), Code::invalid);
  EXPECT_EQ(apply({"--zarr-version", "2"}).error().code(), Code::invalid);
}

TEST(ShardOptions, unknown_values_are_refused) {
  EXPECT_EQ(apply({"--labels", "clss"}).error().message(),
            "data pack: --labels: unknown value 'clss'; did you mean 'cls'?");
  EXPECT_TRUE(apply({"--compression", "auto"}).value().tries_compression);
}

}  // namespace
}  // namespace stoker::cli
