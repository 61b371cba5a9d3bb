#include "stage/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <zstd.h>

#include "archive/tar.h"
#include "base/process.h"
#include "stage/copy.h"

namespace stoker::stage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A source tree, archives of it made by the system's tar, and a folder to unpack into.
class Box {
 public:
  Box() {
    STOKER_CHECK(make_directories(in("src/bin")).ok() && make_directories(in("out")).ok());
    write("src/bin/run", "#!/bin/sh\n");
    STOKER_CHECK(::chmod(in("src/bin/run").c_str(), 0755) == 0);
    write("src/empty", "");
    write("src/large", std::string(3'000'000, 'x'));
    STOKER_CHECK(::symlink("run", in("src/bin/link").c_str()) == 0);
    STOKER_CHECK(::link(in("src/large").c_str(), in("src/same").c_str()) == 0);
    const timespec times[] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
    STOKER_CHECK(::utimensat(AT_FDCWD, in("src/empty").c_str(), times, 0) == 0);
  }
  Path in(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view text) const {
    STOKER_CHECK(write_file(in(name), text).ok());
  }
  /// Runs a program in the box; false if it is not installed.
  bool run(std::vector<std::string> argv) const {
    Command command;
    command.argv = std::move(argv);
    command.directory = folder_.path();
    const auto done = run_program(command, Deadline::after(std::chrono::seconds(60)));
    return done.ok() && done->exit.ok();
  }
  Result<TransferStats> unpack_all(std::string_view archive,
                                   OutsideLinks links = OutsideLinks::refused) const {
    NoProgress progress;
    return unpack(in(archive), in("out"), {.links = links, .threads = 3}, progress);
  }
  std::vector<std::string> names(std::string_view folder = "out") const {
    return *list_directory(in(folder));
  }

  void expect_whole() const {
    EXPECT_EQ(*read_file(in("out/bin/run")), "#!/bin/sh\n");
    EXPECT_EQ(*read_file(in("out/large")), std::string(3'000'000, 'x'));
    EXPECT_EQ(*read_file(in("out/bin/link")), "#!/bin/sh\n");
    EXPECT_TRUE(std::filesystem::is_symlink(in("out/bin/link")));
    struct stat info{};
    ASSERT_EQ(::stat(in("out/bin/run").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0755u);
    EXPECT_THAT(names(), ElementsAre("bin", "empty", "large", "same"));
  }

 private:
  TempDirectory folder_;
};

TEST(Unpack, a_tar_keeps_links_modes_and_times) {
  const Box box;
  ASSERT_TRUE(box.run({"tar", "-C", "src", "-cf", "a.tar", "."}));
  const auto stats = box.unpack_all("a.tar");
  ASSERT_TRUE(stats.ok()) << stats.status().to_string();
  EXPECT_EQ(stats->files, 5u);
  EXPECT_EQ(stats->bytes, 3'000'010u);
  box.expect_whole();
  struct stat info{};
  ASSERT_EQ(::stat(box.in("out/empty").c_str(), &info), 0);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'600'000'000);
  ASSERT_EQ(::stat(box.in("out/same").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
}

TEST(Unpack, keeps_long_names_and_links_of_every_tar_dialect) {
  for (const char* dialect : {"--format=gnu", "--format=pax"}) {
    const Box box;
    const std::string name(180, 'n');
    ASSERT_TRUE(make_directories(box.in("src/long")).ok());
    box.write("src/long/" + name, "1");
    ASSERT_EQ(::symlink(name.c_str(), box.in("src/long/link").c_str()), 0);
    ASSERT_EQ(::link(box.in("src/long/" + name).c_str(), box.in("src/long/same").c_str()), 0);
    ASSERT_TRUE(box.run({"tar", "-C", "src", dialect, "-cf", "a.tar", "long"}));
    const auto stats = box.unpack_all("a.tar");
    ASSERT_TRUE(stats.ok()) << dialect << stats.status().to_string();
    EXPECT_EQ(*read_file(box.in("out/long/link")), "1");
    EXPECT_EQ(*read_file(box.in("out/long/same")), "1");
  }
}

TEST(Unpack, reads_a_gzipped_tar_with_several_members) {
  const Box box;
  ASSERT_TRUE(box.run({"sh", "-c",
                       "tar -C src -cf a.tar . && head -c 1000000 a.tar | gzip > a.tar.gz && "
                       "tail -c +1000001 a.tar | gzip >> a.tar.gz"}));
  const auto stats = box.unpack_all("a.tar.gz");
  ASSERT_TRUE(stats.ok()) << stats.status().to_string();
  box.expect_whole();
}

std::string zstd_of(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

TEST(Unpack, reads_a_zstd_tar_with_several_frames) {
  const Box box;
  ASSERT_TRUE(box.run({"tar", "-C", "src", "-cf", "a.tar", "."}));
  const std::string tar = *read_file(box.in("a.tar"));
  const std::string skipped("\x50\x2A\x4D\x18\4\0\0\0size", 12);  // as pzstd writes it
  box.write("a.tar.zst", skipped + zstd_of(tar.substr(0, 100'000)) + zstd_of(tar.substr(100'000)));
  const auto stats = box.unpack_all("a.tar.zst");
  ASSERT_TRUE(stats.ok()) << stats.status().to_string();
  box.expect_whole();
}

TEST(Unpack, a_torn_or_damaged_zstd_leaves_nothing) {
  const Box box;
  ASSERT_TRUE(box.run({"tar", "-C", "src", "-cf", "a.tar", "."}));
  const std::string packed = zstd_of(*read_file(box.in("a.tar")));
  box.write("torn.tar.zst", packed.substr(0, packed.size() - 5));
  EXPECT_THAT(std::string(box.unpack_all("torn.tar.zst").status().message()),
              HasSubstr("torn.tar.zst: ends inside a zstd frame"));
  box.write("bad.tar.zst", packed.substr(0, 20) + std::string(20, 'x') + packed.substr(40));
  EXPECT_EQ(box.unpack_all("bad.tar.zst").status().code(), Code::corrupt);
  EXPECT_THAT(box.names(), IsEmpty());
}

TEST(Unpack, a_torn_or_damaged_gzip_leaves_nothing) {
  const Box box;
  ASSERT_TRUE(box.run(
      {"sh", "-c",
       "tar -C src -czf a.tgz . && head -c 1000 a.tgz > torn.tgz && "
       "{ head -c 500 a.tgz; head -c 200 /dev/zero | tr '\\0' '\\377'; tail -c +701 a.tgz; } > bad.tgz"}));
  EXPECT_THAT(std::string(box.unpack_all("torn.tgz").status().message()),
              HasSubstr("torn.tgz: ends inside gzip data"));
  EXPECT_EQ(box.unpack_all("bad.tgz").status().code(), Code::corrupt);
  EXPECT_THAT(box.names(), IsEmpty());
}

TEST(Unpack, reports_files_that_are_not_supported_archives) {
  const Box box;
  box.write("a.tar", "this is text, and long enough to be recognized\n");
  EXPECT_EQ(box.unpack_all("a.tar").status().code(), Code::corrupt);
  box.write("a.tar.xz", std::string("\xfd"
                                    "7zXZ\0",
                                    6) +
                            "...");
  EXPECT_THAT(box.unpack_all("a.tar.xz").status().to_string(),
              StartsWith(format("a.tar.xz: is compressed with xz, but only gzip and zstd are supported\n"
                                "  try: xz -dc {} | zstd -T0 > {}",
                                box.in("a.tar.xz"), box.in("a.tar.zst"))));
  EXPECT_EQ(box.unpack_all("none.tar").status().code(), Code::not_found);
  EXPECT_EQ(box.unpack_all("src").status().message(),
            "src: is not a file and cannot be unpacked (stage.unpack)");
  EXPECT_THAT(box.names(), IsEmpty());
}

TEST(Unpack, refuses_members_outside_and_leaves_nothing) {
  const Box box;
  ASSERT_TRUE(::symlink("/etc", box.in("src/bin/out").c_str()) == 0);
  ASSERT_TRUE(box.run({"tar", "-C", "src", "-cf", "a.tar", "."}));
  EXPECT_EQ(box.unpack_all("a.tar").status().message(),
            "a.tar: the link 'bin/out' to '/etc' points outside the folder (stage.outside_links)");
  ASSERT_TRUE(box.run(
      {"tar", "-cPf", "b.tar", "src/../../" + box.in("x").parent_path().filename().string() + "/src"}));
  EXPECT_THAT(std::string(box.unpack_all("b.tar").status().message()),
              HasSubstr("is outside the folder it is unpacked"));
  EXPECT_THAT(box.names(), IsEmpty());
  EXPECT_TRUE(box.unpack_all("a.tar", OutsideLinks::kept).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(box.in("out/bin/out")));
}

TEST(Unpack, a_second_archive_does_not_overwrite_the_first) {
  const Box box;
  ASSERT_TRUE(box.run({"tar", "-C", "src", "-cf", "a.tar", "empty", "bin"}));
  ASSERT_TRUE(box.unpack_all("a.tar").ok());
  EXPECT_THAT(std::string(box.unpack_all("a.tar").status().message()),
              HasSubstr("/out/bin: already exists (two staged items have the same name)"));
  EXPECT_THAT(box.names(), ElementsAre("bin", "empty"));
}

TEST(Copy, copies_a_folder_recursively_and_atomically) {
  const Box box;
  NoProgress progress;
  const auto stats = copy_in(box.in("src/"), box.in("out"), progress);
  ASSERT_TRUE(stats.ok()) << stats.status().to_string();
  EXPECT_EQ(stats->files, 5u);
  EXPECT_THAT(box.names(), ElementsAre("src"));
  EXPECT_EQ(*read_file(box.in("out/src/large")), std::string(3'000'000, 'x'));
  EXPECT_TRUE(std::filesystem::is_symlink(box.in("out/src/bin/link")));
  EXPECT_EQ(copy_in(box.in("none"), box.in("out"), progress).status().code(), Code::not_found);
  EXPECT_THAT(box.names(), ElementsAre("src"));
}

TEST(Copy, refuses_a_file_that_changes_during_the_copy) {
  const Box box;
  class Changing final : public Progress {
   public:
    explicit Changing(Path file) : file_(std::move(file)) {}
    void report(const ProgressState&) override {}
    // Called before each piece is written.
    bool stop_requested() const override {
      auto file = File::open_append(file_);
      EXPECT_TRUE(file.ok() && file->write("more").ok());
      return false;
    }

   private:
    Path file_;
  } changing(box.in("src/large"));
  const Status refused = copy_in(box.in("src/large"), box.in("out"), changing).status();
  EXPECT_EQ(refused.message(), box.in("src/large").string() + ": changed while it was being copied");
  EXPECT_THAT(box.names(), IsEmpty());
}

TEST(Fingerprint, does_not_depend_on_the_source) {
  const Box box;
  ASSERT_TRUE(make_directories(box.in("copied")).ok());
  ASSERT_TRUE(
      box.run({"sh", "-c", "rm src/same && tar -cf a.tar src && tar -cf b.tar src/empty src/bin src/large"}));
  NoProgress progress;
  const auto first = unpack(box.in("a.tar"), box.in("out"), {.threads = 3}, progress);
  const auto copied = copy_in(box.in("src"), box.in("copied"), progress);
  ASSERT_TRUE(first.ok() && copied.ok()) << first.status().to_string() << copied.status().to_string();
  EXPECT_EQ(first->fingerprint, copied->fingerprint);
  // A different order of the members gives the same value, a different byte does not.
  ASSERT_TRUE(make_directories(box.in("second")).ok() && make_directories(box.in("third")).ok());
  EXPECT_EQ(unpack(box.in("b.tar"), box.in("second"), {.threads = 1}, progress)->fingerprint,
            first->fingerprint);
  box.write("src/empty", "x");
  EXPECT_NE(copy_in(box.in("src"), box.in("third"), progress)->fingerprint, first->fingerprint);
}

TEST(FreeSpace, reports_missing_bytes_and_inodes) {
  const Box box;
  const std::string folder = box.in("out").string();
  const std::uint64_t much = std::uint64_t{1} << 60;
  EXPECT_THAT(std::string(check_free_space("a.tar", {.files = 1, .bytes = much}, folder).message()),
              AllOf(StartsWith("a.tar: needs "), EndsWith(" are free in " + folder)));
  EXPECT_TRUE(check_free_space("a.tar", {.files = 1, .bytes = 1}, folder).ok());
}

}  // namespace
}  // namespace stoker::stage
