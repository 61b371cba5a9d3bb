#include "arrays/zarr/array.h"

#include <thread>

#include <gmock/gmock.h>

#include "arrays/zarr/shard.h"
#include "arrays/zarr/store.h"
#include "arrays/zarr/writer.h"
#include "base/file.h"

namespace stoker::arrays {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Numbers that differ in every byte.
std::vector<std::uint32_t> numbers(std::uint64_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u);
  return values;
}

ZarrSpec spec_of(codec::Extents shape, codec::Extents chunks) {
  ZarrSpec spec;
  spec.shape = std::move(shape);
  spec.chunks = std::move(chunks);
  spec.type = codec::element_type(DType::u32);
  return spec;
}

Status write_all(const Path& folder, const ZarrSpec& spec, std::span<const std::uint32_t> values,
                 std::size_t threads = 2) {
  STOKER_ASSIGN_OR_RETURN(metadata, zarr_metadata(spec));
  STOKER_ASSIGN_OR_RETURN(writer, ZarrWriter::create(folder, metadata, ZarrWriter::Existing::fail));
  const std::uint64_t row = spec.shape.empty() ? 1 : *codec::product(std::span(spec.shape).subspan(1));
  for (std::uint64_t block = 0; block < writer.blocks(); ++block) {
    const auto rows = values.subspan(block * writer.rows_per_block() * row, writer.rows_of(block) * row);
    STOKER_RETURN_IF_ERROR(writer.write_block(block, std::as_bytes(rows), threads));
  }
  return writer.finish();
}

std::vector<std::uint32_t> read_box(const ZarrArray& array, const codec::Extents& begin,
                                    const codec::Extents& size) {
  std::vector<std::uint32_t> values(*codec::product(size));
  const Status status = array.read(begin, size, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

std::string error_of(const ZarrArray& array) {
  std::vector<std::byte> out(array.rows() * array.row_bytes());
  const Status status = array.read_rows(0, array.rows(), out);
  return status.ok() ? "ok" : std::string(status.message());
}

std::string codec_name(const ZarrSpec& spec) {
  std::string name = format("v{} {}{}", spec.version, spec.order == codec::ByteOrder::big ? "big " : "",
                            spec.is_column_major ? "F " : "");
  for (const BytesCodec& codec : spec.codecs) name += format("{} {} ", to_text(codec.kind), codec.compressor);
  return name + (spec.shards.empty() ? "" : "sharded");
}

std::vector<ZarrSpec> every_way() {
  using Kind = BytesCodec::Kind;
  using Shuffle = BytesCodec::Shuffle;
  std::vector<std::vector<BytesCodec>> chains = {
      {},
      {{.kind = Kind::zstd, .level = 1, .has_checksum = true}},
      {{.kind = Kind::gzip, .level = 5}},
      {{.kind = Kind::zlib, .level = 9}},
      {{.kind = Kind::lz4}},
      {{.kind = Kind::shuffle, .element_bytes = 4}, {.kind = Kind::zlib, .level = 1}},
      {{.kind = Kind::zstd, .level = 1}, {.kind = Kind::crc32c}}};
  for (const char* compressor : {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}) {
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::bytes, Shuffle::bits}) {
      chains.push_back({{.kind = Kind::blosc, .level = 5, .compressor = compressor, .shuffle = shuffle}});
    }
  }
  std::vector<ZarrSpec> specs;
  for (const auto& chain : chains) {
    for (const int way : {0, 1, 2, 3, 4}) {
      ZarrSpec spec = spec_of({11, 5, 6}, {2, 2, 3});
      spec.codecs = chain;
      spec.version = way < 2 ? 2 : 3;
      spec.order = way % 2 == 1 ? codec::ByteOrder::big : codec::ByteOrder::little;
      spec.is_column_major = way == 1 || way == 3;
      if (way == 4) spec.shards = {4, 4, 6};
      specs.push_back(std::move(spec));
    }
  }
  return specs;
}

TEST(ZarrArray, round_trip_with_all_options) {
  const std::vector<std::uint32_t> values = numbers(11 * 5 * 6);
  for (const ZarrSpec& spec : every_way()) {
    SCOPED_TRACE(codec_name(spec));
    TempDirectory folder;
    const Status written = write_all(folder / "a", spec, values);
    ASSERT_TRUE(written.ok()) << written.message();
    const auto array = ZarrArray::open(folder / "a", "");
    ASSERT_TRUE(array.ok()) << array.error().message();
    EXPECT_EQ(read_box(**array, {0, 0, 0}, {11, 5, 6}), values);
    const std::vector<std::uint32_t> part = read_box(**array, {3, 1, 2}, {6, 3, 3});
    EXPECT_EQ(part[(2 * 3 + 1) * 3 + 2], values[(5 * 5 + 2) * 6 + 4]);
  }
}

TEST(ZarrArray, empty_rows_read_no_chunk) {
  TempDirectory folder;
  ASSERT_TRUE(write_all(folder / "a", spec_of({6, 0}, {2, 4}), {}).ok());
  ASSERT_TRUE(make_directories(folder / "a/c/0").ok());
  ASSERT_TRUE(write_file(folder / "a/c/0/0", "no chunk").ok());
  const auto array = ZarrArray::open(folder / "a", "");
  ASSERT_TRUE(array.ok()) << array.error().message();
  EXPECT_EQ(error_of(**array), "ok");
  const std::vector<std::uint64_t> backwards = {5, 1, 0};
  const Status status = (*array)->read_rows(backwards, {});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ZarrArray, rows_in_any_order_read_each_chunk_once) {
  TempDirectory folder;
  const std::vector<std::uint32_t> values = numbers(100 * 4);
  ASSERT_TRUE(write_all(folder / "a", spec_of({100, 4}, {10, 4}), values).ok());
  const auto cache = std::make_shared<codec::ChunkCache>(0_KiB);  // evicts every unused chunk
  const auto array = ZarrArray::open(folder / "a", "", cache);
  std::vector<std::uint64_t> rows(100);
  for (std::uint64_t i = 0; i < 100; ++i) rows[i] = i * 37 % 100;
  std::vector<std::uint32_t> out(400);
  ASSERT_TRUE((*array)->read_rows(rows, std::as_writable_bytes(std::span(out))).ok());
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(out[i * 4 + 3], values[rows[i] * 4 + 3]);
  EXPECT_EQ(cache->counts().loads, 10u);
}

TEST(ZarrArray, concurrent_threads_decode_a_chunk_once) {
  TempDirectory folder;
  const std::vector<std::uint32_t> values = numbers(64 * 1024);
  ASSERT_TRUE(write_all(folder / "a", spec_of({64, 1024}, {64, 1024}), values).ok());
  const auto cache = std::make_shared<codec::ChunkCache>(64_MiB);
  const auto array = ZarrArray::open(folder / "a", "", cache);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::uint32_t> out(1024);
      for (std::uint64_t row = t; row < 64; row += 8) {
        ASSERT_TRUE((*array)->read_rows(row, 1, std::as_writable_bytes(std::span(out))).ok());
        EXPECT_EQ(out[5], values[row * 1024 + 5]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache->counts().loads, 1u);
  EXPECT_EQ(cache->counts().hits, 63u);
}

TEST(ZarrArray, a_missing_chunk_reads_as_the_fill_value) {
  TempDirectory folder;
  for (const codec::Extents& shards : {codec::Extents{}, codec::Extents{4, 4}}) {
    ZarrSpec spec = spec_of({4, 4}, {2, 4});
    spec.shards = shards;
    spec.fill = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    const Path at = folder / (shards.empty() ? "plain" : "sharded");
    ASSERT_TRUE(write_all(at, spec, numbers(16)).ok());
    ASSERT_TRUE(remove_file(at / "c/0/0").ok());
    const auto array = ZarrArray::open(at, "");
    EXPECT_EQ(read_box(**array, {0, 1}, {1, 2}), (std::vector<std::uint32_t>{0x04030201, 0x04030201}));
  }
}

TEST(ZarrArray, a_chunk_missing_in_a_shard_reads_as_the_fill_value) {
  TempDirectory folder;
  ZarrSpec spec = spec_of({4}, {2});
  spec.shards = {4};
  ASSERT_TRUE(write_all(folder / "a", spec, numbers(4)).ok());
  const auto metadata = zarr_metadata(spec);
  const std::vector<std::optional<std::string>> none = {std::nullopt, std::nullopt};
  ASSERT_TRUE(write_file(folder / "a/c/0", encode_shard(*metadata->sharding, none)).ok());
  EXPECT_EQ(read_box(**ZarrArray::open(folder / "a", ""), {0}, {4}),
            (std::vector<std::uint32_t>{0, 0, 0, 0}));
}

TEST(ZarrArray, missing_values_of_variable_length_refer_to_the_fill_value) {
  constexpr std::string_view kMetadata = R"({
    "zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "string", "fill_value": "none",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "vlen-utf8"}]})";
  TempDirectory folder;
  ASSERT_TRUE(make_directories(folder / "c").ok());
  ASSERT_TRUE(write_file(folder / "zarr.json", kMetadata).ok());
  // The second chunk: two values, "ab" and "".
  const std::string_view chunk("\2\0\0\0\2\0\0\0ab\0\0\0\0", 14);
  ASSERT_TRUE(write_file(folder / "c/1", chunk).ok());
  const auto array = ZarrArray::open(folder.path(), "");
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  const auto values = (*array)->values();
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  ASSERT_TRUE(values->fill.has_value());
  EXPECT_EQ(values->array.shape, codec::Extents{14});
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(values->fill->fill.data()), 4), "none");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const codec::ValueArray::Range& place : values->places) places.emplace_back(place.begin, place.bytes);
  EXPECT_THAT(places, ElementsAre(Pair(14, 4), Pair(14, 4), Pair(8, 2), Pair(14, 0), Pair(14, 4)));
}

TEST(ZarrArray, a_scalar_and_an_empty_array) {
  TempDirectory folder;
  ASSERT_TRUE(write_all(folder / "scalar", spec_of({}, {}), std::vector<std::uint32_t>{7}).ok());
  EXPECT_EQ(read_box(**ZarrArray::open(folder / "scalar", ""), {}, {}), std::vector<std::uint32_t>{7});
  ASSERT_TRUE(write_all(folder / "empty", spec_of({0, 3}, {1, 3}), {}).ok());
  EXPECT_EQ((*ZarrArray::open(folder / "empty", ""))->rows(), 0u);
}

TEST(ZarrArray, reading_out_of_bounds_is_an_error) {
  TempDirectory folder;
  ASSERT_TRUE(write_all(folder / "a", spec_of({4, 2}, {2, 2}), numbers(8)).ok());
  const auto array = ZarrArray::open(folder / "a", "");
  std::vector<std::byte> out(16);
  EXPECT_EQ((*array)->read_rows(3, 2, out).message(),
            format("{}: dimension 0 has 4 elements, 2 from 3 on were requested", folder / "a"));
  const std::uint64_t rows[] = {0, 4};
  EXPECT_EQ((*array)->read_rows(rows, out).message(),
            format("{}: has 4 rows, row 4 was requested", folder / "a"));
}

class ZarrDamage : public ::testing::Test {
 protected:
  void write(std::vector<BytesCodec> codecs, codec::Extents shards = {}) {
    ZarrSpec spec = spec_of({4, 64}, {4, 64});
    spec.codecs = std::move(codecs);
    spec.shards = std::move(shards);
    ASSERT_TRUE(write_all(folder_ / "a", spec, numbers(256)).ok());
    stored_ = read_file(chunk()).value();
  }
  Path chunk() const { return folder_ / "a/c/0/0"; }
  std::string after(const std::string& bytes) {
    EXPECT_TRUE(write_file(chunk(), bytes).ok());
    std::string text = error_of(**ZarrArray::open(folder_ / "a", ""));
    const std::string path = chunk().string();
    if (text.starts_with(path)) text = "CHUNK" + text.substr(path.size());
    return text;
  }
  TempDirectory folder_;
  std::string stored_;
};

TEST_F(ZarrDamage, truncated_chunks_are_corrupt) {
  write({});
  EXPECT_EQ(after(stored_.substr(0, 1000)), "CHUNK: holds 1000 bytes, expected 1024");
  EXPECT_EQ(after(stored_ + "x"), "CHUNK: holds 1025 bytes, expected 1024");
}

TEST_F(ZarrDamage, every_compressor_detects_truncation) {
  using Kind = BytesCodec::Kind;
  for (const auto& [kind, word] : {std::pair{Kind::zstd, "zstd"},
                                   {Kind::gzip, "gzip"},
                                   {Kind::zlib, "zlib"},
                                   {Kind::lz4, "LZ4"},
                                   {Kind::blosc, "blosc"}}) {
    SCOPED_TRACE(word);
    ASSERT_TRUE(remove_tree(folder_ / "a").ok());
    write({{.kind = kind, .level = 1}});
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{20}, stored_.size() - 1}) {
      EXPECT_THAT(after(stored_.substr(0, size)), HasSubstr(format("CHUNK: {} data ", word)));
    }
  }
}

TEST_F(ZarrDamage, a_bomb_stops_at_the_size_in_the_metadata) {
  using Kind = BytesCodec::Kind;
  for (const Kind kind : {Kind::zstd, Kind::gzip, Kind::zlib}) {
    ASSERT_TRUE(remove_tree(folder_ / "a").ok());
    write({{.kind = kind, .level = 1}});
    ZarrSpec bomb = spec_of({1 << 18}, {1 << 18});
    bomb.codecs = {{.kind = kind, .level = 1}};
    ASSERT_TRUE(remove_tree(folder_ / "bomb").ok());
    ASSERT_TRUE(write_all(folder_ / "bomb", bomb, std::vector<std::uint32_t>(1 << 18)).ok());
    EXPECT_EQ(after(read_file(folder_ / "bomb/c/0").value()),
              format("CHUNK: {} data unpacks to more than the 1024 bytes expected", to_text(kind)));
  }
}

TEST_F(ZarrDamage, two_gzip_members_are_one_chunk) {
  write({{.kind = BytesCodec::Kind::gzip, .level = 1}});
  ZarrSpec half = spec_of({2, 64}, {2, 64});
  half.codecs = {{.kind = BytesCodec::Kind::gzip, .level = 1}};
  const std::vector<std::uint32_t> values = numbers(256);
  std::string both;
  for (const std::size_t part : {0, 1}) {
    const Path at = folder_ / format("half{}", part);
    ASSERT_TRUE(write_all(at, half, std::span(values).subspan(part * 128, 128)).ok());
    both += read_file(at / "c/0/0").value();
  }
  EXPECT_EQ(after(both), "ok");
  EXPECT_EQ(read_box(**ZarrArray::open(folder_ / "a", ""), {0, 0}, {4, 64}), values);
}

TEST_F(ZarrDamage, the_crc_detects_a_flip) {
  write({{.kind = BytesCodec::Kind::crc32c}});
  std::string flipped = stored_;
  flipped[100] ^= 1;
  EXPECT_THAT(after(flipped),
              testing::MatchesRegex("CHUNK: CRC-32C expected [0-9a-f]{8}, found [0-9a-f]{8}"));
}

TEST_F(ZarrDamage, a_chunk_that_is_too_large_is_not_read_at_all) {
  write({{.kind = BytesCodec::Kind::zstd, .level = 1}});
  EXPECT_EQ(after(std::string(70000, 'x')),
            "CHUNK: has 70000 bytes, a chunk of 1024 is stored in at most 66576");
}

TEST_F(ZarrDamage, every_field_of_a_shard_index) {
  write({{.kind = BytesCodec::Kind::zstd, .level = 1}}, {8, 64});
  ASSERT_EQ(after(stored_), "ok");
  EXPECT_EQ(after(stored_.substr(0, 10)), "CHUNK: has 10 bytes, its index alone needs 36");
  std::string flipped = stored_;
  flipped[stored_.size() - 36] ^= 1;
  EXPECT_THAT(after(flipped), testing::MatchesRegex("CHUNK: shard index: CRC-32C expected .*, found .*"));
  // Without its first byte, the first chunk begins too late, and its end is inside the index.
  EXPECT_EQ(after(stored_.substr(1)), "CHUNK: chunk 0: zstd data is damaged");
}

TEST(ZarrShard, an_entry_beyond_the_end_is_refused) {
  const Sharding sharding{.chunks = {1}, .inner = {}, .index_has_crc = false};
  const auto parse = [&](std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t index[] = {offset, bytes};
    const auto entries = parse_shard_index(sharding, std::as_bytes(std::span(index)), 100, "s");
    return entries.ok() ? "ok" : std::string(entries.error().message());
  };
  EXPECT_EQ(parse(0, 100), "ok");
  EXPECT_EQ(parse(1, 100), "s: shard index: chunk 0 is beyond the end");
  EXPECT_EQ(parse(~std::uint64_t{0} - 1, 2), "s: shard index: chunk 0 is beyond the end");
  EXPECT_EQ(parse(~std::uint64_t{0}, ~std::uint64_t{0}), "ok");
}

TEST(ZarrWriter, resumes_after_the_finished_blocks) {
  TempDirectory folder;
  const ZarrSpec spec = spec_of({5, 2}, {2, 2});
  const auto metadata = zarr_metadata(spec);
  const std::vector<std::uint32_t> values = numbers(10);
  {
    const auto first = ZarrWriter::create(folder / "a", *metadata, ZarrWriter::Existing::fail);
    ASSERT_TRUE(first->write_block(1, std::as_bytes(std::span(values).subspan(4, 4))).ok());
    EXPECT_EQ(first->finish().message(), format("{}: block 1 of 3 was not written", folder / "a"));
  }
  EXPECT_EQ(ZarrArray::open(folder / "a", "").error().message(),
            format("{}: no Zarr array ''", folder / "a"));
  EXPECT_EQ(ZarrWriter::create(folder / "a", *metadata, ZarrWriter::Existing::fail).error().message(),
            format("{}: an unfinished array exists here", folder / "a"));
  const auto other = zarr_metadata(spec_of({6, 2}, {2, 2}));
  EXPECT_EQ(ZarrWriter::create(folder / "a", *other, ZarrWriter::Existing::resume).error().message(),
            format("{}: the unfinished array here is a different one", folder / "a"));
  const auto second = ZarrWriter::create(folder / "a", *metadata, ZarrWriter::Existing::resume);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->has_block(0));
  EXPECT_TRUE(second->has_block(1));
  ASSERT_TRUE(second->write_block(0, std::as_bytes(std::span(values).first(4))).ok());
  ASSERT_TRUE(second->write_block(2, std::as_bytes(std::span(values).last(2))).ok());
  ASSERT_TRUE(second->finish().ok());
  EXPECT_EQ(read_box(**ZarrArray::open(folder / "a", ""), {0, 0}, {5, 2}), values);
  EXPECT_EQ(ZarrWriter::create(folder / "a", *metadata, ZarrWriter::Existing::resume).error().message(),
            format("{}: is already a Zarr array", folder / "a"));
}

TEST(ZarrWriter, chunks_of_about_a_size) {
  EXPECT_EQ(choose_chunk_shape(codec::Extents{50000, 3, 32, 32}, 1, 1_MiB), (codec::Extents{341, 3, 32, 32}));
  EXPECT_EQ(choose_chunk_shape(codec::Extents{10, 4096, 4096}, 4, 1_MiB), (codec::Extents{1, 64, 4096}));
  EXPECT_EQ(choose_chunk_shape(codec::Extents{0, 5}, 4, 1_MiB), (codec::Extents{1, 5}));
}

TEST(ZarrStore, names_that_leave_the_store_are_refused) {
  TempDirectory folder;
  for (const auto& [name, why] : {std::pair{"../x", "leaves the store"},
                                  {"a/../../x", "leaves the store"},
                                  {"/etc", "has an empty part"},
                                  {"a//b", "has an empty part"},
                                  {"./a", "leaves the store"}}) {
    EXPECT_EQ(ZarrArray::open(folder.path(), name).error().message(),
              format("{}: the name '{}' {}", folder.path(), name, why));
  }
}

TEST(ZarrStore, a_draft_of_version_3_is_refused_by_name) {
  TempDirectory folder;
  const std::string draft = R"({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"})";
  ASSERT_TRUE(write_file(folder / "zarr.json", draft).ok());
  EXPECT_THAT(list_zarr(folder.path()).status().message(),
              HasSubstr("zarr.json: zarr_format is \"https://purl.org/zarr/spec/protocol/core/3.0\", not 3"));
}

TEST(ZarrStore, nodes_are_listed_with_and_without_consolidated_metadata) {
  for (const int version : {2, 3}) {
    TempDirectory folder;
    ASSERT_TRUE(write_zarr_group(folder.path(), version).ok());
    ASSERT_TRUE(write_zarr_group(folder / "train", version).ok());
    ZarrSpec spec = spec_of({4}, {2});
    spec.version = version;
    spec.attributes = R"({"unit":"K"})";
    ASSERT_TRUE(write_all(folder / "train/x", spec, numbers(4)).ok());
    const auto walked = list_zarr(folder.path());
    ASSERT_TRUE(walked.ok()) << walked.error().message();
    ASSERT_EQ(walked->size(), 3u);
    EXPECT_EQ((*walked)[2], (ZarrNode{"train/x", ZarrNode::Kind::array, version}));
    ASSERT_TRUE(consolidate_zarr(folder.path()).ok());
    EXPECT_EQ(list_zarr(folder.path()).value(), *walked);
    const auto before = read_zarr_metadata(folder.path(), "train/x");
    for (const char* name : {"zarr.json", ".zarray", ".zattrs"}) {
      const Path file = folder / "train/x" / name;
      ASSERT_TRUE(!path_exists(file) || remove_file(file).ok());
    }
    EXPECT_EQ(read_zarr_metadata(folder.path(), "train/x").value(), *before);
    EXPECT_EQ(read_zarr_metadata(folder.path(), "train").error().message(),
              format("{}: 'train' is a group, not an array", folder.path()));
  }
}

}  // namespace
}  // namespace stoker::arrays
