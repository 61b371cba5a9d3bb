#include "base/journal.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> lines_of(const Path& path, std::uint64_t* offset,
                                  std::uint64_t end = std::numeric_limits<std::uint64_t>::max()) {
  std::vector<std::string> lines;
  EXPECT_TRUE(read_journal(path, offset, [&](std::string_view line) { lines.emplace_back(line); }, end).ok());
  return lines;
}

TEST(Journal, a_changed_or_cut_line_is_damaged) {
  std::string line = journal_line("end 7 fine");
  line.pop_back();
  ASSERT_EQ(journal_words(line), "end 7 fine");
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(journal_words(changed)) << changed;
    EXPECT_FALSE(journal_words(line.substr(0, i))) << i;
  }
}

TEST(Journal, every_text_is_one_word) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text : {all, std::string("a b"), std::string("%41"), std::string("#")}) {
    const std::string word = journal_word(text);
    EXPECT_EQ(word.find_first_of(" \n#"), std::string::npos);
    JournalWords words(word);
    EXPECT_EQ(words.text(), text);
    EXPECT_TRUE(words.is_finished());
  }
  for (const char* text : {"%", "%4", "%4G", "%%41"}) {
    JournalWords words(text);
    (void)words.text();
    EXPECT_FALSE(words.is_valid()) << text;
  }
}

TEST(Journal, an_unfinished_line_waits_and_is_cut_off_by_the_next_process) {
  TempDirectory box;
  const Path path = box / "a.log";
  ASSERT_TRUE(write_file(path, "one\ntwo\nthr").ok());
  std::uint64_t offset = 0;
  EXPECT_THAT(lines_of(path, &offset), ElementsAre("one", "two"));
  auto journal = JournalFile::open(path);
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->size(), 8U);
  ASSERT_TRUE(journal->append("four\n").ok() && journal->sync().ok());
  EXPECT_THAT(lines_of(path, &offset), ElementsAre("four"));
  EXPECT_EQ(offset, journal->size());
}

TEST(Journal, long_files_and_lines_are_read_in_parts) {
  TempDirectory box;
  std::string text;
  for (int i = 0; i < 5; ++i) text += std::string(50'000 + i, 'x') + "\n";
  ASSERT_TRUE(write_file(box / "a.log", text).ok());
  std::uint64_t offset = 0;
  const auto lines = lines_of(box / "a.log", &offset);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[4].size(), 50'004U);
}

TEST(Journal, a_limit_leaves_the_rest_for_later) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "a.log", "one\ntwo\nthree\n").ok());
  std::uint64_t offset = 0;
  EXPECT_THAT(lines_of(box / "a.log", &offset, 9), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of(box / "a.log", &offset), ElementsAre("three"));
}

}  // namespace
}  // namespace stoker
