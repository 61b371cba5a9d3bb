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
            file().string() + ": ends inside a zstd frame");
  EXPECT_EQ(expand(gzip.substr(0, gzip.size() / 2)).status().message(),
            file().string() + ": ends inside gzip data");
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
