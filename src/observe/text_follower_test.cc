#include "observe/text_follower.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextFollower, returns_each_line_once_and_the_rest_at_the_end) {
  TempDirectory box;
  TextFollower follower(box / "log");
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  ASSERT_TRUE(follower.read_new(sink).ok());
  EXPECT_THAT(lines, IsEmpty());
  auto file = File::open_append(box / "log");
  ASSERT_TRUE(file->write("one\ntwo\nthr").ok());
  ASSERT_TRUE(follower.read_new(sink).ok());
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  ASSERT_TRUE(file->write("ee\nlast").ok());
  ASSERT_TRUE(follower.read_new(sink).ok());
  follower.finish(sink);
  follower.finish(sink);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three", "last"));
}

TEST(TextFollower, an_endless_line_is_returned_in_pieces) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "log", std::string(3u << 20, 'x')).ok());
  TextFollower follower(box / "log");
  std::size_t pieces = 0;
  ASSERT_TRUE(follower.read_new([&](std::string_view) { ++pieces; }).ok());
  EXPECT_GE(pieces, 2u);
}

}  // namespace
}  // namespace stoker::observe
