#include "rank/venv/node_venv.h"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// Creates environments with a fake pip that installs everything at once.
constexpr std::string_view kPython = R"(#!/bin/sh
case "$1" in
  -c) echo 3.11 ;;
  -m) mkdir -p "$3/bin" && printf '#!/bin/sh\n' > "$3/bin/python" && chmod +x "$3/bin/python" ;;
esac
)";

void set_mode(const Path& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0) << path; }

// Two locations in order.
class Venv : public testing::Test {
 protected:
  void SetUp() override {
    for (const Path& folder : {first, second, box_ / "bin"}) {
      ASSERT_TRUE(make_directory(folder).ok());
      set_mode(folder, 0755);
    }
    ASSERT_TRUE(write_file(box_ / "bin/python3", kPython).ok());
    set_mode(box_ / "bin/python3", 0755);
    ASSERT_TRUE(write_file(box_ / "requirements.txt", "numpy\n").ok());
  }

  Result<NodeVenv> try_to_make() const {
    const VenvRequest request{.requirements = box_ / "requirements.txt",
                              .wheelhouse = {},
                              .environment = {{"PATH", (box_ / "bin").string() + ":/usr/bin:/bin"},
                                              {"SLURM_TMPDIR", first.string()},
                                              {"TMPDIR", second.string()}}};
    return make_venv(request, Deadline::after(60s));
  }
  NodeVenv make() const {
    auto made = try_to_make();
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *made : NodeVenv{};
  }
  // It is created in the second location, with the reason for skipping the first.
  void expect_passed_over(const std::string& why) const {
    const NodeVenv made = make();
    EXPECT_TRUE(made.is_new);
    EXPECT_EQ(made.folder.parent_path(), second);
    EXPECT_EQ(made.note, format("not in {}: {}", first, why));
  }

  const TempDirectory box_;
  const Path first = box_ / "first";
  const Path second = box_ / "second";
};

TEST_F(Venv, is_reused_and_private_for_any_umask) {
  const mode_t before = ::umask(0);
  const NodeVenv made = make();
  ::umask(before);
  EXPECT_TRUE(made.is_new);
  EXPECT_EQ(made.folder.parent_path(), first);
  EXPECT_EQ(made.note, "");
  struct stat info{};
  ASSERT_EQ(::lstat(made.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const NodeVenv again = make();
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.folder, made.folder);
}

TEST_F(Venv, shared_folder_gets_a_private_subfolder) {
  set_mode(first, 01777);
  const NodeVenv made = make();
  const Path own = first / format("stoker-{}", ::geteuid());
  EXPECT_EQ(made.folder.parent_path(), own);
  EXPECT_EQ(made.note, "");
  EXPECT_FALSE(make().is_new);
  set_mode(own, 0777);
  expect_passed_over(format("{}: belongs to another user, or other users can write to it", own));
}

TEST_F(Venv, folder_without_sticky_bit_is_skipped) {
  set_mode(first, 0777);
  expect_passed_over(format("{}: any user can rename its files (no sticky bit)", first));
}

TEST_F(Venv, writable_environment_is_skipped) {
  const Path folder = make().folder;
  set_mode(folder, 0777);
  expect_passed_over(format("{}: belongs to another user, or other users can write to it", folder));
}

TEST_F(Venv, environment_of_a_different_user_is_skipped) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a folder to another user needs root";
  const Path folder = make().folder;
  ASSERT_EQ(::chown(folder.c_str(), 12345, 12345), 0);
  expect_passed_over(format("{}: belongs to another user, or other users can write to it", folder));
}

TEST_F(Venv, symbolic_link_is_skipped) {
  const Path folder = make().folder;
  ASSERT_TRUE(rename_path(folder, first / "aside").ok());
  std::filesystem::create_directory_symlink(first / "aside", folder);
  expect_passed_over(format("{}: belongs to another user, or other users can write to it", folder));
}

TEST_F(Venv, lock_that_is_a_link_is_not_followed) {
  const Path lock = make().folder.string() + ".lock";
  ASSERT_TRUE(remove_file(lock).ok());
  std::filesystem::create_symlink(box_ / "victim", lock);
  expect_passed_over(format("{}: too many levels of symbolic links", lock));
  EXPECT_FALSE(path_exists(box_ / "victim"));
}

}  // namespace
}  // namespace stoker::rank
