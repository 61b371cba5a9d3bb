#include "netcheck/probe/resolve.h"

#include <gmock/gmock.h>

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;

Deadline in_time() { return Deadline::after(std::chrono::seconds(20)); }

TEST(Resolve, numeric_addresses_are_their_own_answer) {
  const std::vector<std::string> names = {"127.0.0.1", "10.1.2.3"};
  const auto found = resolve(names, in_time());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].addresses, ElementsAre("127.0.0.1"));
  EXPECT_THAT(found[1].addresses, ElementsAre("10.1.2.3"));
  EXPECT_EQ(found[1].error, "");
}

TEST(Resolve, a_name_that_no_resolver_can_know_is_an_error) {
  const std::vector<std::string> names = {"no..such..name"};
  const auto found = resolve(names, in_time());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].addresses.empty());
  EXPECT_NE(found[0].error, "");
}

TEST(Resolve, more_names_than_processes_at_once_keep_their_order) {
  std::vector<std::string> names;
  for (int i = 0; i < 70; ++i) names.push_back(format("10.0.0.{}", i + 1));
  const auto found = resolve(names, in_time());
  ASSERT_EQ(found.size(), 70u);
  EXPECT_THAT(found[69].addresses, ElementsAre("10.0.0.70"));
}

TEST(Resolve, expired_deadline_is_reported_per_name) {
  const std::vector<std::string> names = {"127.0.0.1", "127.0.0.1"};
  const auto found = resolve(names, Deadline::after(Duration::zero()));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[1].error, ::testing::StartsWith("no answer within "));
}

}  // namespace
}  // namespace stoker::netcheck
