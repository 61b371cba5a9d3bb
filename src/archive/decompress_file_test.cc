#include "archive/decompress_file.h"

#include <gmock/gmock.h>
#include <isa-l.h>
#include <zstd.h>

namespace stoker::archive {
namespace {

std::string by_zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

std::string by_gzip(const std::string& text) {
  std::string packed(text.size() + 1000, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
  stream.avail_out = static_cast<std::uint32_t>(packed.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  packed.resize(stream.total_out);
  return packed;
}

// A frame that decompressors skip, of the given size field.
std::string skippable(const std::string& content, std::uint32_t size) {
  std::string frame = "\x5C\x2A\x4D\x18";
  for (int i = 0; i < 4; ++i) frame += static_cast<char>(size >> (8 * i));
  return frame + content;
}

class Expand : public ::testing::Test {
 protected:
  Result<File> expand(const std::string& stored, std::optional<ByteCount> most = std::nullopt) {
    EXPECT_TRUE(write_file(file(), stored).ok());
    NoProgress progress;
    return decompress_file(File::open_read(file()).value(), {folder_.path(), most}, progress);
  }
  static std::string text_of(const File& file) {
    std::string text(file.size().value(), '\0');
    EXPECT_TRUE(file.read_at(0, std::as_writable_bytes(std::span(text))).ok());
    return text;
  }
  Path file() const { return folder_.path() / "x"; }

  TempDirectory folder_;
  std::string content_ = [] {
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += std::to_string(i);
    return text;
  }();
};

TEST_F(Expand, decompresses_and_leaves_no_file_name) {
  for (const std::string& packed : {by_zstd(content_), by_gzip(content_), by_zstd("a") + by_zstd("b")}) {
    const auto file = expand(packed);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(text_of(*file), packed.size() > 100 ? content_ : "ab");
    EXPECT_EQ(list_directory(folder_.path()).value(), std::vector<std::string>{"x"});
  }
}

TEST_F(Expand, returns_an_uncompressed_file_unchanged) {
  const auto file = expand("plain");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->path(), this->file());
}

TEST_F(Expand, reports_truncated_input) {
  const std::string zstd = by_zstd(content_);
  const std::string gzip = by_gzip(content_);
  EXPECT_EQ(expand(zstd.substr(0, zstd.size() / 2)).status().message(),
            file().string() + ": ends inside a zstd frame, which begins at byte 0");
  EXPECT_EQ(expand(gzip.substr(0, gzip.size() / 2)).status().message(),
            file().string() + ": ends inside gzip data");
}

TEST_F(Expand, skips_the_skippable_frames_of_zstd) {
  const std::string frames =
      skippable("size", 4) + by_zstd("a") + skippable("", 0) + skippable("x", 1) + by_zstd("b");
  const auto file = expand(frames + skippable("end", 3));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(text_of(*file), "ab");
}

TEST_F(Expand, reports_a_skippable_frame_that_reaches_beyond_the_end) {
  EXPECT_EQ(expand(skippable("x", 0xFFFFFFFF)).status().message(),
            file().string() + ": ends inside a zstd frame, which begins at byte 0");
  const std::string whole = by_zstd("a");
  EXPECT_EQ(expand(whole + skippable("x", 2)).status().message(),
            format("{}: ends inside a zstd frame, which begins at byte {}", file(), whole.size()));
}

TEST_F(Expand, reads_gzip_members_and_zeros_and_reports_other_bytes_behind_them) {
  const std::string gzip = by_gzip("a");
  const auto padded = expand(gzip + by_gzip("b") + std::string(1000, '\0'));
  ASSERT_TRUE(padded.ok()) << padded.status().message();
  EXPECT_EQ(text_of(*padded), "ab");
  for (const std::string& garbage : {std::string("x"), std::string("more text"), std::string("\x1Fno")}) {
    const Status status = expand(gzip + garbage).status();
    EXPECT_EQ(status.message(), format("{}: {} {} after the end of the gzip data at byte {}", file(),
                                       garbage.size(), garbage.size() == 1 ? "byte" : "bytes", gzip.size()));
    EXPECT_EQ(status.cure(), format("head -c {} {} > {}", gzip.size(), file(), folder_.path() / "whole-x"));
  }
}

TEST_F(Expand, rejects_other_compressions_by_name_with_a_command) {
  using namespace std::string_literals;
  const std::string frame = "\x04\x22\x4D\x18";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"BZh9", "bzip2 bzip2 -dc"},
      {"\xFD"
       "7zXZ\0"s,
       "xz xz -dc"},
      {"\x1F\x9D\x90", "compress gzip -dc"},
      {"LZIP\1", "lzip lzip -dc"},
      {"\x89LZO\0\r\n"s, "lzop lzop -dc"},
      {frame, "lz4 lz4 -dc"},
      {skippable("x", 1) + frame, "lz4 lz4 -dc"},
      {"\x02\x21\x4C\x18", "lz4 lz4 -dc"},
      {"\x5D\0\0\x80\0"s + std::string(8, '\xFF'), "lzma xz -dc"},
      {"\x5D\0\0\x80\0\1\2\3\0\0\0\0\0"s, "lzma xz -dc"}};
  for (const auto& [content, expected] : files) {
    ASSERT_TRUE(write_file(file(), content).ok());
    const File opened = File::open_read(file()).value();
    EXPECT_EQ(detect_compression(opened).value(), CompressionFormat::none) << expected;
    const Status status = reject_other_compression(opened, "x");
    const std::size_t blank = expected.find(' ');
    EXPECT_EQ(status.message(), format("x: is compressed with {}, but only gzip and zstd are supported",
                                       expected.substr(0, blank)));
    EXPECT_EQ(status.cure(), format("{} {} | zstd -T0 > {}.zst", expected.substr(blank + 1), file(), file()));
  }
  for (const std::string& known : {by_zstd("a"), by_gzip("a"), skippable("x", 1) + by_zstd("a"), "plain"s}) {
    ASSERT_TRUE(write_file(file(), known).ok());
    EXPECT_TRUE(reject_other_compression(File::open_read(file()).value(), "x").ok());
  }
}

TEST_F(Expand, stops_a_decompression_bomb_at_the_limit) {
  const std::string zeros(64u << 20, '\0');
  for (const std::string& bomb : {by_zstd(zeros), by_gzip(zeros)}) {
    const Status status = expand(bomb, 2_MiB).status();
    EXPECT_EQ(status.code(), Code::no_space);
    EXPECT_EQ(status.message(), file().string() + ": decompresses to over 2.10 MB, more than the free space");
  }
}

}  // namespace
}  // namespace stoker::archive
