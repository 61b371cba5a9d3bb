#include "archive/zip.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/hashes/crc32.h"

namespace stoker::archive {
namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  return text;
}

const std::string kName = "a/b.txt";
const std::string kNothing;

// One stored member "a/b.txt" of the bytes "hello", CRC-32 3610a686, and its directory.
struct ZipParts {
  std::string member;
  std::string directory;
};

ZipParts parts_of(std::uint64_t flags, const std::string& extra) {
  const std::string common = little_endian(flags, 2) + little_endian(0, 2) + little_endian(0, 4) +
                             little_endian(0x3610A686, 4) + little_endian(5, 4) + little_endian(5, 4) +
                             little_endian(kName.size(), 2) + little_endian(extra.size(), 2);
  return {.member = little_endian(0x04034B50, 4) + little_endian(20, 2) + common + kName + extra + "hello",
          .directory = little_endian(0x02014B50, 4) + little_endian(20, 2) + little_endian(20, 2) + common +
                       little_endian(0, 14) + kName + extra};
}

std::string end_record(std::uint64_t directory_bytes, std::uint64_t directory_offset) {
  return little_endian(0x06054B50, 4) + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(directory_bytes, 4) + little_endian(directory_offset, 4) + little_endian(0, 2);
}

std::string small_zip(std::uint64_t flags = 0, const std::string& extra = kNothing) {
  const ZipParts parts = parts_of(flags, extra);
  return parts.member + parts.directory + end_record(parts.directory.size(), parts.member.size());
}

// All fields of the usual end record are marked, also the volumes.
std::string zip64(std::uint64_t directory_offset, std::uint64_t volumes) {
  const ZipParts parts = parts_of(0, kNothing);
  const std::string members = parts.member + parts.directory;
  const std::string record = little_endian(0x06064B50, 4) + little_endian(44, 8) + little_endian(45, 2) +
                             little_endian(45, 2) + little_endian(0, 8) + little_endian(1, 8) +
                             little_endian(1, 8) + little_endian(parts.directory.size(), 8) +
                             little_endian(directory_offset, 8);
  const std::string locator = little_endian(0x07064B50, 4) + little_endian(0, 4) +
                              little_endian(members.size(), 8) + little_endian(volumes, 4);
  return members + record + locator + little_endian(0x06054B50, 4) + std::string(16, '\xFF') +
         little_endian(0, 2);
}

std::uint64_t directory_offset() { return parts_of(0, kNothing).member.size(); }

std::string unicode_path(const std::string& of, const std::string& name) {
  const std::uint32_t crc = crc32(std::as_bytes(std::span(of)));
  return little_endian(0x7075, 2) + little_endian(5 + name.size(), 2) + "\1" + little_endian(crc, 4) + name;
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

// The content of its only member, or the error.
std::string content_of(const std::string& text) {
  const auto zip = open(text);
  if (!zip.ok()) return std::string(zip.error().message());
  EXPECT_EQ(zip->members().size(), 1u);
  std::string out(zip->members()[0].bytes, '\0');
  const Status read = zip->read(zip->members()[0], std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(!read.ok() || unpacked(*zip, zip->members()[0]).value() == out);
  return read.ok() ? out : std::string(read.message());
}

std::string name_in(const std::string& text) {
  const auto zip = open(text);
  return zip.ok() ? zip->members().at(0).name : std::string(zip.error().message());
}

TEST(Zip, reads_an_archive_behind_other_bytes) {
  for (const std::string& archive : {small_zip(), zip64(directory_offset(), 1)}) {
    for (const std::string& before : {std::string("#!/bin/sh\n"), archive}) {
      EXPECT_EQ(content_of(before + archive), "hello");
      EXPECT_EQ(open(before + archive).value().members()[0].header_offset, before.size());
    }
  }
}

TEST(Zip, reads_absolute_offsets_behind_other_bytes) {
  const ZipParts parts = parts_of(0, kNothing);
  std::string directory = parts.directory;
  directory.replace(42, 4, little_endian(10, 4));
  EXPECT_EQ(content_of("#!/bin/sh\n" + parts.member + directory +
                       end_record(directory.size(), 10 + parts.member.size())),
            "hello");
}

TEST(Zip, reads_a_directory_with_a_signature_behind_it) {
  const ZipParts parts = parts_of(0, kNothing);
  EXPECT_EQ(content_of(parts.member + parts.directory + little_endian(0x05054B50, 4) + little_endian(0, 2) +
                       end_record(parts.directory.size(), parts.member.size())),
            "hello");
}

TEST(Zip, refuses_offsets_that_are_negative_or_too_large) {
  const ZipParts parts = parts_of(0, kNothing);
  const std::string before = "#!/bin/sh\n" + parts.member;
  const std::string negative = parts.directory + end_record(parts.directory.size(), before.size() + 1);
  EXPECT_EQ(content_of(before + negative), "x.zip: its directory reaches beyond the end");
  EXPECT_EQ(content_of(zip64(~std::uint64_t{0}, 1)), "x.zip: its directory reaches beyond the end");
  const std::string large = little_endian(1, 2) + little_endian(8, 2) + std::string(8, '\xFF');
  std::string directory = parts_of(0, large).directory;
  directory.replace(42, 4, std::string(4, '\xFF'));
  EXPECT_EQ(content_of(before + directory + end_record(directory.size(), parts.member.size())),
            "x.zip: member 'a/b.txt': reaches beyond the end");
}

TEST(Zip, reads_an_end_record_whose_fields_are_all_in_the_zip64_record) {
  EXPECT_EQ(content_of(zip64(directory_offset(), 1)), "hello");
}

TEST(Zip, refuses_one_of_several_volumes) {
  const std::string error = "x.zip: is one of several volumes, which is not supported";
  EXPECT_EQ(content_of(zip64(directory_offset(), 2)), error);
  std::string text = small_zip();
  text[text.size() - 18] = 1;
  EXPECT_EQ(content_of(text), error);
}

TEST(Zip, takes_a_name_from_the_unicode_path_of_the_same_member) {
  EXPECT_EQ(name_in(small_zip(0, unicode_path(kName, "a/\xC3\xA4.txt"))), "a/\xC3\xA4.txt");
  EXPECT_EQ(name_in(small_zip(0, unicode_path("renamed", "a/\xC3\xA4.txt"))), kName);
  EXPECT_EQ(name_in(small_zip(1u << 11, unicode_path(kName, "a/\xC3\xA4.txt"))), kName);
  EXPECT_EQ(name_in(small_zip(0, unicode_path(kName, ""))), kName);
  EXPECT_EQ(open(small_zip(0, unicode_path(kName, "../x"))).value().members()[0].unsafe, "'..' in the name");
  EXPECT_EQ(content_of(small_zip(0, unicode_path(kName, "x"))), "hello");
}

TEST(Zip, finds_its_directory_behind_a_comment) {
  std::string text = small_zip() + "a comment";
  text[text.size() - 9 - 2] = 9;
  EXPECT_TRUE(open(text).ok());
}

TEST(Zip, refuses_every_truncation) {
  for (const std::string& whole : {small_zip(), "#!/bin/sh\n" + small_zip(), zip64(directory_offset(), 1)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string text = whole.substr(0, length);
      EXPECT_FALSE(open(text).ok()) << length;
    }
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
