#include "arrays/zarr/metadata.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>

#include "arrays/zarr/fill_value.h"

namespace stoker::arrays {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kV2 =
    R"({"zarr_format": 2, "shape": [10, 6], "chunks": [4, 3], "dtype": ">i2", "order": "F",
  "fill_value": -1, "filters": null, "compressor": {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1,
  "blocksize": 0}, "dimension_separator": "/"})";

constexpr std::string_view kV3 =
    R"({"zarr_format": 3, "node_type": "array", "shape": [100, 8], "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20, 8]}},
  "chunk_key_encoding": {"name": "default"}, "fill_value": "NaN",
  "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [5, 8],
    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "zstd", "configuration": {"level": 1}}],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    "index_location": "start"}}],
  "attributes": {"unit": "K"}, "dimension_names": ["time", null]})";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string changed(text);
  const std::size_t at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return changed.replace(at, from.size(), to);
}

std::string v2_error(std::string_view from, std::string_view to) {
  const auto parsed = parse_zarr_v2(replaced(kV2, from, to), "", "x/.zarray");
  return parsed.ok() ? "ok" : std::string(parsed.error().message());
}

std::string v3_error(std::string_view from, std::string_view to) {
  const auto parsed = parse_zarr_v3(replaced(kV3, from, to), "x/zarr.json");
  return parsed.ok() ? "ok" : std::string(parsed.error().message());
}

TEST(ZarrMetadata, version_2_is_read_with_order_endianness_and_separator) {
  const auto metadata = parse_zarr_v2(kV2, R"({"_ARRAY_DIMENSIONS": ["y", "x"]})", "x");
  ASSERT_TRUE(metadata.ok()) << metadata.error().message();
  EXPECT_THAT(metadata->shape, ElementsAre(10, 6));
  EXPECT_THAT(metadata->pipeline.axes, ElementsAre(1, 0));
  EXPECT_EQ(metadata->pipeline.order, codec::ByteOrder::big);
  EXPECT_EQ(metadata->type.dtype(), DType::i16);
  EXPECT_THAT(metadata->fill, ElementsAre(std::byte{255}, std::byte{255}));
  EXPECT_THAT(metadata->dimension_names, ElementsAre("y", "x"));
  EXPECT_EQ(chunk_key(*metadata, codec::Extents{2, 1}), "2/1");
}

TEST(ZarrMetadata, version_3_is_read_with_shards) {
  const auto metadata = parse_zarr_v3(kV3, "x");
  ASSERT_TRUE(metadata.ok()) << metadata.error().message();
  EXPECT_THAT(metadata->inner_chunks(), ElementsAre(5, 8));
  EXPECT_EQ(metadata->sharding->index_at, Sharding::IndexAt::start);
  EXPECT_EQ(metadata->sharding->inner.order, codec::ByteOrder::big);
  EXPECT_THAT(metadata->dimension_names, ElementsAre("time", ""));
  EXPECT_EQ(chunk_key(*metadata, codec::Extents{2, 0}), "c/2/0");
}

TEST(ZarrMetadata, round_trip) {
  const auto v2 = parse_zarr_v2(kV2, "", "x");
  EXPECT_EQ(parse_zarr_v2(to_json(*v2), "", "again").value(), *v2);
  const auto v3 = parse_zarr_v3(kV3, "x");
  EXPECT_EQ(parse_zarr_v3(to_json(*v3), "again").value(), *v3);
}

TEST(ZarrMetadata, a_numcodecs_checksum_may_precede_the_data) {
  const std::string v2_text =
      replaced(kV2, R"("filters": null)", R"("filters": [{"id": "crc32c", "location": "start"}])");
  const auto v2 = parse_zarr_v2(v2_text, "", "x");
  ASSERT_TRUE(v2.ok()) << v2.error().message();
  EXPECT_TRUE(v2->pipeline.codecs[0].is_crc_first);
  EXPECT_EQ(parse_zarr_v2(to_json(*v2), "", "again").value(), *v2);
  const std::string v3_text =
      replaced(kV3, R"({"name": "zstd", "configuration": {"level": 1}})",
               R"({"name": "numcodecs.crc32c", "configuration": {"location": "start"}}, {"name": "crc32c"})");
  const auto v3 = parse_zarr_v3(v3_text, "x");
  ASSERT_TRUE(v3.ok()) << v3.error().message();
  EXPECT_TRUE(v3->sharding->inner.codecs[0].is_crc_first);
  EXPECT_FALSE(v3->sharding->inner.codecs[1].is_crc_first);
  EXPECT_EQ(parse_zarr_v3(to_json(*v3), "again").value(), *v3);
  EXPECT_EQ(v2_error(R"("filters": null)", R"("filters": [{"id": "crc32c", "location": "middle"}])"),
            R"(x/.zarray: location: is neither "start" nor "end")");
}

TEST(ZarrMetadata, blosc_defaults_are_numcodecs) {
  const auto metadata = parse_zarr_v3(replaced(kV3, R"({"name": "zstd", "configuration": {"level": 1}})",
                                               R"({"name": "numcodecs.blosc", "configuration": {}})"),
                                      "x");
  ASSERT_TRUE(metadata.ok()) << metadata.error().message();
  const BytesCodec& codec = metadata->sharding->inner.codecs[0];
  EXPECT_EQ(codec.compressor, "lz4");
  EXPECT_EQ(codec.level, 5);
  EXPECT_EQ(codec.shuffle, BytesCodec::Shuffle::bytes);
}

TEST(ZarrMetadata, a_scalar_has_one_chunk) {
  ZarrMetadata scalar;
  EXPECT_EQ(chunk_key(scalar, {}), "c");
  scalar.has_prefix = false;
  EXPECT_EQ(chunk_key(scalar, {}), "0");
}

TEST(ZarrMetadata, unsupported_features_are_named) {
  EXPECT_EQ(v2_error(R"("zarr_format": 2)", R"("zarr_format": 4)"), "x/.zarray: zarr_format: is not 2");
  EXPECT_EQ(v2_error("[10, 6]", "[10]"), "x/.zarray: chunks: has 2 sizes, the shape has 1");
  EXPECT_EQ(v2_error("[4, 3]", "[4, 0]"), "x/.zarray: chunks: a size is 0");
  EXPECT_EQ(v2_error("[10, 6]", "[10, -6]"), "x/.zarray: shape: is not a list of sizes");
  EXPECT_EQ(v2_error("[10, 6]", "[4611686018427387904, 8]"), "x/.zarray: shape: the array is too large");
  EXPECT_EQ(v2_error("[4, 3]", "[65536, 65536]"),
            "x/.zarray: a chunk has 2 GiB or more, which is not supported");
  EXPECT_EQ(v2_error(R"("F")", R"("A")"), R"(x/.zarray: order: is neither "C" nor "F")");
  EXPECT_EQ(
      v2_error(">i2", "|O"),
      "x/.zarray: dtype: objects of this kind are not supported (vlen-utf8, vlen-bytes and vlen-array are)");
  EXPECT_EQ(v2_error(R"(">i2")", R"([["a", "<i2"]])"),
            "x/.zarray: dtype: elements of several fields are not supported");
  EXPECT_EQ(v2_error("-1", "70000"), "x/.zarray: fill_value: fill value 70000 does not fit the data type");
  EXPECT_EQ(
      v2_error(R"("id": "blosc")", R"("id": "lzma")"),
      "x/.zarray: codec: 'lzma' is not supported (blosc, zstd, gzip, zlib, lz4, shuffle and crc32c are)");
  EXPECT_EQ(v2_error(R"("cname": "zstd")", R"("cname": "zstt")"),
            "x/.zarray: cname: blosc has no compressor 'zstt'; did you mean 'zstd'?");
  EXPECT_EQ(v2_error(R"("filters": null)", R"("filters": [{"id": "zlib"}])"),
            "x/.zarray: codecs: two compressors in one pipeline are not supported");
  EXPECT_EQ(v2_error(R"("order": "F",)", ""), "x/.zarray: order: is missing");
  EXPECT_EQ(parse_zarr_v2("[", "", "x").error().message(), "x: is not a JSON object");
  EXPECT_EQ(v3_error(R"("array")", R"("group")"), R"(x/zarr.json: node_type: is not "array")");
  EXPECT_EQ(v3_error(R"("regular")", R"("rectangular")"),
            "x/zarr.json: chunk_grid: 'rectangular' is not supported (regular is)");
  EXPECT_EQ(v3_error("[5, 8]", "[6, 8]"), "x/zarr.json: chunk_shape: 6 does not divide the shard's 20");
  EXPECT_EQ(v3_error(R"({"name": "crc32c"})", R"({"name": "zstd"})"),
            "x/zarr.json: index_codecs: 'zstd' is not supported here (bytes, then crc32c are)");
  EXPECT_EQ(v3_error(R"("attributes")", R"("novelty": {}, "attributes")"),
            "x/zarr.json: novelty: is an unknown extension that must be understood");
  EXPECT_EQ(v3_error(R"("attributes")", R"("novelty": {"must_understand": false}, "attributes")"), "ok");
  EXPECT_EQ(v3_error(R"("start")", R"("middle")"),
            R"(x/zarr.json: index_location: is neither "start" nor "end")");
}

template <typename T>
T fill(const codec::ElementType& type, std::string_view json) {
  const auto bytes = parse_fill_value(type, json);
  EXPECT_TRUE(bytes.ok()) << json;
  T value{};
  if (bytes.ok() && bytes->size() == sizeof value) std::memcpy(&value, bytes->data(), sizeof value);
  return value;
}

TEST(ZarrFillValue, all_spellings_of_numbers) {
  const codec::ElementType f32 = codec::element_type(DType::f32);
  EXPECT_TRUE(std::isnan(fill<float>(f32, R"("NaN")")));
  EXPECT_EQ(fill<float>(f32, R"("-Infinity")"), -INFINITY);
  EXPECT_EQ(fill<float>(f32, "1.5"), 1.5f);
  EXPECT_EQ(fill<float>(f32, "null"), 0);
  EXPECT_EQ(fill<std::uint32_t>(f32, R"("0x7fc00001")"), 0x7fc00001u);
  EXPECT_EQ(fill<std::uint64_t>(codec::element_type(DType::u64), "18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(fill<std::int64_t>(codec::element_type(DType::i64), "-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(fill<std::int8_t>(codec::element_type(DType::i8), "0.0"), 0);
  EXPECT_EQ(fill<std::uint16_t>(codec::element_type(DType::f16), "1.0"), 0x3C00);
  EXPECT_EQ(fill<std::uint16_t>(codec::element_type(DType::f16), "65520"), 0x7C00);
  EXPECT_EQ(fill<std::uint16_t>(codec::element_type(DType::f16), "5.960464477539063e-08"), 1);
  EXPECT_EQ(fill<std::uint16_t>(codec::element_type(DType::bf16), "1.0"), 0x3F80);
  EXPECT_EQ(fill<bool>(codec::element_type(DType::boolean), "true"), true);
  EXPECT_FALSE(parse_fill_value(codec::element_type(DType::u8), "256").ok());
  EXPECT_FALSE(parse_fill_value(codec::element_type(DType::u8), "-1").ok());
  EXPECT_FALSE(parse_fill_value(codec::element_type(DType::i8), "-129").ok());
  EXPECT_EQ(fill<std::int8_t>(codec::element_type(DType::i8), "-128"), -128);
  EXPECT_FALSE(parse_fill_value(codec::element_type(DType::i32), "1.5").ok());
  EXPECT_FALSE(parse_fill_value(f32, R"("0x7fc0")").ok());
}

TEST(ZarrFillValue, round_trip) {
  for (const auto& [dtype, json] : {std::pair<DType, std::string_view>{DType::f32, R"("NaN")"},
                                    {DType::f32, R"("0x7fc00001")"},
                                    {DType::f64, R"("-Infinity")"},
                                    {DType::f16, "0.5"},
                                    {DType::u64, "18446744073709551615"},
                                    {DType::i8, "-3"},
                                    {DType::boolean, "true"}}) {
    const auto bytes = parse_fill_value(codec::element_type(dtype), json);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(fill_value_json(codec::element_type(dtype), *bytes, 3), json);
  }
}

TEST(ZarrFillValue, of_text_may_have_any_fitting_length) {
  const auto type = parse_zarr_v2_type("<U3");
  ASSERT_TRUE(type.ok());
  for (const std::string_view json : {R"("")", R"("abc")", "\"\u00e9\u20ac\U0001F600\""}) {
    const auto bytes = parse_fill_value(type->type, json);
    ASSERT_TRUE(bytes.ok()) << json;
    EXPECT_EQ(bytes->size(), 12u);
    EXPECT_EQ(fill_value_json(type->type, *bytes, 2), json);
  }
  EXPECT_EQ(fill<std::uint32_t>(parse_zarr_v2_type("<U1")->type, R"("\u20ac")"), 0x20ACu);
  EXPECT_FALSE(parse_fill_value(type->type, R"("abcd")").ok());
  EXPECT_FALSE(parse_fill_value(type->type, R"("a\u0000b")").ok());
  const std::vector<std::byte> no_character(12, std::byte{0xFF});
  EXPECT_EQ(fill_value_json(type->type, no_character, 2), "\"\uFFFD\uFFFD\uFFFD\"");
}

TEST(ZarrFillValue, values_of_variable_length) {
  using codec::ElementType;
  const ElementType text = ElementType::variable_length_of(ElementType::kText);
  const ElementType bytes = ElementType::variable_length_of(ElementType::kBytes);
  const ElementType numbers = ElementType::variable_length_of(ElementType::kNumbers, DType::f32);
  const std::vector<std::byte> hello = {std::byte{'h'}, std::byte{0xC3}, std::byte{0xA9}};
  const std::vector<std::byte> three = {std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(parse_fill_value(text, R"("h\u00e9")").value(), hello);
  EXPECT_EQ(parse_fill_value(text, fill_value_json(text, hello, 3)).value(), hello);
  EXPECT_EQ(parse_fill_value(bytes, R"("AQID")").value(), three);
  EXPECT_EQ(parse_fill_value(bytes, "[1, 2, 3]").value(), three);
  EXPECT_EQ(fill_value_json(bytes, three, 3), R"("AQID")");
  for (const ElementType& type : {text, bytes, numbers}) {
    for (const char* empty : {R"("")", "0", "null"})
      EXPECT_EQ(parse_fill_value(type, empty).value(), std::vector<std::byte>()) << empty;
    EXPECT_EQ(fill_value_json(type, {}, 2), R"("")");
  }
  EXPECT_EQ(parse_fill_value(numbers, "7").status().message(),
            "fill value 7 is not supported: missing lists of numbers can only be empty");
  EXPECT_EQ(parse_fill_value(text, "7").status().message(), "fill value 7 does not fit the data type");
  EXPECT_EQ(parse_fill_value(bytes, R"("?")").status().message(),
            R"(fill value "?" does not fit the data type)");
  EXPECT_EQ(parse_fill_value(bytes, "[256]").status().message(),
            "fill value [256] does not fit the data type");
  const std::string longest(1u << 20, 'a');
  EXPECT_TRUE(parse_fill_value(text, format("\"{}\"", longest)).ok());
  const Status too_long = parse_fill_value(text, format("\"{}b\"", longest)).status();
  EXPECT_TRUE(too_long.message().ends_with("… has 1 048 577 bytes (at most 1 048 576 are supported)"))
      << too_long.message();
}

TEST(ZarrTypes, names_of_both_versions) {
  for (const std::string_view name :
       {"|b1", "|i1", "<u2", "<f8", "<c16", "|S7", "|V3", "<U5", "<M8[ns]", "<m8[25s]"}) {
    const auto type = parse_zarr_v2_type(name);
    ASSERT_TRUE(type.ok()) << name;
    EXPECT_EQ(zarr_v2_name(type->type, type->order), name);
    EXPECT_EQ(parse_zarr_v3_type(zarr_v3_name(type->type)).value(), type->type) << name;
  }
  EXPECT_EQ(parse_zarr_v3_type(R"("bfloat16")")->dtype(), DType::bf16);
  EXPECT_EQ(parse_zarr_v3_type(R"("r24")")->bytes, 3u);
  for (const std::string_view name :
       {"", "<f3", "|O", "<f99999999999999999999", "<M8", "<M8[x]", "f4", "|S0"}) {
    EXPECT_FALSE(parse_zarr_v2_type(name).ok()) << name;
  }
}

TEST(ZarrMetadata, bare_words_of_python_are_quoted) {
  EXPECT_EQ(quote_bare_numbers(R"({"a": NaN, "b": [-Infinity, Infinity], "NaN \" NaN": 1})"),
            R"({"a": "NaN", "b": ["-Infinity", "Infinity"], "NaN \" NaN": 1})");
}

TEST(ZarrMetadata, variable_length_types_round_trip) {
  const auto v2 = [](std::string_view filter) {
    return format(
        R"({{"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": "|O", "fill_value": 0, "order": "C",
                      "filters": [{}], "compressor": {{"id": "zlib", "level": 1}}}})",
        filter);
  };
  const std::pair<const char*, codec::ElementType> filters[] = {
      {R"({"id": "vlen-utf8"})", codec::ElementType::variable_length_of(codec::ElementType::kText)},
      {R"({"id": "vlen-bytes"})", codec::ElementType::variable_length_of(codec::ElementType::kBytes)},
      {R"({"id": "vlen-array", "dtype": "<f4"})",
       codec::ElementType::variable_length_of(codec::ElementType::kNumbers, DType::f32)}};
  for (const auto& [filter, type] : filters) {
    const auto parsed = parse_zarr_v2(v2(filter), "", "x");
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    EXPECT_EQ(parsed->type, type);
    EXPECT_EQ(parsed->pipeline.codecs.size(), 1u);
    EXPECT_EQ(parse_zarr_v2(to_json(*parsed), "", "x").value(), *parsed);
  }
  EXPECT_FALSE(parse_zarr_v2(v2(R"({"id": "json2"})"), "", "x").ok());
  EXPECT_FALSE(parse_zarr_v2(v2(R"({"id": "vlen-array", "dtype": ">f4"})"), "", "x").ok());
  const auto v3 = [](std::string_view type, std::string_view codec) {
    return format(
        R"({{"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "{}", "fill_value": "",
                      "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2]}}}},
                      "chunk_key_encoding": {{"name": "default"}}, "codecs": [{{"name": "{}"}}, {{"name": "crc32c"}}]}})",
        type, codec);
  };
  const auto text = parse_zarr_v3(v3("string", "vlen-utf8"), "x");
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  EXPECT_EQ(parse_zarr_v3(to_json(*text), "x").value(), *text);
  EXPECT_EQ(parse_zarr_v3(v3("string", "bytes"), "x").status().to_string(),
            "x: codecs: 'bytes' does not match the array's type");
  EXPECT_EQ(parse_zarr_v3(v3("int32", "vlen-utf8"), "x").status().code(), Code::invalid);
}

}  // namespace
}  // namespace stoker::arrays
