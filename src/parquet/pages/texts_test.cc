#include "parquet/pages/texts.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::parquet {
namespace {

TEST(ParquetTexts, keeps_texts_of_any_length) {
  const std::string letters(200 + kReadPadding, 'x');
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

TEST(ParquetTexts, a_null_is_empty) {
  const std::string letters = "abcdef" + std::string(kReadPadding, ' ');
  const std::vector<std::string_view> some = {{letters.data(), 2}, {letters.data() + 2, 4}};
  ParquetTexts texts;
  texts.append(some, std::vector<std::uint8_t>{0, 1, 0, 1, 0});
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[1], "ab");
  EXPECT_EQ(texts[3], "cdef");
  EXPECT_EQ(texts[0].size() + texts[2].size() + texts[4].size(), 0u);
}

}  // namespace
}  // namespace stoker::parquet
