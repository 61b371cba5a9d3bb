#include "base/hash.h"

#include <gtest/gtest.h>

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

TEST(Hash, digest_text_reads_back_and_nothing_else_does) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(*parse_digest(hex(digest)), digest);
  EXPECT_FALSE(parse_digest("ba78"));
  EXPECT_FALSE(parse_digest(std::string(64, 'g')));
}

TEST(Hash, crc32c_matches_rfc_3720_and_adds_up) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
}

}  // namespace
}  // namespace stoker
