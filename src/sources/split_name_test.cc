#include "sources/split_name.h"

#include <utility>

#include <gtest/gtest.h>

namespace stoker::sources {
namespace {

TEST(SplitName, is_the_name_before_the_number) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"train-000000.tar", "train"},
      {"val-0001.tar.gz", "val"},
      {"imagenet-2012-000000.tar", "imagenet-2012"},
      {"000000.tar", "all"},
      {"a09b74b3ef9c3b56.tar", "all"},
      {"train.tfrecord-00000-of-01024", "train"},
      {"train-00000-of-01024", "train"},
      {"c4-train.00000-of-01024.parquet", "c4-train"},
      {"c4-train.00000-of-01024.tar", "c4-train"},
      {"train-0.npz", "train"},
      {"era5-2020.h5", "era5"},
      {"shard.00000.mds", "all"},
  };
  for (const auto& [file, split] : kNames) EXPECT_EQ(split_of_shard(file), split) << file;
}

TEST(SplitName, ignores_the_hash_of_the_hubs_older_datasets) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"train-00000-of-00001-a09b74b3ef9c3b56.parquet", "train"},
      {"validation-00000-of-00010-0123456789012345.parquet", "validation"},
      {"auxiliary_train-00003-of-00005-b4153a4e9ee41cd5.parquet", "auxiliary_train"},
      {"test-00000-of-00001.parquet", "test"},
  };
  for (const auto& [file, split] : kNames) {
    EXPECT_EQ(split_of_shard(file), split) << file;
    EXPECT_EQ(counted_prefix(file), split) << file;
  }
  EXPECT_EQ(counted_prefix("train-00000.parquet"), "");
  EXPECT_EQ(counted_prefix("train-00000-of-00001-final.parquet"), "");
}

TEST(SplitName, of_parts_is_all) {
  for (const std::string_view file : {
           "part-00000-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab-c000.snappy.parquet",
           "part-00003-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab.c000.gz.parquet",
           "part-00000-tid-6193526472386-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab-17-1-c000.snappy.parquet",
           "part-r-00000-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab.gz.parquet",
           "part-00000-of-00005.parquet",
           "part-0.parquet",
           "part.12.parquet",
           "000_00000.parquet",
           "000000_0.parquet",
           "00000-0-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab-00001.parquet",
           "20240101_123456_00001_abcde_2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab.parquet",
           "f3a3a5c07d5a4bb1a57e6f4b9a3bfe15-0.parquet",
           "0000.parquet",
       })
    EXPECT_EQ(split_of_shard(file), "all") << file;
}

TEST(SplitName, keeps_a_name_beside_identifiers) {
  EXPECT_EQ(split_of_shard("train-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab.parquet"), "train");
  EXPECT_EQ(split_of_shard("train-00001-2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab-c000.snappy.parquet"), "train");
  EXPECT_EQ(split_of_shard("extra_train.2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab.parquet"), "extra_train");
}

}  // namespace
}  // namespace stoker::sources
