#include "base/hash.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/sha256/lane.h"

namespace stoker {
namespace {

TEST(Hash, sha256_matches_fips_180) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  pieces.update("a");
  pieces.update("bc");
  EXPECT_EQ(pieces.finish(), sha256("abc"));
  EXPECT_EQ(pieces.finish(), sha256(""));
}

TEST(Hash, digest_text_reads_back_and_other_text_is_refused) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(*parse_digest(hex(digest)), digest);
  EXPECT_FALSE(parse_digest("ba78"));
  EXPECT_FALSE(parse_digest(std::string(64, 'g')));
}

TEST(Hash, crc32c_matches_rfc_3720_and_can_be_combined) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
}

// Deterministic pseudorandom bytes.
std::vector<std::byte> noise(std::size_t count) {
  std::mt19937 chance(static_cast<std::mt19937::result_type>(count));
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(chance());
  return bytes;
}

TEST(Hash, sha256_of_a_pair_matches_the_single_hashes) {
  for (std::size_t first : {0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 4096, 100'000}) {
    for (std::size_t second : {0, 55, 56, 64, 127, 4095, 100'001}) {
      const auto a = noise(first), b = noise(second);
      const std::array<Digest, 2> both = sha256_pair(a, b);
      EXPECT_EQ(hex(both[0]), hex(sha256(a))) << first << " beside " << second;
      EXPECT_EQ(hex(both[1]), hex(sha256(b))) << second << " beside " << first;
    }
  }
}

TEST(Sha256Lane, hashes_texts_in_pieces_of_any_size_in_parallel) {
  std::mt19937 chance(7);
  const auto below = [&](std::size_t limit) { return chance() % limit; };
  const auto all = noise(300'000);
  for (int round = 0; round < 200; ++round) {
    Sha256Lane lanes[2];
    std::vector<std::string> expected[2];
    std::size_t begin[2] = {0, 0};
    std::size_t from[2] = {0, 0};  // of the current text
    for (int step = 0; step < 30; ++step) {
      const std::size_t which = below(2);
      constexpr std::size_t kSizes[] = {1, 64, 200, 5000};
      const std::size_t end = begin[which] + below(kSizes[below(4)]);
      lanes[which].add(std::span(all).subspan(begin[which], end - begin[which]));
      begin[which] = end;
      if (below(4) == 0) {
        expected[which].push_back(hex(sha256(std::span(all).subspan(from[which], end - from[which]))));
        from[which] = end;
        lanes[which].end();
      }
      if (below(3) == 0) Sha256Lane::run_both(lanes[0], lanes[1]);
      if (below(9) == 0) lanes[which].run();
    }
    Sha256Lane::run_both(lanes[0], lanes[1]);
    EXPECT_TRUE(lanes[0].is_empty() || lanes[1].is_empty());
    for (std::size_t which : {0, 1}) {
      lanes[which].run();
      std::vector<std::string> found;
      for (const Digest& digest : lanes[which].digests()) found.push_back(hex(digest));
      EXPECT_EQ(found, expected[which]) << round;
    }
  }
}

TEST(Hash, crc32c_of_two_pieces_matches_the_whole) {
  for (std::size_t first : {0, 1, 7, 500, 70'000}) {
    for (std::size_t second : {0, 1, 2, 3, 64, 1000, 65'535, 65'536, 1'000'003}) {
      const auto a = noise(first), b = noise(second);
      EXPECT_EQ(crc32c_combine(crc32c(a), crc32c(b), second), crc32c(b, crc32c(a))) << first << " " << second;
    }
  }
  // More zeros than memory can hold: one shift by 2n equals two shifts by n.
  const std::uint32_t crc = crc32c("123456789");
  const std::uint32_t far = crc32c_combine(crc, 0, std::uint64_t{1} << 40);
  EXPECT_EQ(crc32c_combine(crc, 0, std::uint64_t{1} << 41), crc32c_combine(far, 0, std::uint64_t{1} << 40));
}

TEST(MaskedCrc, is_the_one_of_tensorflow) {
  // What every file of TensorFlow events begins with: a record of 24 bytes.
  EXPECT_EQ(masked_crc(crc32c(std::string("\x18\0\0\0\0\0\0\0", 8))), 0x224B7FA3u);
}

}  // namespace
}  // namespace stoker
