#include "parquet/pages/bits.h"

#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "parquet/pages/rle_hybrid.h"

namespace stoker::parquet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Bit after bit, the lowest first.
template <typename T>
std::vector<std::byte> packed(const std::vector<T>& numbers, unsigned width) {
  std::vector<std::byte> bytes((numbers.size() * width + 7) / 8);
  for (std::size_t i = 0; i < numbers.size() * width; ++i) {
    if ((std::uint64_t{numbers[i / width]} >> i % width & 1) != 0) bytes[i / 8] |= std::byte{1} << i % 8;
  }
  return bytes;
}

template <typename T>
std::vector<T> chosen(std::size_t count, unsigned width) {
  std::mt19937_64 chance(width);
  std::vector<T> numbers(count);
  for (T& number : numbers) number = width == 0 ? 0 : static_cast<T>(chance() >> (64 - width));
  return numbers;
}

template <typename T>
void expect_every_width() {
  for (unsigned width = 0; width <= std::numeric_limits<T>::digits; ++width) {
    for (const std::size_t count : {0, 1, 7, 8, 9, 31, 32, 33, 100}) {
      const std::vector<T> numbers = chosen<T>(count, width);
      std::vector<T> found(count);
      unpack_bits(packed(numbers, width), width, std::span(found));
      EXPECT_EQ(found, numbers) << count << " of " << width << " bits";
    }
  }
}

TEST(ParquetBits, numbers_of_every_width) {
  expect_every_width<std::uint8_t>();
  expect_every_width<std::uint32_t>();
  expect_every_width<std::uint64_t>();
}

TEST(ParquetBits, behind_the_end_are_zeros) {
  const std::vector<std::byte> bytes(2, std::byte{0xFF});
  std::vector<std::uint32_t> found(40, 1);
  unpack_bits(bytes, 12, std::span(found));
  EXPECT_EQ(found[0], 0xFFFu);
  EXPECT_EQ(found[1], 0xFu);
  EXPECT_THAT(std::span(found).subspan(2), Each(0u));
}

// A run of 5 times 3, then 16 packed numbers of 3 bits: 0 to 7 twice.
const std::vector<std::byte> kHybrid = [] {
  std::vector<std::byte> bytes = {std::byte{5 << 1}, std::byte{3}, std::byte{2 << 1 | 1}};
  std::vector<std::uint32_t> numbers(16);
  for (unsigned i = 0; i < 16; ++i) numbers[i] = i % 8;
  const auto groups = packed(numbers, 3);
  bytes.insert(bytes.end(), groups.begin(), groups.end());
  return bytes;
}();

TEST(ParquetHybrid, is_taken_in_pieces_of_any_size) {
  for (std::size_t step = 1; step <= 21; ++step) {
    RleHybridDecoder numbers(kHybrid, 3);
    std::vector<std::uint32_t> found(21);
    for (std::size_t at = 0; at < found.size(); at += step)
      ASSERT_TRUE(numbers.read(std::span(found).subspan(at, std::min(step, found.size() - at))));
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i < 5 ? 3 : (i - 5) % 8) << step;
    std::uint8_t more = 0;
    EXPECT_FALSE(numbers.read(std::span(&more, 1)));
  }
}

TEST(ParquetHybrid, reads_a_run_without_its_numbers) {
  EXPECT_EQ(RleHybridDecoder(kHybrid, 3).read_run(5), 3u);
  EXPECT_EQ(RleHybridDecoder(kHybrid, 3).read_run(6), std::nullopt);  // it ends before
  EXPECT_EQ(RleHybridDecoder(std::span(kHybrid).subspan(2), 3).read_run(1), std::nullopt);
  EXPECT_EQ(RleHybridDecoder({}, 3).read_run(1), std::nullopt);
  RleHybridDecoder numbers(kHybrid, 3);
  EXPECT_EQ(numbers.read_run(4), 3u);
  std::vector<std::uint8_t> rest(3);
  ASSERT_TRUE(numbers.read(std::span(rest)));
  EXPECT_THAT(rest, ElementsAre(3, 0, 1));
}

}  // namespace
}  // namespace stoker::parquet
