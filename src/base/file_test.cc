#include "base/file.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(File, a_new_file_replaces_nothing) {
  TempDirectory folder;
  ASSERT_TRUE(write_new_file(folder / "a", "one").ok());
  EXPECT_EQ(write_new_file(folder / "a", "two").code(), Code::exists);
  EXPECT_EQ(*read_file(folder / "a"), "one");
  EXPECT_EQ(list_directory(folder.path())->size(), 1U);
  EXPECT_EQ(write_new_file(folder / "gone/a", "x").code(), Code::not_found);
}

TEST(File, what_is_available_ends_at_the_end_of_the_file) {
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "a", "0123456789").ok());
  const auto file = File::open_read(folder / "a");
  EXPECT_EQ(*file->read_available(0, 4), "0123");
  EXPECT_EQ(*file->read_available(6, 100), "6789");
  EXPECT_EQ(*file->read_available(10, 4), "");
  EXPECT_EQ(*file->read_available(1000, 4), "");
  EXPECT_FALSE(File::open_read(folder.path())->read_available(0, 4).ok());
}

TEST(File, replacing_a_file_is_atomic_and_leaves_no_temporary_file) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "a", "one").ok());
  ASSERT_TRUE(write_file(box / "a", "two", Durability::synced).ok());
  EXPECT_EQ(*read_file(box / "a"), "two");
  EXPECT_THAT(*list_directory(box.path()), testing::ElementsAre("a"));
}

TEST(File, a_failed_replace_names_the_given_file) {
  TempDirectory box;
  const Path path = box / "none/a";
  EXPECT_EQ(write_file(path, "x").message(), path.string() + ": no such file or directory");
}

TEST(File, a_failed_replace_leaves_no_temporary_file) {
  TempDirectory box;
  ASSERT_TRUE(make_directory(box / "a").ok());
  ASSERT_TRUE(write_file(box / "a" / "x", "").ok());
  const Status status = write_file(box / "a", "text");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(*list_directory(box.path()), testing::ElementsAre("a"));
}

TEST(File, errors_name_the_path) {
  TempDirectory box;
  EXPECT_EQ(read_file(box / "gone").status().message(),
            (box / "gone").string() + ": no such file or directory");
  EXPECT_EQ(read_file(box.path()).status().message(), box.path().string() + ": is a directory");
  ASSERT_TRUE(write_file(box / "big", std::string(100, 'x')).ok());
  EXPECT_EQ(read_file(box / "big", ByteCount{99}).status().message(),
            (box / "big").string() + ": larger than 99 B");
}

TEST(File, opening_a_pipe_does_not_block) {
  TempDirectory box;
  ASSERT_EQ(::mkfifo((box / "pipe").c_str(), 0600), 0);
  const std::string message = (box / "pipe").string() + ": expected a file, got a pipe";
  EXPECT_EQ(read_file(box / "pipe").status().message(), message);
  EXPECT_EQ(File::open_regular(box / "pipe").status().message(), message);
}

TEST(File, short_read_reports_the_end_of_the_file) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "a", "12345").ok());
  const auto file = File::open_read(box / "a");
  std::byte buffer[4];
  EXPECT_TRUE(file->read_at(1, buffer).ok());
  const Status status = file->read_at(3, buffer);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.message(), (box / "a").string() + ": ends at byte 5, expected at least 7");
}

TEST(File, create_new_and_make_directory_refuse_what_exists) {
  TempDirectory box;
  ASSERT_TRUE(File::create_new(box / "a").ok());
  EXPECT_EQ(File::create_new(box / "a").status().code(), Code::exists);
  ASSERT_TRUE(make_directory(box / "d").ok());
  EXPECT_EQ(make_directory(box / "d").code(), Code::exists);
}

TEST(File, mapped_file_shows_its_bytes_and_may_be_empty) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "a", "abc").ok());
  ASSERT_TRUE(write_file(box / "empty", "").ok());
  EXPECT_EQ(MappedFile::open(box / "a")->bytes().size(), 3u);
  EXPECT_TRUE(MappedFile::open(box / "empty")->bytes().empty());
}

TEST(File, a_full_disk_gives_no_space) {
  auto file = File::open_append("/dev/full");
  ASSERT_TRUE(file.ok());
  const Status status = file->write("x");
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_EQ(status.message(), "/dev/full: no space left on device");
}

}  // namespace
}  // namespace stoker
