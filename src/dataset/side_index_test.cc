#include "dataset/side_index.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "dataset/test_dataset.h"

namespace stoker::dataset {
namespace {

using Labels = SectionBuilder::Labels;

std::string small_section(Labels labels = Labels::int64) {
  SectionBuilder builder(labels);
  const std::uint16_t jpg = builder.name("jpg");
  const std::uint16_t json = builder.name("json");
  builder.add({.key = "cat/1", .label = 0, .components = {{512, 100, 0xAAAA, jpg}}});
  builder.add(
      {.key = "dog/1", .label = 1, .components = {{2048, 200, 0xBBBB, jpg}, {3072, 9, 0xCCCC, json}}});
  return builder.encode(10240, sha256("shard"));
}

std::string section_error(std::string_view bytes) {
  const Result<IndexSection> section = IndexSection::parse(bytes_of(bytes), "s");
  return section.ok() ? "no error" : section.error().to_string();
}

std::string index_error(std::string_view bytes) {
  const Result<SideIndex> index = SideIndex::parse(bytes_of(bytes), "i");
  return index.ok() ? "no error" : index.error().to_string();
}

// The part of the file from `begin` to `end` with its closing CRC made right again.
void seal(std::string& bytes, std::size_t begin, std::size_t end) {
  const std::uint32_t crc = crc32c(std::string_view(bytes).substr(begin, end - begin - 8));
  std::memcpy(bytes.data() + end - 8, &crc, 4);
}

template <typename T>
std::string patched_section(std::size_t offset, T value) {
  std::string bytes = small_section();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  seal(bytes, 0, bytes.size());
  return bytes;
}

TEST(IndexSection, returns_the_added_samples) {
  const std::string bytes = small_section();
  const Result<IndexSection> section = IndexSection::parse(bytes_of(bytes), "s");
  ASSERT_TRUE(section.ok()) << section.error().to_string();
  EXPECT_EQ(section->samples(), 2u);
  EXPECT_EQ(section->shard_bytes(), 10240u);
  EXPECT_EQ(section->shard_hash(), sha256("shard"));
  EXPECT_THAT(section->names(), ::testing::ElementsAre("jpg", "json"));
  EXPECT_EQ(section->component_count(0), 1u);
  EXPECT_EQ(section->component_count(1), 2u);
  EXPECT_EQ(section->component(1, 1), (Component{3072, 9, 0xCCCC, 1}));
  EXPECT_EQ(section->label(1), 1);
  EXPECT_EQ(section->key(0), "cat/1");
  EXPECT_EQ(section->key(1), "dog/1");
}

TEST(IndexSection, matches_the_example_of_the_format_page) {
  SectionBuilder builder(Labels::int64);
  builder.add({.key = "cat/1", .label = 0, .components = {{512, 100, 0xAABBCCDD, builder.name("jpg")}}});
  const std::string bytes = builder.encode(10240, {});
  ASSERT_EQ(bytes.size(), 288u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("SECT\1\0\6\0", 8));
  EXPECT_EQ(bytes.substr(216, 5), std::string("\3\0jpg", 5));
  EXPECT_EQ(bytes.substr(224, 8), std::string("\0\0\0\0\1\0\0\0", 8));
  EXPECT_EQ(bytes.substr(232, 20), std::string("\0\2\0\0\0\0\0\0\x64\0\0\0\0\0\0\0\xDD\xCC\xBB\xAA", 20));
  EXPECT_EQ(bytes.substr(264, 13), std::string("\0\0\0\0\5\0\0\0cat/1", 13));
}

Digest content_of_bytes(const std::string& section) {
  return content_digest(std::vector{IndexSection::parse(bytes_of(section), "s").value()});
}

TEST(IndexSection, content_digest_matches_the_format_page) {
  SectionBuilder builder(Labels::int64);
  builder.add({.key = "cat/1", .label = 0, .components = {{512, 100, 0xAABBCCDD, builder.name("jpg")}}});
  EXPECT_EQ(hex(content_of_bytes(builder.encode(10240, {}))),
            "c04fa4333f031b1c3dee4c1ddb12c617acf1a5ed18cf38a1e1a9a38d68c84cb6");
}

TEST(IndexSection, content_digest_ignores_offsets) {
  const auto content = [](std::uint64_t offset, std::int64_t label, std::string_view name) {
    SectionBuilder builder(Labels::int64);
    builder.add({.key = "a", .label = label, .components = {{offset, 100, 0xAA, builder.name(name)}}});
    return content_of_bytes(builder.encode(10240, {}));
  };
  EXPECT_EQ(content(512, 1, "jpg"), content(1024, 1, "jpg"));
  EXPECT_NE(content(512, 1, "jpg"), content(512, 2, "jpg"));
  EXPECT_NE(content(512, 1, "jpg"), content(512, 1, "png"));
  EXPECT_EQ(content_of_bytes(small_section()), content_of_bytes(small_section()));
  EXPECT_NE(content_of_bytes(small_section()), content_of_bytes(small_section(Labels::none)));
}

TEST(IndexSection, may_have_no_labels) {
  const std::string bytes = small_section(Labels::none);
  const Result<IndexSection> section = IndexSection::parse(bytes_of(bytes), "s");
  ASSERT_TRUE(section.ok());
  EXPECT_FALSE(section->has_labels());
  EXPECT_TRUE(section->has_keys());
}

TEST(IndexSection, uses_at_most_40_bytes_per_sample_and_20_per_further_file) {
  const auto bytes_for = [](std::size_t samples, std::size_t files) {
    SectionBuilder builder(Labels::int64);
    builder.name("jpg");
    for (std::size_t i = 0; i < samples; ++i) {
      builder.add(
          {.key = "", .label = 1, .components = std::vector<Component>(files, Component{0, 1, 2, 0})});
    }
    return builder.encode(10240, {}).size();
  };
  const std::size_t keys = 4;  // where a key begins; the key column is optional
  EXPECT_LE(bytes_for(2000, 1) - bytes_for(1000, 1), 1000 * (40 + keys));
  EXPECT_EQ(bytes_for(1000, 2) - bytes_for(1000, 1), 1000u * 20);
}

TEST(IndexSection, refuses_every_flipped_bit) {
  const std::string good = small_section();
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::string bytes = good;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8));
    EXPECT_NE(section_error(bytes), "no error") << "bit " << i;
  }
}

TEST(IndexSection, refuses_every_truncation) {
  const std::string good = small_section();
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(section_error(good.substr(0, length)), "no error") << length;
  }
}

TEST(IndexSection, reports_the_inconsistent_field) {
  // Six columns of 24 bytes follow the header of 72; their data begins at 216, sorted by tag.
  EXPECT_EQ(section_error(patched_section<char>(0, 'X')), "s: is not an index section");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(4, 2)),
            "s: has locators of kind 2, this Stoker version reads kinds 1 and 4\n  try: update Stoker");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(6, 9999)), "s: the column directory is truncated");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(8, 3)),
            "s: a column's size does not match 3 samples");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(8, ~0ull)),
            "s: has more samples than a shard can hold");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(16, 2)),
            "s: a column's size does not match 2 samples");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(24, 3080)),
            "s: component 2 reaches beyond the shard's 3080 bytes");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(64, 1)),
            "s: needs features 0x1, which this Stoker version does not support\n  try: update Stoker");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(72, 8)),
            "s: has column 8, which this Stoker version does not support\n  try: update Stoker");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(72, 2)), "s: column 2 appears twice");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(72 + 8, 1 << 20)),
            "s: column 1 reaches beyond the end");
  EXPECT_EQ(section_error(patched_section<std::uint64_t>(72 + 16, ~0ull)),
            "s: column 1 reaches beyond the end");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(216, 99)), "s: the column of names is truncated");
  EXPECT_EQ(section_error(patched_section<char>(218, '\n')), "s: a component name is not text");
  EXPECT_EQ(section_error(patched_section<std::uint32_t>(232, 5)), "s: samples do not divide the components");
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(248 + 14, 7)), "s: component 0 has no name");
  EXPECT_EQ(section_error(patched_section<std::uint32_t>(328 + 4, 99)), "s: keys are out of order");
}

TEST(IndexSection, skips_an_unknown_column_that_may_be_ignored) {
  // The label column turned into one that a later version might add.
  EXPECT_EQ(section_error(patched_section<std::uint16_t>(72 + 3 * 24, 0x8007)), "no error");
}

std::string small_index() {
  const std::vector<std::string> sections{small_section(), small_section()};
  return encode_index(sections);
}

TEST(SideIndex, returns_its_sections) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "index.bin", small_index()).ok());
  const Result<SideIndex> index = SideIndex::open(box / "index.bin");
  ASSERT_TRUE(index.ok()) << index.error().to_string();
  EXPECT_EQ(index->sections().size(), 2u);
  EXPECT_EQ(index->samples(), 4u);
  EXPECT_EQ(index->sections()[1].key(1), "dog/1");
}

TEST(SideIndex, refuses_every_flipped_bit) {
  const std::string good = small_index();
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::string bytes = good;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8));
    EXPECT_NE(index_error(bytes), "no error") << "bit " << i;
  }
}

TEST(SideIndex, rejects_every_truncation_and_trailing_bytes) {
  const std::string good = small_index();
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(index_error(good.substr(0, length)), "no error") << length;
  }
  EXPECT_EQ(index_error(good + "x"),
            format("i: has {} bytes, its header lists {}", good.size() + 1, good.size()));
}

TEST(SideIndex, reports_inconsistencies) {
  const auto header = [](std::size_t offset, auto value) {
    std::string bytes = small_index();
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    seal(bytes, 0, 64);
    return bytes;
  };
  const auto table = [](std::size_t offset, auto value) {
    std::string bytes = small_index();
    std::memcpy(bytes.data() + 64 + offset, &value, sizeof value);
    seal(bytes, 64, 64 + 2 * 64 + 8);
    return bytes;
  };
  EXPECT_EQ(index_error(""), "i: too short for an index (0 bytes)");
  EXPECT_EQ(index_error(std::string(100, 'x')), "i: is not an index");
  EXPECT_EQ(index_error(header(8, std::uint32_t{2})),
            "i: has version 2, this Stoker version reads 1\n  try: update Stoker");
  EXPECT_EQ(index_error(header(12, std::uint32_t{4})),
            "i: needs features 0x4, which this Stoker version does not support\n  try: update Stoker");
  EXPECT_EQ(index_error(header(16, std::uint32_t{4})), "no error");  // a compatible feature
  EXPECT_EQ(index_error(header(20, std::uint32_t{0xFFFFFFFF})), "i: the section table is truncated");
  EXPECT_EQ(index_error(header(20, std::uint32_t{1})), "i: section table is damaged (CRC-32C)");
  EXPECT_EQ(index_error(header(24, std::uint64_t{72})), "i: the section table is truncated");
  EXPECT_EQ(index_error(header(40, std::uint64_t{5})), "i: sections do not add up to the file");
  EXPECT_EQ(index_error(table(0, std::uint64_t{0})), "i: section 0 is not at the offset in the table");
  EXPECT_EQ(index_error(table(8, ~std::uint64_t{0})), "i: section 0 is not at the offset in the table");
  EXPECT_EQ(index_error(table(8, std::uint64_t{16})), "i: section 0: section is too short");
  EXPECT_EQ(index_error(table(16, std::uint64_t{9})), "i: section 0 does not match the table");
  EXPECT_EQ(index_error(table(64 + 32, std::uint64_t{9})), "i: section 1 does not match the table");
}

}  // namespace
}  // namespace stoker::dataset
