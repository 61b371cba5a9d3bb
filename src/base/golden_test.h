// Reads the reference values of tests/golden for the tests of this room.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checkout_test.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json.h"

namespace stoker {

inline nlohmann::json golden(const std::string& name) {
  auto text = read_file(in_checkout(Path("tests/golden") / name));
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  return text.ok() ? parse_json<nlohmann::json>(*text) : nlohmann::json();
}

/// Decodes base64 without line breaks.
inline std::string from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return bytes;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// The file of this name in tests/golden/images.json.
inline std::string golden_image(const std::string& name) {
  const nlohmann::json reference = golden("images.json");
  for (const auto& row : reference["images"]) {
    if (row["name"] == name) return from_base64(row["bytes"]);
  }
  ADD_FAILURE() << name;
  return "";
}

/// Short lists are stored in the row under `key`. Long lists are stored as head, tail and SHA-256 over
/// little-endian int64.
template <typename T>
void expect_golden_list(const std::vector<T>& actual, const nlohmann::json& row, const char* key) {
  const std::vector<std::int64_t> list(actual.begin(), actual.end());
  if (row.contains(key)) {
    EXPECT_EQ(list, row[key].get<std::vector<std::int64_t>>());
    return;
  }
  const auto head = row["head"].get<std::vector<std::int64_t>>();
  const auto tail = row["tail"].get<std::vector<std::int64_t>>();
  ASSERT_GE(list.size(), head.size() + tail.size());
  EXPECT_TRUE(std::equal(head.begin(), head.end(), list.begin()));
  EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), list.rbegin()));
  EXPECT_EQ(hex(sha256(std::as_bytes(std::span(list)))), row["sha256_le_i64"].get<std::string>());
}

}  // namespace stoker
