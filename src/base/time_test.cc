#include "stoker/time.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::chrono_literals;

TEST(Time, reads_units_and_slurm_formats) {
  EXPECT_EQ(*parse_duration("20h"), 20h);
  EXPECT_EQ(*parse_duration("1h30m"), 90min);
  EXPECT_EQ(*parse_duration("0.5s"), 500ms);
  EXPECT_EQ(*parse_duration("1:30:00"), 90min);
  EXPECT_EQ(*parse_duration("2-12:00:00"), 60h);
}

TEST(Time, refuses_missing_units_and_invalid_text) {
  EXPECT_EQ(parse_duration("30").status().message(), "'30' has no unit (write 30s, 30m or 30h)");
  for (const char* bad : {"", "soon", "3x", "1:2:3:4", "nan", "-3s", "1h-", "9e99h"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  EXPECT_EQ(parse_duration("999999999h").status().message(), "'999999999h' is longer than 50 years");
}

TEST(Time, exact_text_reads_back) {
  for (Duration d : {Duration(0), Duration(90min), Duration(1500ms), Duration(60h + 1ns)}) {
    EXPECT_EQ(*parse_duration(duration_text(d)), d);
  }
  EXPECT_EQ(duration_text(90min), "1h30m");
}

TEST(Time, rounded_durations_are_readable) {
  EXPECT_EQ(rounded_duration(11ms), "11 ms");
  EXPECT_EQ(rounded_duration(4140ms), "4.1 s");
  EXPECT_EQ(rounded_duration(131s), "2 min 11 s");
  EXPECT_EQ(rounded_duration(65min), "1 h 05 min");
  EXPECT_EQ(rounded_duration(76h), "3 d 04 h");
}

TEST(Time, wall_time_is_iso_8601_utc) {
  EXPECT_EQ(utc_text(WallTime(1'795'255'391s)), "2026-11-21T10:03:11Z");
}

TEST(Deadline, never_does_not_pass_and_the_past_has_passed) {
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_TRUE(Deadline::after(-1s).passed());
  EXPECT_EQ(Deadline::after(-1s).left(), Duration::zero());
  EXPECT_EQ(Deadline::never().poll_ms(), 1'000'000);
}

}  // namespace
}  // namespace stoker
