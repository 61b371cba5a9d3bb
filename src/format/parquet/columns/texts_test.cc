#include "format/parquet/columns/texts.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::formats {
namespace {

TEST(ParquetTexts, of_any_length_are_kept_as_they_were) {
  const std::string letters(200 + kReadBehind, 'x');
  ParquetTexts texts;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string_view> some;
    for (std::size_t length = 0; length < 200; ++length) some.emplace_back(letters.data(), length);
    texts.append(some);
    texts.append(some);
    ASSERT_EQ(texts.size(), 400u);
    EXPECT_EQ(texts.bytes(), 200u * 199);
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], letters.substr(0, i % 200));
    texts.clear();
    EXPECT_TRUE(texts.empty());
  }
}

TEST(ParquetTexts, one_that_is_missing_is_empty) {
  const std::string letters = "abcdef" + std::string(kReadBehind, ' ');
  const std::vector<std::string_view> some = {{letters.data(), 2}, {letters.data() + 2, 4}};
  ParquetTexts texts;
  texts.append(some, std::vector<std::uint8_t>{0, 1, 0, 1, 0});
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[1], "ab");
  EXPECT_EQ(texts[3], "cdef");
  EXPECT_EQ(texts[0].size() + texts[2].size() + texts[4].size(), 0u);
}

}  // namespace
}  // namespace stoker::formats
