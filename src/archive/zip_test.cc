#include "archive/zip.h"

#include <cstring>

#include <gtest/gtest.h>

namespace stoker::archive {
namespace {

// One stored member "a/b.txt" of the bytes "hello": header, data, directory, end record. CRC-32 3610a686.
std::string small_zip() {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const std::string name = "a/b.txt";
  const std::string common = number(0, 2) + number(0, 2) + number(0, 4) + number(0x3610A686, 4) +
                             number(5, 4) + number(5, 4) + number(name.size(), 2) + number(0, 2);
  const std::string local = number(0x04034B50, 4) + number(20, 2) + common + name + "hello";
  const std::string member = number(0x02014B50, 4) + number(20, 2) + number(20, 2) + common + number(0, 2) +
                             number(0, 2) + number(0, 2) + number(0, 4) + number(0, 4) + name;
  return local + member + number(0x06054B50, 4) + number(0, 2) + number(0, 2) + number(1, 2) + number(1, 2) +
         number(member.size(), 4) + number(local.size(), 4) + number(0, 2);
}

Result<ZipReader> open(const std::string& text) {
  return ZipReader::open(
      [&text](std::uint64_t at, std::span<std::byte> out) -> Status {
        STOKER_CHECK(at <= text.size() && out.size() <= text.size() - at);
        std::memcpy(out.data(), text.data() + at, out.size());
        return {};
      },
      text.size(), "x.zip");
}

Result<std::string> unpacked(const ZipReader& zip, const ZipMember& member) {
  std::string text;
  STOKER_RETURN_IF_ERROR(zip.unpack(member, [&text](std::span<const std::byte> piece) -> Status {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  }));
  return text;
}

TEST(Zip, reads_a_stored_member) {
  const std::string text = small_zip();
  const auto zip = open(text);
  ASSERT_TRUE(zip.ok()) << zip.status().message();
  ASSERT_EQ(zip->members().size(), 1u);
  const ZipMember& member = zip->members()[0];
  EXPECT_EQ(member.name, "a/b.txt");
  std::string out(member.bytes, '\0');
  ASSERT_TRUE(zip->read(member, std::as_writable_bytes(std::span(out))).ok());
  EXPECT_EQ(out, "hello");
  EXPECT_EQ(unpacked(*zip, member).value(), "hello");
}

TEST(Zip, finds_its_directory_behind_a_comment) {
  std::string text = small_zip() + "a comment";
  text[text.size() - 9 - 2] = 9;
  EXPECT_TRUE(open(text).ok());
}

TEST(Zip, refuses_every_truncation) {
  const std::string whole = small_zip();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string text = whole.substr(0, length);
    EXPECT_FALSE(open(text).ok()) << length;
  }
}

TEST(Zip, survives_every_flipped_byte_and_never_gives_wrong_content) {
  const std::string whole = small_zip();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ 1 << bit);
      const auto zip = open(text);
      if (!zip.ok()) continue;
      for (const ZipMember& member : zip->members()) {
        if (!member.is_readable() || member.bytes > 1000) continue;
        std::string out(member.bytes, '\0');
        const bool is_whole = zip->read(member, std::as_writable_bytes(std::span(out))).ok();
        EXPECT_TRUE(!is_whole || out == "hello") << i;
        EXPECT_TRUE(!is_whole || unpacked(*zip, member).value() == out) << i;
      }
    }
  }
}

}  // namespace
}  // namespace stoker::archive
