#include "rank/hello/storage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::rank::hello {
namespace {

using ::testing::ElementsAre;

AskedPath asked(const Path& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  AskedPath one{.key = "k", .path = path.string()};
  one.inode = about.st_ino;
  one.changed = about.st_mtim.tv_sec;
  return one;
}

TEST(Storage, a_path_is_there_and_the_same_or_it_is_told_why_not) {
  const TempDirectory box;
  ASSERT_TRUE(write_file(box / "data", "x").ok());
  EXPECT_EQ(look_at_path(asked(box / "data")), "");
  EXPECT_EQ(look_at_path(asked(box.path())), "");
  EXPECT_EQ(look_at_path({.key = "k", .path = (box / "none").string()}), "is not there");
  EXPECT_EQ(look_at_path({.key = "k", .path = (box / "data/below").string()}), "is not there");
  AskedPath other = asked(box / "data");
  other.inode += 1;
  EXPECT_EQ(look_at_path(other), "") << "the same time is enough: not all filesystems keep numbers";
  other.changed -= 100;
  EXPECT_EQ(look_at_path(other), "is another one than where the job was checked: the storage is not shared");
}

TEST(Storage, a_folder_for_writing_is_known_by_what_was_put_into_it) {
  const TempDirectory box;
  AskedPath runs{
      .key = "record.directory", .path = box.path().string(), .is_written = true, .probe = ".probe"};
  EXPECT_EQ(look_at_path(runs), "is another one than where the job was checked: the storage is not shared");
  ASSERT_TRUE(write_file(box / ".probe", "").ok());
  EXPECT_EQ(look_at_path(runs), "");
  if (::geteuid() == 0) return;  // who may write everywhere
  ASSERT_EQ(::chmod(box.path().c_str(), 0500), 0);
  EXPECT_EQ(look_at_path(runs), format("may not be written to by you (user {})", ::getuid()));
  ASSERT_EQ(::chmod(box.path().c_str(), 0700), 0);
}

TEST(Storage, every_path_has_its_answer_and_the_disk_its_room) {
  const TempDirectory box;
  const NodeView view = look_at_storage({asked(box.path()), {.key = "k", .path = "/none/at/all"}},
                                        {{"TMPDIR", box.path().string()}},
                                        Deadline::after(std::chrono::seconds(30)), [] { return true; });
  EXPECT_THAT(view.problems, ElementsAre("", "is not there"));
  EXPECT_EQ(view.local, box.path().string());
  EXPECT_GT(view.local_free, ByteCount{0});
}

}  // namespace
}  // namespace stoker::rank::hello
