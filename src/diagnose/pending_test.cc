#include "diagnose/pending.h"

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;

std::string_view remedy(std::string_view reason) {
  const PendingRule* rule = find_pending_rule(reason);
  return rule == nullptr ? std::string_view{} : rule->remedy;
}

TEST(Pending, reasons_match_exactly_or_by_pattern) {
  EXPECT_THAT(remedy("Priority"), HasSubstr("--time"));
  EXPECT_THAT(remedy("ReqNodeNotAvail, UnavailableNodes:n3"), HasSubstr("--nodelist"));
  EXPECT_THAT(remedy("QOSMaxGRESPerUser"), HasSubstr("one of your jobs"));
  EXPECT_THAT(remedy("QOSMaxCpuPerUserLimit"), HasSubstr("leaves capacity"));
  EXPECT_THAT(remedy("AssocGrpGRESMinutes"), HasSubstr("hours"));
  EXPECT_THAT(remedy("launch failed requeued held"), HasSubstr("release"));
  EXPECT_EQ(find_pending_rule("SomethingNew"), nullptr);
  EXPECT_EQ(find_pending_rule(""), nullptr);
}

TEST(Pending, permanent_reasons_are_distinguished) {
  EXPECT_TRUE(find_pending_rule("PartitionTimeLimit")->needs_change);
  EXPECT_TRUE(find_pending_rule("QOSMaxNodePerJobLimit")->needs_change);
  EXPECT_FALSE(find_pending_rule("Priority")->needs_change);
  EXPECT_FALSE(find_pending_rule("QOSMaxJobsPerUserLimit")->needs_change);
}

TEST(Pending, no_rule_is_hidden_by_an_earlier_one) {
  for (const PendingRule& rule : pending_rules()) {
    std::string reason(rule.reason);
    if (const std::size_t star = reason.find('*'); star != std::string::npos) reason.replace(star, 1, "Some");
    EXPECT_EQ(find_pending_rule(reason), &rule) << rule.reason;
  }
}

}  // namespace
}  // namespace stoker::diagnose
