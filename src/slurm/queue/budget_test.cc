#include "slurm/queue/budget.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;

TEST(CallBudget, processes_share_one_bucket_and_wait_when_it_is_empty) {
  TempDirectory box;
  CallBudget mine(box / "budget", 0.001);
  CallBudget other(box / "budget", 0.001);
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(mine.take(Deadline::after(1s)).ok());
    ASSERT_TRUE(other.take(Deadline::after(1s)).ok());
  }
  const Status refused = mine.take(Deadline::after(1s));
  EXPECT_EQ(refused.code(), Code::timeout);
  EXPECT_EQ(refused.to_string(),
            "not asked: 30 questions of yours in a row are the limit, then 0.001 a second\n"
            "  try: STOKER_SLURM_CALLS_PER_S=N in the environment allows more");
  // It fills up again: at 1000 a second at once.
  EXPECT_TRUE(CallBudget(box / "budget", 1000).take(Deadline::after(10s)).ok());
}

TEST(CallBudget, without_a_limit_or_a_file_nothing_is_held_back) {
  TempDirectory box;
  CallBudget none(box / "budget", 0);
  CallBudget nowhere(box / "no/such/folder", 2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(none.take(Deadline::after(0s)).ok());
    ASSERT_TRUE(nowhere.take(Deadline::after(0s)).ok());
  }
  EXPECT_FALSE(path_exists(box / "budget"));
}

TEST(CallBudget, a_damaged_file_is_a_full_bucket) {
  TempDirectory box;
  for (const char* text : {"", "rubbish", "nan 1", "-5 1", "3 99999999999999", "1e400 x"}) {
    ASSERT_TRUE(write_file(box / "budget", text).ok());
    CallBudget budget(box / "budget", 2);
    ASSERT_TRUE(budget.take(Deadline::after(0s)).ok()) << text;
    EXPECT_DOUBLE_EQ(budget.left(), CallBudget::kBurst - 1) << text;
  }
}

TEST(CallBudget, each_cluster_and_rate_of_a_user_is_known) {
  EXPECT_EQ(CallBudget::of_user("/run/user/7", "/etc/slurm.conf", "").per_second(), 2);
  EXPECT_EQ(CallBudget::of_user("", "", "0").per_second(), 0);
  EXPECT_EQ(CallBudget::of_user("", "", "12.5").per_second(), 12.5);
  EXPECT_EQ(CallBudget::of_user("", "", "many").per_second(), 2);
}

}  // namespace
}  // namespace stoker::slurm
