#include "pack/dataset_plan.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "pack/shard/shard_writer.h"
#include "stoker/text.h"

namespace stoker::pack {
namespace {

// Replaces the checksum after a change of the text.
std::string with_checksum(const std::string& text) {
  const std::string body = text.substr(text.find('\n') + 1);
  return format("{:08x}\n{}", crc32c(body), body);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return with_checksum(text.replace(text.find(from), from.size(), to));
}

TEST(DatasetPlan, round_trips_and_rejects_non_integers) {
  DatasetPlan dataset_plan;
  dataset_plan.splits = {"train"};
  dataset_plan.files = 123456;
  dataset_plan.version = dataset::SourceVersion{.file = "a.dvc", .md5 = "d", .bytes = 7, .files = 8};
  dataset_plan.shards = {{"train-000000.tar", 0}};
  const std::string text = dataset_plan.encode();
  const auto again = DatasetPlan::decode(text, "plan");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->files, 123456u);
  EXPECT_EQ(again->encode(), text);
  EXPECT_EQ(DatasetPlan::decode(replaced(text, "123456", "654321"), "plan")->files, 654321u);
  for (const char* other : {"3.5e73", "-1", "1.5", "true", "\"7\"", "99999999999999999999", "null"}) {
    EXPECT_EQ(DatasetPlan::decode(replaced(text, "123456", other), "plan").status().to_string(),
              "plan: has a different version")
        << other;
  }
}

TEST(ShardFacts, round_trip_and_reject_non_integers) {
  ShardFacts facts;
  facts.bytes = 123456;
  facts.images.width_max = 4321;
  facts.images.channels.sum = {98765, 2, 3};
  facts.section = "index";
  const std::string text = facts.encode("plan");
  const auto again = ShardFacts::decode(text, "plan", "shard");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->images, facts.images);
  EXPECT_EQ(again->section, "index");
  for (const char* number : {"123456", "4321", "98765"}) {
    for (const char* other : {"3.5e73", "-1", "1.5", "null"}) {
      EXPECT_EQ(ShardFacts::decode(replaced(text, number, other), "plan", "shard").status().to_string(),
                "shard: fragment of a different version")
          << number << " " << other;
    }
  }
}

}  // namespace
}  // namespace stoker::pack
