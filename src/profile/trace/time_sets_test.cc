#include "profile/trace/time_sets.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::profile {
namespace {

TEST(TimeSets, spans_are_joined_and_measured_as_by_counting_each_moment) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::array<std::array<bool, 100>, 2> moments{};
    TimeSets sets(2);
    for (int i = 0; i < 12; ++i) {
      const std::size_t set = random() % 2;
      const Nanos begin = static_cast<Nanos>(random() % 90), end = begin + static_cast<Nanos>(random() % 10);
      sets.add(set, {begin, end});
      for (Nanos at = begin; at < end; ++at) moments[set][static_cast<std::size_t>(at)] = true;
    }
    sets.finish();
    Nanos both = 0;
    Nanos either = 0;
    for (std::size_t at = 0; at < 100; ++at) {
      both += moments[0][at] && moments[1][at] ? 1 : 0;
      either += moments[0][at] || moments[1][at] ? 1 : 0;
    }
    EXPECT_EQ(overlap(sets.set(0), sets.set(1)), both);
    EXPECT_EQ(length_of(unite(sets.set(0), sets.set(1))), either);
    EXPECT_EQ(sets.gap(), 0);
  }
}

TEST(TimeSets, more_spans_than_the_budget_are_joined_over_gaps) {
  TimeSets sets(1, 1000);
  for (Nanos i = 0; i < 100'000; ++i) sets.add(0, {10'000 * i, 10'000 * i + 9'000});
  sets.finish();
  EXPECT_LE(sets.set(0).size(), 1000u);
  EXPECT_GE(sets.gap(), 1000);
  EXPECT_EQ(sets.set(0).front().begin, 0);
  EXPECT_EQ(sets.set(0).back().end, 10'000 * 99'999 + 9'000);
}

TEST(TimeSets, extreme_times_do_not_overflow) {
  TimeSets sets(1, 4);
  for (const Nanos at : {-4'000'000'000'000'000'000, 0L, 4'000'000'000'000'000'000}) {
    sets.add(0, {at, at + 1});
    sets.add(0, {at + 10, at + 11});
  }
  sets.finish();
  EXPECT_LE(sets.set(0).size(), 4u);
}

}  // namespace
}  // namespace stoker::profile
