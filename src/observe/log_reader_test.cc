#include "observe/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using testing::ElementsAre;
using Lines = std::vector<std::string>;

class LogReaderTest : public testing::Test {
 protected:
  void append(int rank, std::string_view text) {
    auto file = File::open_append(attempt.log(rank));
    ASSERT_TRUE(file.ok() && file->write(text).ok());
  }
  LineSink sink() {
    return [this](int rank, std::string_view line) { lines.push_back(format("{} {}", rank, line)); };
  }

  TempDirectory box;
  record::Attempt attempt{box.path(), 1};
  Lines lines;
};

TEST_F(LogReaderTest, returns_complete_lines_once_and_the_rest_at_the_end) {
  append(0, "one\ntw");
  LogReader reader(attempt, 0);
  ASSERT_TRUE(reader.read_new(sink()).ok());
  EXPECT_THAT(lines, ElementsAre("0 one"));
  append(0, "o\nthree");
  ASSERT_TRUE(reader.read_new(sink()).ok());
  EXPECT_THAT(lines, ElementsAre("0 one", "0 two"));
  reader.finish(sink());
  EXPECT_THAT(lines, ElementsAre("0 one", "0 two", "0 three"));
}

TEST_F(LogReaderTest, waits_for_a_rank_that_has_no_log_yet) {
  LogReader reader(attempt, 1);
  EXPECT_TRUE(reader.read_new(sink()).ok());
  EXPECT_FALSE(reader.check().ok());
  append(1, "a\n");
  EXPECT_TRUE(reader.read_new(sink()).ok());
  EXPECT_TRUE(reader.check().ok());
  EXPECT_THAT(lines, ElementsAre("1 a"));
}

TEST_F(LogReaderTest, finds_ranks_that_start_later) {
  append(0, "a\n");
  LogReader reader(attempt, -1);
  ASSERT_TRUE(reader.read_new(sink()).ok());
  append(11, "b\n");
  ASSERT_TRUE(reader.read_new(sink()).ok());
  EXPECT_THAT(lines, ElementsAre("0 a", "11 b"));
}

TEST_F(LogReaderTest, reports_a_missing_log_with_the_available_ranks) {
  EXPECT_EQ(LogReader(attempt, 3).check().message(), "attempt 1: no rank has a log");
  append(0, "");
  append(1, "");
  EXPECT_EQ(LogReader(attempt, 3).check().message(), "attempt 1: rank 3 has no log (ranks 0 to 1 have)");
}

TEST_F(LogReaderTest, an_endless_line_is_returned_in_pieces) {
  append(0, std::string(3u << 20, 'x'));
  LogReader reader(attempt, 0);
  ASSERT_TRUE(reader.read_new(sink()).ok());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size(), (1u << 20) + 2);
}

}  // namespace
}  // namespace stoker::observe
