#include "slurm/queue/rate_limiter.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;

TEST(CallRateLimiter, processes_share_one_bucket_and_wait_when_it_is_empty) {
  TempDirectory box;
  CallRateLimiter mine(box / "budget", 0.001);
  CallRateLimiter other(box / "budget", 0.001);
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(mine.acquire(Deadline::after(1s)).ok());
    ASSERT_TRUE(other.acquire(Deadline::after(1s)).ok());
  }
  const Status refused = mine.acquire(Deadline::after(1s));
  EXPECT_EQ(refused.code(), Code::timeout);
  EXPECT_EQ(refused.to_string(),
            "rate limit: 30 requests in a row are allowed, then 0.001 a second\n"
            "  try: STOKER_SLURM_CALLS_PER_S=N in the environment raises the limit");
  // It refills: at 1000 a second at once.
  EXPECT_TRUE(CallRateLimiter(box / "budget", 1000).acquire(Deadline::after(10s)).ok());
}

TEST(CallRateLimiter, without_a_limit_or_a_file_nothing_is_delayed) {
  TempDirectory box;
  CallRateLimiter none(box / "budget", 0);
  CallRateLimiter nowhere(box / "no/such/folder", 2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(none.acquire(Deadline::after(0s)).ok());
    ASSERT_TRUE(nowhere.acquire(Deadline::after(0s)).ok());
  }
  EXPECT_FALSE(path_exists(box / "budget"));
}

TEST(CallRateLimiter, a_damaged_file_is_a_full_bucket) {
  TempDirectory box;
  for (const char* text : {"", "rubbish", "nan 1", "-5 1", "3 99999999999999", "1e400 x"}) {
    ASSERT_TRUE(write_file(box / "budget", text).ok());
    CallRateLimiter rate_limiter(box / "budget", 2);
    ASSERT_TRUE(rate_limiter.acquire(Deadline::after(0s)).ok()) << text;
    EXPECT_DOUBLE_EQ(rate_limiter.left(), CallRateLimiter::kBurst - 1) << text;
  }
}

TEST(CallRateLimiter, has_one_bucket_per_cluster_and_rate) {
  EXPECT_EQ(CallRateLimiter::for_user("/run/user/7", "/etc/slurm.conf", "").per_second(), 2);
  EXPECT_EQ(CallRateLimiter::for_user("", "", "0").per_second(), 0);
  EXPECT_EQ(CallRateLimiter::for_user("", "", "12.5").per_second(), 12.5);
  EXPECT_EQ(CallRateLimiter::for_user("", "", "many").per_second(), 2);
}

}  // namespace
}  // namespace stoker::slurm
