#include "base/name_lock.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(NameLock, is_held_until_its_descriptor_closes) {
  const std::string name = format("stoker-test-{}", ::getpid());
  auto first = lock_name(name);
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_FALSE(*lock_name(name));
  EXPECT_TRUE(*lock_name(name + "-other"));
  first->reset();
  EXPECT_TRUE(*lock_name(name));
}

TEST(NameLock, long_names_differ_in_their_ends) {
  const std::string start = std::string(200, 'x') + std::to_string(::getpid());
  const auto first = lock_name(start + "-0");
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_TRUE(*lock_name(start + "-1"));
  EXPECT_FALSE(*lock_name(start + "-0"));
}

}  // namespace
}  // namespace stoker
