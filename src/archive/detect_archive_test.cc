#include "archive/detect_archive.h"

#include <gmock/gmock.h>

namespace stoker::archive {
namespace {

const std::string kEmptyZip = "PK\x05\x06" + std::string(18, '\0');

Result<ArchiveFormat> format_of(const std::string& name, const std::string& content) {
  const TempDirectory folder;
  EXPECT_TRUE(write_file(folder / name, content).ok());
  return detect_archive(File::open_read(folder / name).value(), name);
}

TEST(DetectArchive, the_content_decides) {
  const std::string header = std::string(257, 'x') + "ustar" + std::string(250, '\0');
  EXPECT_EQ(format_of("x", header).value(), ArchiveFormat::tar);
  EXPECT_EQ(format_of("x", kEmptyZip).value(), ArchiveFormat::zip);
  EXPECT_EQ(format_of("x", "\x1F\x8B").value(), ArchiveFormat::compressed_tar);
  EXPECT_EQ(format_of("x", "\x28\xB5\x2F\xFD").value(), ArchiveFormat::compressed_tar);
  EXPECT_EQ(format_of("x", std::string("\x50\x2A\x4D\x18\4\0\0\0size\x28\xB5\x2F\xFD", 16)).value(),
            ArchiveFormat::compressed_tar);
  EXPECT_EQ(format_of("x.txt", "text").value(), ArchiveFormat::none);
  EXPECT_EQ(format_of("x.txt", "").value(), ArchiveFormat::none);
}

TEST(DetectArchive, a_zip_archive_may_begin_anywhere) {
  EXPECT_EQ(format_of("x.exe", std::string(100'000, 'x') + kEmptyZip).value(), ArchiveFormat::zip);
  EXPECT_EQ(format_of("x.zip", kEmptyZip.substr(1)).value(), ArchiveFormat::none);
}

TEST(DetectArchive, an_old_tar_with_a_zip_archive_as_its_member_is_a_tar) {
  EXPECT_EQ(format_of("x.tar", std::string(1024, 'x') + kEmptyZip).value(), ArchiveFormat::tar);
  EXPECT_EQ(format_of("x.tar", "").value(), ArchiveFormat::tar);
}

TEST(DetectArchive, refuses_other_compressions) {
  EXPECT_EQ(format_of("x.tar.lz4", "\x04\x22\x4D\x18").status().message(),
            "x.tar.lz4: is compressed with lz4, but only gzip and zstd are supported");
  EXPECT_EQ(format_of("x.tar", "BZh9").status().code(), Code::invalid);
}

}  // namespace
}  // namespace stoker::archive
