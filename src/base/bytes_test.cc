#include "stoker/bytes.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Bytes, reads_decimal_and_binary_units) {
  EXPECT_EQ(parse_bytes("64GB")->value, 64'000'000'000u);
  EXPECT_EQ(parse_bytes("4 MiB")->value, 4u << 20);
  EXPECT_EQ(parse_bytes("1.5kb")->value, 1500u);
  EXPECT_EQ(parse_bytes("0B")->value, 0u);
}

TEST(Bytes, refuses_missing_units_and_invalid_text) {
  EXPECT_EQ(parse_bytes("64").status().message(), "'64' has no unit (write 64GB, 64MiB, ...)");
  EXPECT_EQ(parse_bytes("lots").status().message(), "'lots' is not a byte count (such as 64GB or 4MiB)");
  EXPECT_EQ(parse_bytes("-1GB").status().message(), "'-1GB' is not a byte count (such as 64GB or 4MiB)");
  EXPECT_EQ(parse_bytes("99999999PB").status().message(), "'99999999PB' exceeds the address space");
}

TEST(Bytes, exact_text_reads_back) {
  for (std::uint64_t n : {0ull, 1ull, 1025ull, 4ull << 20, 64'000'000'000ull}) {
    EXPECT_EQ(parse_bytes(to_text(ByteCount{n}))->value, n);
  }
  EXPECT_EQ(to_text(4_MiB), "4MiB");
}

TEST(Bytes, rounded_has_three_digits) {
  EXPECT_EQ(rounded({921}), "921 B");
  EXPECT_EQ(rounded({5'412'000'000}), "5.41 GB");
  EXPECT_EQ(rounded({99'960'000}), "100 MB");
  EXPECT_EQ(rounded({999'999}), "1.00 MB");
}

}  // namespace
}  // namespace stoker
