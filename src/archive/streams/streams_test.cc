#include <cstring>

#include <gmock/gmock.h>

#include "archive/streams/arrow.h"
#include "archive/streams/stream_index.h"
#include "archive/streams/stream_rows.h"
#include "archive/streams/stream_values.h"
#include "archive/streams/unpack_table.h"
#include "base/file.h"

namespace stoker::archive {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ReadAt reader_of(const std::string& text) {
  return [&text](std::uint64_t offset, std::span<std::byte> out) -> Status {
    if (offset > text.size() || out.size() > text.size() - offset) return corrupt("read beyond the end");
    if (!out.empty()) std::memcpy(out.data(), text.data() + offset, out.size());
    return {};
  };
}

std::string word(std::uint32_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Two samples of a column of four bytes and one of any length.
std::string shard() {
  const std::string one = word(3) + "1234abc", two = word(0) + "5678";
  const std::uint32_t begin = 4 * 4 + 2;
  return word(2) + word(begin) + word(begin + 11) + word(begin + 19) + "{}" + one + two;
}

std::vector<StreamColumn> columns() {
  return {{.name = "a", .encoding = "int32", .kind = ColumnKind::integer, .bytes = 4},
          {.name = "b", .encoding = "bytes", .kind = ColumnKind::file}};
}

std::string read_index(const std::string& text) {
  TempDirectory folder;
  EXPECT_TRUE(write_file(folder / "index.json", text).ok());
  const auto index = read_stream_index(folder.path());
  Status status = index.status();
  if (index.ok() && index->shards[0].columns) status = check_columns(*index->shards[0].columns, "index.json");
  if (status.ok()) return "ok";
  const std::string message(status.message());
  return message.substr(message.find("index.json: ") + 12);
}

std::string mds(const std::string& shard_fields) {
  return R"({"version":2,"shards":[{"version":2,"format":"mds","samples":1,"compression":null,"column_names":["a"],)"
         R"("column_encodings":["bytes"],"column_sizes":[null],"raw_data":{"basename":"s.mds","bytes":9,"hashes":{}},)"
         R"("zip_data":null)" +
         shard_fields + "}]}";
}

std::string litdata(const std::string& config) {
  return R"({"chunks":[{"filename":"c.bin","chunk_size":1,"chunk_bytes":9}],"config":{)" + config + "}}";
}

TEST(StreamRows, locates_values) {
  const std::string text = shard();
  const auto offsets = read_stream_offsets(reader_of(text), text.size(), "s");
  ASSERT_TRUE(offsets.ok()) << offsets.status().to_string();
  EXPECT_EQ(*read_mds_config(reader_of(text), *offsets, "s"), "{}");
  const std::vector<StreamColumn> of = columns();
  StreamRows rows(reader_of(text), *offsets, of, StreamLayout::rows, "s");
  ASSERT_EQ(rows.samples(), 2U);
  const std::vector<StreamValue> first = **rows.values(0);
  EXPECT_EQ(text.substr(first[0].offset, first[0].bytes) + text.substr(first[1].offset, first[1].bytes),
            "1234abc");
  const std::vector<StreamValue> second = **rows.values(1);
  EXPECT_EQ(text.substr(second[0].offset, 4), "5678");
  EXPECT_EQ(second[1].bytes, 0U);
}

TEST(StreamRows, rejects_wrong_offsets_and_sizes) {
  const std::string text = shard();
  const auto message = [](const std::string& shard) {
    const auto offsets = read_stream_offsets(reader_of(shard), shard.size(), "s");
    if (!offsets.ok()) return std::string(offsets.status().message());
    const std::vector<StreamColumn> of = columns();
    StreamRows rows(reader_of(shard), *offsets, of, StreamLayout::rows, "s");
    for (std::uint64_t i = 0; i < rows.samples(); ++i) {
      if (const auto values = rows.values(i); !values.ok()) return std::string(values.status().message());
    }
    return std::string("ok");
  };
  const auto with = [&](std::size_t at, std::uint32_t number) {
    std::string changed = text;
    std::memcpy(changed.data() + at, &number, sizeof number);
    return changed;
  };
  EXPECT_EQ(message("1234"), "s: has 4 bytes: no samples");
  EXPECT_EQ(message(with(0, 0xFFFFFFFF)), "s: claims 4 294 967 295 samples in 37 bytes");
  EXPECT_EQ(message(with(4, 3)), "s: samples are in bytes 3 to 37 of 37");
  EXPECT_EQ(message(with(12, 38)), "s: samples are in bytes 18 to 38 of 37");
  EXPECT_EQ(message(with(8, 17)), "s: sample 0 ends before it begins");
  EXPECT_EQ(message(with(8, 19)), "s: sample 0 has 1 bytes");
  EXPECT_EQ(message(with(18, 4)), "s: sample 0: column 'b' has 4 bytes, 3 are left");
  EXPECT_EQ(message(with(18, 2)), "s: sample 0: 1 bytes belong to no column");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(message(text.substr(0, size)), "ok") << size;
}

TEST(StreamIndex, rejects_damaged_mds_indexes) {
  EXPECT_EQ(read_index(mds("")), "ok");
  EXPECT_EQ(read_index("[]"), "is not a JSON object");
  EXPECT_EQ(read_index(std::string(100'000, '[')), "is not a JSON object");
  EXPECT_EQ(read_index("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
            "is not a JSON object");
  EXPECT_EQ(read_index("{}"), "has neither MDS shards nor LitData chunks");
  EXPECT_EQ(read_index(R"({"version":1,"shards":[]})"), "is not MDS version 2, the only supported version");
  EXPECT_EQ(read_index(mds(R"(,"format":"csv")")), "shards are of format 'csv'; only mds is supported");
  EXPECT_EQ(read_index(mds(R"(,"samples":-1)")), "'s.mds': samples is not a number");
  EXPECT_EQ(read_index(mds(R"(,"raw_data":{"basename":"../s.mds"})")),
            "a shard's basename is not a valid file name");
  EXPECT_EQ(read_index(mds(R"(,"column_sizes":[])")), "1 names of columns, 0 in column_sizes");
  EXPECT_EQ(read_index(mds(R"(,"column_sizes":[4])")), "column 'a': 'bytes' has 0 bytes, column_sizes has 4");
  EXPECT_EQ(read_index(mds(R"(,"column_encodings":["x"])")), "column 'a': encoding 'x' is unknown");
  EXPECT_EQ(read_index(mds(R"(,"column_encodings":["ndarray:f:1"])")),
            "column 'a': encoding 'ndarray:f:1' is unknown");
  EXPECT_EQ(read_index(mds(R"(,"column_encodings":["pkl"])")),
            "column 'a' is pickled ('pkl'): reading it would run arbitrary code");
  EXPECT_EQ(read_index(mds(R"(,"compression":"snappy","zip_data":{"basename":"s.mds.snappy"})")),
            "shards are compressed by 'snappy'; zstd and gz are supported");
}

TEST(StreamIndex, litdata_columns_are_named_by_their_tree) {
  TempDirectory folder;
  const std::string leaf = R"({\"type\":null,\"context\":null,\"children_spec\":[]})";
  const std::string spec =
      R"([1,{\"type\":\"builtins.dict\",\"context\":\"[\\\"a\\\",\\\"b\\\"]\",\"children_spec\":[)" + leaf +
      R"(,{\"type\":\"builtins.list\",\"context\":\"null\",\"children_spec\":[)" + leaf + "," + leaf +
      "]}]}]";
  const std::string config = R"("data_format":["bytes","int","file:mp3"],"data_spec":")" + spec + "\"";
  ASSERT_TRUE(write_file(folder / "index.json", litdata(config)).ok());
  const auto index = read_stream_index(folder.path());
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  const std::vector<StreamColumn>& columns = *index->shards[0].columns;
  EXPECT_EQ(columns[0].name + " " + columns[1].name + " " + columns[2].name, "a b.0 b.1");
  EXPECT_EQ(columns[2].extension, "mp3");
  EXPECT_TRUE(columns[0].is_named);
  EXPECT_FALSE(columns[1].is_named);
}

TEST(StreamIndex, rejects_damaged_litdata_indexes) {
  const std::string good = R"("data_format":["bytes"],"data_spec":null)";
  EXPECT_EQ(read_index(litdata(good)), "ok");
  EXPECT_EQ(read_index(litdata("")), "config has no data_format");
  EXPECT_EQ(read_index(litdata(R"("data_format":["bytes"],"data_spec":"[2,{}]")")),
            "data_spec is not a tree of version 1");
  EXPECT_EQ(read_index(litdata(R"("data_format":["bytes"],"data_spec":"[1,{}]")")),
            "data_spec is not a tree");
  EXPECT_EQ(read_index(litdata(R"("data_format":["no_header_tensor:10"])")),
            "column 'data': encoding 'no_header_tensor:10' is unknown");
  EXPECT_EQ(read_index(litdata(good + R"(,"item_loader":"Mine")")),
            "chunks are for 'Mine'; PyTreeLoader and TokensLoader are supported");
  EXPECT_EQ(read_index(litdata(good + R"(,"compression":"lz4")")),
            "chunks are compressed by 'lz4'; only zstd is supported");
  EXPECT_EQ(read_index(litdata(good + R"(,"encryption":{})")), "its chunks are encrypted");
}

TEST(StreamValues, array_sizes_must_match_their_shape) {
  const StreamColumn any{.name = "x", .kind = ColumnKind::array};
  const std::string good =
      std::string("\x10\x08\x03\x02", 4) + std::string(12, 'x');  // u16, 2 dimensions: 3, 2
  const auto array = read_array_value(any, bytes_of(good), "s");
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_EQ(array->type, DType::u16);
  EXPECT_EQ(array->shape, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(array->data_offset, 4U);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(read_array_value(any, bytes_of(good.substr(0, size)), "s").ok()) << size;
  EXPECT_EQ(read_array_value(any, bytes_of(std::string("\x07\x08\x03\x02", 4)), "s").status().message(),
            "s: an array of unknown type");
  const StreamColumn tensor{.name = "x", .kind = ColumnKind::tensor};
  const std::string huge = word(0) + word(0x02000000) + word(0xFFFFFFFF) + word(0xFFFFFFFF);
  EXPECT_EQ(read_array_value(tensor, bytes_of(huge), "s").status().message(),
            "s: an array of 0 bytes contradicts its shape");
  const std::string deep = word(0) + word(0xFFFFFFFF);
  EXPECT_EQ(read_array_value(tensor, bytes_of(deep), "s").status().message(),
            "s: an array of 4294967295 dimensions in 8 bytes");
  const std::string complex = word(0x04000000) + word(0);
  EXPECT_THAT(std::string(read_array_value(tensor, bytes_of(complex), "s").status().message()),
              StartsWith("s: an array of type 4: not supported by .npy"));
}

TEST(StreamValues, pixel_and_list_sizes_must_match) {
  const std::string good = word(2) + word(1) + word(3) + "RGB" + "abcdef";
  EXPECT_EQ(read_pixel_value(bytes_of(good), "s")->channels, 3U);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(read_pixel_value(bytes_of(good.substr(0, size)), "s").ok()) << size;
  EXPECT_EQ(read_pixel_value(bytes_of(word(8) + word(1) + word(1) + "1" + "a"), "s").status().message(),
            "s: pixels of mode '1' are not supported");
  const StreamColumn list{.name = "x", .kind = ColumnKind::files};
  const std::string files = word(2) + word(1) + word(2) + "abb";
  const auto read = [&](const std::string& text) {
    return read_file_list(list, {0, text.size()}, reader_of(text), "s");
  };
  ASSERT_EQ(read(files)->size(), 2U);
  EXPECT_EQ((*read(files))[1].offset, 13U);
  for (std::size_t size = 0; size < files.size(); ++size)
    EXPECT_FALSE(read(files.substr(0, size)).ok()) << size;
  EXPECT_EQ(read(files + "c").status().message(), "s: 1 bytes after the files of a list");
  EXPECT_EQ(read(word(0x40000000)).status().message(), "s: a list of 1073741824 files in 4 bytes");
}

TEST(StreamValues, nested_values_become_json_or_an_error) {
  const auto json = [](const std::string& text) {
    const auto read = nested_to_json(bytes_of(text), "s");
    return read.ok() ? *read : std::string(read.status().message());
  };
  const std::string bad = "s: damaged lists and objects";
  const std::string text =
      "\x05" + word(1) + word(1) + "k" + "\x01" + word(2) + word(1) + "a" + word(1) + "b";
  EXPECT_EQ(json(text), R"({"k":["a","b"]})");
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_EQ(json(text.substr(0, size)), bad) << size;
  EXPECT_EQ(json(text + "x"), bad);
  EXPECT_EQ(json(R"([1,{"a":null}])"), R"([1,{"a":null}])");
  EXPECT_EQ(json(std::string(100'000, '[') + std::string(100'000, ']')), bad);
  EXPECT_EQ(json("\x02" + word(0xFFFFFFFF)), bad);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "\x05" + word(1) + word(0);
  EXPECT_EQ(json(deep), bad);
}

TEST(StreamValues, numbers_of_all_kinds) {
  const auto json = [](ColumnKind kind, std::uint32_t bytes, const std::string& value) {
    const auto text = number_to_json({.name = "x", .kind = kind, .bytes = bytes}, bytes_of(value), "s");
    return text.ok() ? *text : std::string(text.status().message());
  };
  EXPECT_EQ(json(ColumnKind::integer, 2, "\xFE\xFF"), "-2");
  EXPECT_EQ(json(ColumnKind::unsigned_integer, 2, "\xFE\xFF"), "65534");
  EXPECT_EQ(json(ColumnKind::floating, 2, std::string("\x00\x3E", 2)), "1.5");
  EXPECT_EQ(json(ColumnKind::floating, 2, std::string("\x01\x00", 2)), "5.960464477539063e-08");
  EXPECT_EQ(json(ColumnKind::floating, 2, std::string("\x00\x7C", 2)), "null");
  EXPECT_EQ(json(ColumnKind::decimal_text, 0, "1e30"), "1e30");
  EXPECT_EQ(json(ColumnKind::decimal_text, 0, "nan"), "\"nan\"");
  EXPECT_EQ(json(ColumnKind::boolean, 0, "\1"), "true");
  EXPECT_EQ(json(ColumnKind::integer, 0, "abc"), "s: column 'x': a number of 3 bytes");
}

// One message: continued, bytes of metadata, metadata.
std::string arrow_message(const std::string& metadata) {
  std::string text(8, '\xff');
  const auto size = static_cast<std::uint32_t>(metadata.size());
  std::memcpy(text.data() + 4, &size, sizeof size);
  return text + metadata;
}

TEST(ArrowTable, rejects_damaged_tables) {
  const auto message = [](const std::string& text) {
    const std::string subject = "s";
    const auto table = ArrowTable::open(std::as_bytes(std::span(text)), subject);
    return table.ok() ? std::string("ok") : std::string(table.status().message());
  };
  const std::string magic("ARROW1\0\0", 8);
  EXPECT_EQ(message(""), "s: its Arrow table has no schema");
  EXPECT_EQ(message(magic), "s: its Arrow table has no schema");
  EXPECT_EQ(message("abc"), "s: byte 0 of its Arrow table: torn");
  EXPECT_EQ(message(magic + std::string(8, '\xff')), "s: byte 16 of its Arrow table: torn");
  EXPECT_EQ(message(magic + arrow_message(std::string(4, '\xff'))), "s: byte 20 of its Arrow table: torn");
  EXPECT_EQ(message(magic + arrow_message(std::string(64, '\0'))), "s: its Arrow table has no schema");
}

TEST(StreamTable, requires_its_magic_and_a_valid_size) {
  TempDirectory folder;
  NoProgress progress;
  const auto message = [&](const std::string& text) {
    auto out = File::create(folder / "out");
    const auto table = unpack_stream_table({reader_of(text), text.size(), "s"}, 1, {*out, 1000}, progress);
    if (!table.ok()) return std::string(table.status().message());
    return std::string(*table ? "table" : "none");
  };
  const std::string mark("LDARW01\0", 8);
  EXPECT_EQ(message("short"), "none");
  EXPECT_EQ(message(std::string(40, 'x')), "none");
  EXPECT_EQ(message(std::string("\x01\0\0\0", 4) + mark), "s: its Arrow table of 1 bytes is torn");
  EXPECT_EQ(message(std::string("\0\0\0\0", 4) + mark), "s: its Arrow table has no schema");
}

}  // namespace
}  // namespace stoker::archive
