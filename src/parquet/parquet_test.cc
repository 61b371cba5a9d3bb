#include "parquet/parquet.h"

#include <gmock/gmock.h>

#include "parquet/test_parquet.h"

namespace stoker::parquet {
namespace {

using ::testing::ElementsAre;

// Columns `path` ("a.jpg", "b.jpg", missing) and `label` (3, -1, 5), dictionaries in Snappy, as pyarrow
// writes them.
constexpr std::string_view kSmall =
    "504152311504152415284c15041500120000124405000000612e6a706705000000622e6a70671500151215162c1506151015"
    "0615061c000000092002000000030301030215041530152e4c150615001200001804030009013cffffffffffffffff050000"
    "00000000001500151415182c15061510150615061c0000000a24020000000601020324001504193c35001806736368656d61"
    "150400150c250218047061746825004c1c0000001504250218056c6162656c001606191c192c26001c150c19350006101918"
    "0470617468150216061678168001264c2608292c15041500150200150015101502003c161419061926020400000026001c15"
    "0419350006101918056c6162656c1502160616860116880126d201268801292c15041500150200150015101502003c290619"
    "26000600000016fe0116062608168802002820706172717565742d6370702d6172726f772076657273696f6e2032362e302e"
    "31192c1c00001c000000e000000050415231";

std::string small_file() {
  std::string bytes;
  for (std::size_t i = 0; i < kSmall.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(kSmall.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(Parquet, reads_text_and_numbers_and_leaves_missing_ones_empty) {
  const std::string text = small_file();
  const auto file = open_parquet(text);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->leaves().size(), 2u);
  EXPECT_EQ(file->find("label"), 1u);
  EXPECT_EQ(file->rows(), 3u);
  const auto paths = file->read_texts(0);
  const auto labels = file->read_texts(1);
  ASSERT_TRUE(paths.ok() && labels.ok()) << paths.status().message() << labels.status().message();
  EXPECT_THAT(*paths, ElementsAre("a.jpg", "b.jpg", ""));
  EXPECT_THAT(*labels, ElementsAre("3", "-1", "5"));
}

TEST(Parquet, refuses_every_truncation) {
  const std::string whole = small_file();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(open_parquet(whole.substr(0, length)).ok()) << length;
  }
}

TEST(Parquet, survives_every_flipped_bit) {
  const std::string whole = small_file();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ 1 << bit);
      const auto file = open_parquet(text);
      if (!file.ok()) continue;
      for (std::size_t leaf = 0; leaf < file->leaves().size(); ++leaf) {
        const auto texts = file->read_texts(leaf);
        if (!texts.ok()) continue;
        EXPECT_EQ(texts->size(), file->rows()) << i;
      }
    }
  }
}

TEST(Parquet, reports_damage) {
  const std::string whole = small_file();
  EXPECT_EQ(open_parquet("PAR1").error().message(), "x.parquet: is not a Parquet file, or is truncated");
  std::string text = whole;
  text.replace(text.size() - 4, 4, "PARE");
  EXPECT_EQ(open_parquet(text).error().message(), "x.parquet: is encrypted");
  text = whole;
  text[whole.size() - 8 - 0xE0] = '\x7F';  // the footer's first byte
  EXPECT_EQ(open_parquet(text).error().message(), "x.parquet: its footer is damaged");
  text = whole;
  text[4 + 14] = '\x7F';  // in the dictionary
  const auto file = open_parquet(text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->read_texts(0).error().message(),
            "x.parquet: column 'path': a page does not unpack to its size");
}

TEST(Parquet, keeps_to_its_limit) {
  const std::string text = small_file();
  const auto file = open_parquet(text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->read_texts(0, {.values = {100}}).error().message(),
            "x.parquet: column 'path': is too large");
}

}  // namespace
}  // namespace stoker::parquet
