#include "base/hashes/crc32.h"

#include <string_view>

#include <gmock/gmock.h>

namespace stoker {
namespace {

TEST(Crc32, matches_rfc_1952_and_can_be_combined) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  EXPECT_EQ(crc32(bytes("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytes("6789"), crc32(bytes("12345"))), 0xCBF43926u);
  EXPECT_EQ(crc32({}), 0u);
}

}  // namespace
}  // namespace stoker
