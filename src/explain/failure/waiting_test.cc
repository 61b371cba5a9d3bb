#include "explain/failure/waiting.h"

#include <gmock/gmock.h>

namespace stoker::explain {
namespace {

using ::testing::HasSubstr;

std::string_view sooner(std::string_view reason) {
  const WaitingRule* rule = waiting_rule(reason);
  return rule == nullptr ? std::string_view{} : rule->sooner;
}

TEST(Waiting, reasons_are_known_whole_and_by_their_family) {
  EXPECT_THAT(sooner("Priority"), HasSubstr("--time"));
  EXPECT_THAT(sooner("ReqNodeNotAvail, UnavailableNodes:n3"), HasSubstr("--nodelist"));
  EXPECT_THAT(sooner("QOSMaxGRESPerUser"), HasSubstr("your own jobs"));
  EXPECT_THAT(sooner("QOSMaxCpuPerUserLimit"), HasSubstr("leaves room"));
  EXPECT_THAT(sooner("AssocGrpGRESMinutes"), HasSubstr("hours"));
  EXPECT_THAT(sooner("launch failed requeued held"), HasSubstr("release"));
  EXPECT_EQ(waiting_rule("SomethingNew"), nullptr);
  EXPECT_EQ(waiting_rule(""), nullptr);
}

TEST(Waiting, what_never_starts_is_told_from_what_waits) {
  EXPECT_TRUE(waiting_rule("PartitionTimeLimit")->is_for_ever);
  EXPECT_TRUE(waiting_rule("QOSMaxNodePerJobLimit")->is_for_ever);
  EXPECT_FALSE(waiting_rule("Priority")->is_for_ever);
  EXPECT_FALSE(waiting_rule("QOSMaxJobsPerUserLimit")->is_for_ever);
}

TEST(Waiting, no_rule_hides_behind_an_earlier_one) {
  for (const WaitingRule& rule : waiting_rules()) {
    std::string reason(rule.reason);
    if (const std::size_t star = reason.find('*'); star != std::string::npos) reason.replace(star, 1, "Some");
    EXPECT_EQ(waiting_rule(reason), &rule) << rule.reason;
  }
}

}  // namespace
}  // namespace stoker::explain
