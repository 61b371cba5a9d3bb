#include "parquet/writer.h"

#include <gmock/gmock.h>

#include "base/hash.h"
#include "parquet/parquet.h"
#include "parquet/test_parquet.h"

namespace stoker::parquet {
namespace {

using ::testing::ElementsAre;

class Memory final : public archive::ByteSink {
 public:
  Status write(std::span<const std::byte> data) override {
    text.append(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }
  std::string text;
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// A file of some rows, and what it was made of.
struct Written {
  std::string text;
  std::vector<std::uint64_t> offsets;
};

struct Row {
  std::string key;
  std::optional<std::int64_t> label;
  std::vector<std::optional<std::string>> files;
};

Written write(const ParquetColumns& shape, const std::vector<Row>& rows) {
  Memory memory;
  ParquetWriter writer(memory, shape);
  for (const Row& row : rows) {
    EXPECT_TRUE(writer.begin_row(row.key, row.label).ok());
    for (std::size_t i = 0; i < row.files.size(); ++i) {
      if (!row.files[i]) continue;
      EXPECT_TRUE(writer.add(i, bytes_of(*row.files[i]), crc32c(*row.files[i])).ok());
    }
    EXPECT_TRUE(writer.end_row().ok());
  }
  EXPECT_TRUE(writer.finish().ok());
  EXPECT_EQ(writer.position(), memory.text.size());
  return {memory.text, writer.offsets()};
}

const std::vector<Row> kRows = {{"a/1", 3, {"first", "one"}},
                                {"a/2", std::nullopt, {"second", std::nullopt}},
                                {"b/3", 0, {std::nullopt, "three"}},
                                {"b/4", 7, {"", "four"}}};
const ParquetColumns kShape = {.files = {"jpg", "seg.png"}, .streamed = 0, .has_labels = true};

TEST(ParquetWriter, reads_back_written_rows) {
  const Written written = write(kShape, kRows);
  const auto file = open_parquet(written.text);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->rows(), 4u);
  ASSERT_EQ(file->leaves().size(), 4u);
  EXPECT_EQ(file->find("cls"), 3u);
  EXPECT_EQ(file->leaves()[1].type, ParquetLeaf::Type::bytes);
  EXPECT_EQ(file->leaves()[3].type, ParquetLeaf::Type::int64);
  std::vector<std::vector<std::string>> columns;
  for (std::size_t leaf = 0; leaf < 4; ++leaf) {
    const auto texts = file->read_texts(leaf);
    ASSERT_TRUE(texts.ok()) << texts.status().message();
    columns.push_back(*texts);
  }
  EXPECT_THAT(columns[0], ElementsAre("a/1", "a/2", "b/3", "b/4"));
  EXPECT_THAT(columns[1], ElementsAre("first", "second", "", ""));
  EXPECT_THAT(columns[2], ElementsAre("one", "", "three", "four"));
  EXPECT_THAT(columns[3], ElementsAre("3", "", "0", "7"));
}

TEST(ParquetWriter, offsets_lead_to_the_files_in_the_order_they_were_added) {
  const Written written = write(kShape, kRows);
  const auto at = [&](std::size_t file, std::size_t size) {
    return written.text.substr(written.offsets[file], size);
  };
  ASSERT_EQ(written.offsets.size(), 6u);
  EXPECT_EQ(at(0, 5), "first");
  EXPECT_EQ(at(1, 3), "one");
  EXPECT_EQ(at(2, 6), "second");
  EXPECT_EQ(at(3, 5), "three");
  EXPECT_EQ(at(5, 4), "four");
}

TEST(ParquetWriter, reader_finds_the_offsets_the_writer_returned) {
  std::vector<Row> rows;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // column and row of each file
  for (std::size_t i = 0; i < 3000; ++i) {
    Row row{std::to_string(i), static_cast<std::int64_t>(i), {std::nullopt, std::nullopt}};
    // Pages of many values, values that are a page, and pages of a buffered column.
    if (i % 7 != 0) row.files[0] = std::string(i % 500 == 3 ? 300'000 : i % 900, 'a');
    if (i % 5 != 0 || !row.files[0]) row.files[1] = std::string(1 + i % 1000, 'b');
    for (std::size_t column = 0; column < 2; ++column) {
      if (row.files[column]) order.emplace_back(column, i);
    }
    rows.push_back(std::move(row));
  }
  const Written written = write(kShape, rows);
  const auto file = open_parquet(written.text);
  ASSERT_TRUE(file.ok());
  const auto first = file->value_locations(*file->find("jpg"));
  const auto second = file->value_locations(*file->find("seg.png"));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status().message();
  ASSERT_EQ(written.offsets.size(), order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [column, row] = order[i];
    const ParquetFile::ValueLocation& place = (column == 0 ? *first : *second)[row];
    EXPECT_TRUE(place.is_there);
    EXPECT_EQ(place.offset, written.offsets[i]);
    EXPECT_EQ(place.bytes, rows[row].files[column]->size());
  }
}

TEST(ParquetWriter, a_group_ends_when_its_buffer_is_full) {
  std::vector<Row> rows;
  for (int i = 0; i < 80; ++i) rows.push_back({std::to_string(i), 1, {"x", std::string(1u << 20, 'y')}});
  const Written written = write(kShape, rows);
  const auto file = open_parquet(written.text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->groups(), 3u);
  EXPECT_EQ(file->rows(0) + file->rows(1) + file->rows(2), 80u);
  const auto places = file->value_locations(*file->find("seg.png"));
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(written.text.substr(places->back().offset, 3), "yyy");
}

TEST(ParquetWriter, streams_a_large_file_in_pieces) {
  Memory memory;
  ParquetWriter writer(memory, {.files = {"bin"}, .streamed = 0, .has_labels = false});
  const std::string piece(1000, 'p');
  ASSERT_TRUE(writer.begin_row("k", std::nullopt).ok());
  ASSERT_TRUE(writer.begin_streamed(3000).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.append(bytes_of(piece), crc32c(piece)).ok());
  ASSERT_TRUE(writer.end_row().ok());
  ASSERT_TRUE(writer.finish().ok());
  const auto file = open_parquet(memory.text);
  ASSERT_TRUE(file.ok());
  const auto texts = file->read_texts(*file->find("bin"));
  ASSERT_TRUE(texts.ok()) << texts.status().message();
  EXPECT_EQ(texts->front(), piece + piece + piece);
}

TEST(ParquetWriter, rejects_a_file_larger_than_a_value_with_its_sample) {
  Memory memory;
  ParquetWriter writer(memory, {.files = {"bin"}, .streamed = 0, .has_labels = false});
  ASSERT_TRUE(writer.begin_row("a/k", std::nullopt).ok());
  EXPECT_EQ(writer.begin_streamed(std::uint64_t{1} << 31).message(),
            "sample 'a/k': has a file of 2147483648 bytes (a value of Parquet may have 2 GiB)");
}

TEST(ParquetWriter, the_same_rows_give_the_same_bytes) {
  EXPECT_EQ(write(kShape, kRows).text, write(kShape, kRows).text);
}

TEST(ParquetWriter, a_file_without_rows_is_one) {
  const auto file = open_parquet(write(kShape, {}).text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->rows(), 0u);
}

TEST(ParquetPlaces, every_flipped_byte_gives_places_in_the_file_or_an_error) {
  const std::string whole = write(kShape, kRows).text;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xFF'}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ flip);
      const auto file = open_parquet(text);
      if (!file.ok()) continue;
      for (std::size_t leaf = 0; leaf < file->leaves().size(); ++leaf) {
        const auto places = file->value_locations(leaf);
        if (!places.ok()) continue;
        for (const ParquetFile::ValueLocation& place : *places) {
          EXPECT_LE(place.offset, text.size());
          EXPECT_LE(place.bytes, text.size() - place.offset);
        }
      }
    }
  }
}

TEST(ParquetPlaces, refuses_every_truncation) {
  const std::string whole = write(kShape, kRows).text;
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(open_parquet(whole.substr(0, length)).ok()) << length;
}

TEST(ParquetPlaces, refuses_to_hold_more_than_it_may) {
  const std::string whole = write(kShape, kRows).text;
  const auto file = open_parquet(whole);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->value_locations(*file->find("jpg"), {.values = {100}}).status().message(),
            "x.parquet: column 'jpg': is too large");
  EXPECT_EQ(file->value_locations(*file->find("cls")).status().message(),
            "x.parquet: column 'cls': does not hold bytes");
}

}  // namespace
}  // namespace stoker::parquet
