#include "netcheck/storage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;

CheckedPath asked(const Path& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  CheckedPath one{.key = "k", .path = path.string()};
  one.inode = about.st_ino;
  one.changed = about.st_mtim.tv_sec;
  return one;
}

TEST(Storage, path_is_identical_or_has_a_problem) {
  const TempDirectory box;
  ASSERT_TRUE(write_file(box / "data", "x").ok());
  EXPECT_EQ(check_path(asked(box / "data")), "");
  EXPECT_EQ(check_path(asked(box.path())), "");
  EXPECT_EQ(check_path({.key = "k", .path = (box / "none").string()}), "is not there");
  EXPECT_EQ(check_path({.key = "k", .path = (box / "data/below").string()}), "is not there");
  CheckedPath other = asked(box / "data");
  other.inode += 1;
  EXPECT_EQ(check_path(other), "") << "the same time is enough: not all filesystems keep numbers";
  other.changed -= 100;
  EXPECT_EQ(check_path(other), "differs from the one on the checking host: the storage is not shared");
}

TEST(Storage, a_folder_for_writing_is_known_by_what_was_put_into_it) {
  const TempDirectory box;
  CheckedPath runs{
      .key = "record.directory", .path = box.path().string(), .is_written = true, .probe = ".probe"};
  EXPECT_EQ(check_path(runs), "differs from the one on the checking host: the storage is not shared");
  ASSERT_TRUE(write_file(box / ".probe", "").ok());
  EXPECT_EQ(check_path(runs), "");
  if (::geteuid() == 0) return;  // root can write everywhere
  ASSERT_EQ(::chmod(box.path().c_str(), 0500), 0);
  EXPECT_EQ(check_path(runs), format("is not writable for you (user {})", ::getuid()));
  ASSERT_EQ(::chmod(box.path().c_str(), 0700), 0);
}

TEST(Storage, every_path_and_the_disk_are_reported) {
  const TempDirectory box;
  const NodeView view = check_storage({asked(box.path()), {.key = "k", .path = "/none/at/all"}},
                                      {{"TMPDIR", box.path().string()}},
                                      Deadline::after(std::chrono::seconds(30)), [] { return true; });
  EXPECT_THAT(view.problems, ElementsAre("", "is not there"));
  EXPECT_EQ(view.local, box.path().string());
  EXPECT_GT(view.local_free, ByteCount{0});
}

}  // namespace
}  // namespace stoker::netcheck
