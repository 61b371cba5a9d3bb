#include "rank/member/watch.h"

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

MonoTime at(Duration since_start) { return MonoTime(since_start); }

TEST(Watch, a_rank_that_steps_is_never_silent) {
  Watch watch;
  for (int s = 0; s < 100; ++s) watch.add_sample({at(s * 1s), static_cast<std::uint64_t>(s), 0, false});
  EXPECT_EQ(watch.silent_for(), 0s);
}

TEST(Watch, a_rank_that_computes_without_a_beacon_is_not_silent) {
  Watch watch;
  for (int s = 0; s < 100; ++s) watch.add_sample({at(s * 1s), std::nullopt, 0.5 * s, false});
  EXPECT_EQ(watch.silent_for(), 0s);
  EXPECT_FALSE(watch.has_beacon());
}

TEST(Watch, waking_up_now_and_then_is_not_progress) {
  Watch watch;
  for (int s = 0; s <= 30; ++s) watch.add_sample({at(s * 1s), 7, 1.0 + 0.005 * s, false});
  EXPECT_EQ(watch.silent_for(), 30s);
}

TEST(Watch, a_rank_whose_beacon_was_removed_is_not_silent) {
  Watch watch;
  watch.add_sample({at(0s), 7, 1, false});
  watch.add_sample({at(20s), 7, 1, false});
  EXPECT_EQ(watch.silent_for(), 20s);
  watch.add_sample({at(21s), std::nullopt, 1, false});
  watch.add_sample({at(60s), std::nullopt, 1, false});
  EXPECT_EQ(watch.silent_for(), 0s);
}

TEST(Watch, silence_ends_with_the_next_step) {
  Watch watch;
  watch.add_sample({at(0s), 7, 1, false});
  watch.add_sample({at(20s), 7, 1, false});
  EXPECT_EQ(watch.silent_for(), 20s);
  watch.add_sample({at(21s), 8, 1, false});
  EXPECT_EQ(watch.silent_for(), 0s);
}

TEST(Watch, being_stopped_is_timed_from_when_it_was_first_seen) {
  Watch watch;
  watch.add_sample({at(0s), std::nullopt, 1, false});
  watch.add_sample({at(1s), std::nullopt, 1, true});
  watch.add_sample({at(4s), std::nullopt, 1, true});
  EXPECT_EQ(watch.stopped_for(), 3s);
  watch.add_sample({at(5s), std::nullopt, 1, false});
  EXPECT_EQ(watch.stopped_for(), 0s);
}

}  // namespace
}  // namespace stoker::rank
