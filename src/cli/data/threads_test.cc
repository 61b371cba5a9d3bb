#include "cli/data/threads.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker::cli {
namespace {

Result<int> count(std::vector<std::string> words) {
  ThreadsOption threads;
  Arguments arguments("test", "Tests.");
  threads.declare(arguments);
  std::FILE* file = std::tmpfile();
  Output out(OutputMode::text, file, file);
  EXPECT_EQ(arguments.parse(words, out), std::nullopt);
  std::fclose(file);
  return threads.count("data pack");
}

TEST(ThreadsOption, defaults_to_the_cores_up_to_16) {
  EXPECT_GE(count({}).value(), 1);
  EXPECT_LE(count({}).value(), 16);
}

TEST(ThreadsOption, accepts_1_to_256) {
  EXPECT_EQ(count({"-j", "1"}).value(), 1);
  EXPECT_EQ(count({"--jobs=256"}).value(), 256);
  EXPECT_EQ(count({"-j", "0"}).error().message(), "data pack: -j,--jobs: 0 is not between 1 and 256");
  EXPECT_EQ(count({"-j", "257"}).error().code(), Code::invalid);
}

}  // namespace
}  // namespace stoker::cli
