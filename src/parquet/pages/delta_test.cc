#include "parquet/pages/delta.h"

#include <gmock/gmock.h>

#include "codec/filters/unpack.h"
#include "parquet/pages/page.h"
#include "parquet/pages/rle_hybrid.h"

namespace stoker::parquet {
namespace {

using ::testing::ElementsAre;
using Bytes = std::span<const std::byte>;

// From hexadecimal digits, blanks between them.
std::vector<std::byte> hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  std::string kept(digits);
  std::erase(kept, ' ');
  for (std::size_t i = 0; i < kept.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(kept.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<std::byte> joined(std::initializer_list<std::vector<std::byte>> parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<std::byte> text(std::string_view letters) {
  const Bytes bytes = std::as_bytes(std::span(letters));
  return {bytes.begin(), bytes.end()};
}

// 7, 5, 3, 1, 2, 3, 4, 5: block of 128 in 4 pieces, 8 numbers from 7 on; the least difference is -2.
constexpr std::string_view kEight = "8001 04 08 0E  03 02000000 C03F 000000000000";

TEST(ParquetDelta, numbers_by_their_differences) {
  const auto bytes = joined({hex(kEight), hex("AA")});
  Bytes left = bytes;
  std::vector<std::uint64_t> numbers(8);
  ASSERT_TRUE(decode_deltas(left, numbers));
  EXPECT_THAT(numbers, ElementsAre(7, 5, 3, 1, 2, 3, 4, 5));
  EXPECT_EQ(left.size(), 1u);
  std::vector<std::uint32_t> narrow(8);
  left = bytes;
  ASSERT_TRUE(decode_deltas(left, narrow));
  EXPECT_THAT(narrow, ElementsAre(7, 5, 3, 1, 2, 3, 4, 5));
}

TEST(ParquetDelta, one_number_or_none_is_only_a_header) {
  std::vector<std::uint64_t> numbers(1);
  const auto one = hex("8001 04 01 09");
  Bytes left = one;
  ASSERT_TRUE(decode_deltas(left, numbers));
  EXPECT_THAT(numbers, ElementsAre(static_cast<std::uint64_t>(-5)));
  const auto none = hex("8001 04 00 00");
  left = none;
  ASSERT_TRUE(decode_deltas(left, std::span<std::uint64_t>()));
  EXPECT_TRUE(left.empty());
}

TEST(ParquetDelta, differences_of_64_bits_wrap_around) {
  // 0, then the least int64: packed in 64 bits over a least difference of 0; a piece is 256 bytes.
  auto bytes = joined({hex("8001 04 02 00  00 40000000"), std::vector<std::byte>(256)});
  bytes[10 + 7] = std::byte{0x80};
  Bytes left = bytes;
  std::vector<std::uint64_t> numbers(2);
  ASSERT_TRUE(decode_deltas(left, numbers));
  EXPECT_THAT(numbers, ElementsAre(0, std::uint64_t{1} << 63));
}

TEST(ParquetDelta, rejects_damaged_data) {
  const auto refused = [](std::string_view digits, std::uint64_t count) {
    const auto bytes = hex(digits);
    Bytes left = bytes;
    std::vector<std::uint64_t> numbers(count);
    return !decode_deltas(left, numbers);
  };
  EXPECT_TRUE(refused(kEight, 7));                                         // another count
  EXPECT_TRUE(refused("8001 00 08 0E", 8));                                // no pieces
  EXPECT_TRUE(refused("8001 03 08 0E", 8));                                // that do not divide the block
  EXPECT_TRUE(refused("20 04 08 0E 03 02000000 C03F 000000000000", 8));    // of 8 numbers
  EXPECT_TRUE(refused("8001 04 08 0E 03 41000000 C03F 000000000000", 8));  // of 65 bits
  EXPECT_TRUE(refused("8001 04 08 FFFFFFFFFFFFFFFFFFFF", 8));              // an endless number
  const auto whole = hex(kEight);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Bytes left = Bytes(whole).first(length);
    std::vector<std::uint64_t> numbers(8);
    EXPECT_FALSE(decode_deltas(left, numbers)) << length;
  }
}

// 5, 5, 6, 6: least difference 0, one bit each.
constexpr std::string_view kLengths = "8001 04 04 0A  00 01000000 02000000";

TEST(ParquetDelta, strings_behind_their_lengths) {
  const auto bytes = joined({hex(kLengths), text("HelloWorldFoobarABCDEF")});
  Bytes left = bytes;
  std::vector<std::string_view> strings;
  ASSERT_TRUE(decode_strings(left, 4, strings));
  EXPECT_THAT(strings, ElementsAre("Hello", "World", "Foobar", "ABCDEF"));
  left = Bytes(bytes).first(bytes.size() - 1);
  EXPECT_FALSE(decode_strings(left, 4, strings));
}

TEST(ParquetDelta, strings_that_begin_as_the_one_before) {
  // Shared: 0, 2, 0, 3, so differences 2, -2, 3 over -2: 4, 0, 5 in 3 bits. Rests: 4, 2, 6, 5 over -2: 0,
  // 6, 1.
  const auto shared = hex("8001 04 04 00  03 03000000 440100 000000000000000000");
  const auto rests = hex("8001 04 04 08  03 03000000 700000 000000000000000000");
  const auto bytes = joined({shared, rests, text("axislebabbleyhood")});
  DeltaStrings reader;
  ASSERT_TRUE(reader.read(bytes, 4));
  EXPECT_EQ(reader.joined_bytes(), 4u + 8u);  // "axle", "babyhood"
  codec::RawBytes buffer;
  std::vector<std::string_view> strings;
  reader.join(buffer, strings);
  EXPECT_THAT(strings, ElementsAre("axis", "axle", "babble", "babyhood"));
  // More is shared than there was.
  const auto wrong = joined({hex("8001 04 01 02"), hex("8001 04 01 00")});
  EXPECT_FALSE(DeltaStrings().read(wrong, 1));
}

TEST(ParquetDelta, streams_of_bytes_become_numbers) {
  const auto bytes = hex("AA0011 BB1122 CC2233 DD3344");
  std::vector<std::byte> out(12);
  ASSERT_TRUE(join_streams(bytes, 4, 3, out));
  EXPECT_EQ(out, hex("AABBCCDD 00112233 11223344"));
  EXPECT_FALSE(join_streams(bytes, 4, 4, out));
}

TEST(ParquetLevels, reads_bit_packed_levels_of_early_writers) {
  std::vector<std::uint8_t> levels;
  ASSERT_TRUE(read_levels(hex("053977"), kBitPacked, 7, 8, levels));
  EXPECT_THAT(levels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(read_levels(hex("053977"), kBitPacked, 7, 9, levels));
  ASSERT_TRUE(read_levels(hex("03 88C6FA"), kRleValues, 7, 8, levels));
  EXPECT_THAT(levels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(read_levels(hex("10 07"), kRleValues, 6, 8, levels));  // deeper than there are levels
}

std::string unpacked(codec::ParquetCodec codec, std::string_view packed, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  const Status done = unpack_page(codec, hex(packed), out, "x");
  if (!done.ok()) return std::string(done.message());
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

TEST(ParquetCodecs, legacy_lz4_is_one_of_three_formats) {
  const auto lz4 = [](std::string_view packed, std::size_t bytes) {
    return unpacked(codec::ParquetCodec::lz4, packed, bytes);
  };
  EXPECT_EQ(lz4("00000005 00000006 5068656C6C6F", 5), "hello");                              // Hadoop's
  EXPECT_EQ(lz4("0000000A 00000006 5068656C6C6F 00000006 5068656C6C6F", 10), "hellohello");  // two pieces
  EXPECT_EQ(lz4("00000005 00000006 5068656C6C6F 00000005 00000006 5068656C6C6F", 10), "hellohello");
  EXPECT_EQ(lz4("5068656C6C6F", 5), "hello");                                  // a block
  EXPECT_EQ(lz4("04224D18 604082 05000080 68656C6C6F 00000000", 5), "hello");  // a frame
  EXPECT_EQ(lz4("04224D18 604082 05000080 68656C6C6F 00000000", 4), "x: a page does not unpack to its size");
  EXPECT_EQ(lz4("00000005 00000006 5068656C6C", 5), "x: a page does not unpack to its size");
}

TEST(ParquetCodecs, reads_brotli_if_its_library_is_installed) {
  // Stored uncompressed: a block of 5 bytes, and the end.
  EXPECT_EQ(unpacked(codec::ParquetCodec::brotli, "0B0280 68656C6C6F 03", 5), "hello");
  EXPECT_EQ(unpacked(codec::ParquetCodec::brotli, "0B0280 68656C6C6F 03", 6),
            "x: a page does not unpack to its size");
  EXPECT_EQ(unpacked(codec::ParquetCodec::brotli, "0B0280 68656C", 5),
            "x: a page does not unpack to its size");
}

TEST(ParquetCodecs, rejects_unsupported_codecs_by_name_or_number) {
  EXPECT_EQ(unpacked(codec::ParquetCodec::lzo, "00", 1), "x: is compressed with LZO, which is not supported");
  EXPECT_EQ(unpacked(static_cast<codec::ParquetCodec>(9), "00", 1),
            "x: has an unsupported compression (Parquet's number 9)");
}

}  // namespace
}  // namespace stoker::parquet
