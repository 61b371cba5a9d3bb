#include "base/hashes/file_hash.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker {
namespace {

std::string hashed(std::string_view name, std::string_view text, std::size_t piece = 7) {
  std::optional<FileHash> hash = FileHash::make(name);
  if (!hash) return "unknown";
  for (std::size_t at = 0; at < text.size(); at += piece)
    hash->update(std::as_bytes(std::span(text.substr(at, piece))));
  return hash->finish();
}

TEST(FileHash, matches_other_implementations) {
  EXPECT_EQ(hashed("md5", ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hashed("md5", "The quick brown fox jumps over the lazy dog"), "9e107d9d372bb6826bd81d3542a419d6");
  EXPECT_EQ(hashed("sha1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hashed("sha256", "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hashed("sha3_256", "abc"), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
  EXPECT_EQ(hashed("blake2s", "abc"), "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982");
}

TEST(FileHash, computes_xxh64_in_pieces_of_any_size) {
  EXPECT_EQ(hashed("xxh64", ""), "ef46db3751d8e999");
  EXPECT_EQ(hashed("xxh64", "abc"), "44bc2cf5ad770999");
  const std::string text = "Nobody inspects the spammish repetition, nor the many that follow it in a row";
  const std::string whole = "1aeaab6a402dd98e";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(hashed("xxh64", text, piece), whole);
}

TEST(FileHash, is_empty_for_an_unknown_name) {
  EXPECT_FALSE(FileHash::make("xxh3_64").has_value());
  EXPECT_FALSE(FileHash::make("shake_128").has_value());
  EXPECT_FALSE(FileHash::make("").has_value());
}

}  // namespace
}  // namespace stoker
