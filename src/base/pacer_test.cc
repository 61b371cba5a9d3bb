#include "base/pacer.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Pacer, a_stop_ends_the_wait) {
  Pacer pacer(1);  // a byte per second
  const auto stopped = [] { return true; };
  for (int i = 0; i < 3; ++i) pacer.acquire(1'000'000'000, stopped);
  EXPECT_EQ(pacer.piece(), 4096U);
  EXPECT_EQ(Pacer(0).piece(), 4U << 20);
}

}  // namespace
}  // namespace stoker
