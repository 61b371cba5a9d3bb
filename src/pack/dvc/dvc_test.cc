#include "pack/dvc/dvc.h"

#include <gmock/gmock.h>

#include "pack/dvc/dvc_read.h"

namespace stoker::pack {
namespace {

// Expected values for the following folder and file, from DVC 3.67.
class Dvc : public ::testing::Test {
 protected:
  void SetUp() override {
    put("images/cat/1.txt", "a\r\nb\n");
    put("images/cat/2.jpg", "xyz");
    put("images/größe/ä b.txt", "ü");
    put("images/.hidden", "");
    put("list.csv", "one file");
    put("images.dvc",
        "outs:\n- md5: 23ec60fe9a18ade66ee76c0371c0e702.dir\n  size: 10\n  nfiles: 4\n  hash: md5\n  path: "
        "images\n");
    put("list.csv.dvc",
        "outs:\n- md5: 45df2a09e924431b93f90f0d40554cd3\n  size: 8\n  hash: md5\n  path: list.csv\n");
  }
  void put(const std::string& name, std::string_view text) {
    ASSERT_TRUE(make_directories((folder_ / name).parent_path()).ok());
    ASSERT_TRUE(write_file(folder_ / name, text).ok());
  }
  std::string difference(const std::string& name, DvcDepth depth = DvcDepth::bytes) {
    NoProgress progress;
    const auto dvc = find_dvc_file(folder_ / name);
    if (!dvc.ok()) return std::string(dvc.status().message());
    if (!*dvc) return "none";
    const auto compared = compare_with_dvc(folder_ / name, **dvc, depth, 2, progress);
    if (!compared.ok()) return std::string(compared.status().message());
    return compared->ignored_by.empty() ? compared->difference : "ignored";
  }
  TempDirectory folder_;
};

TEST_F(Dvc, hashes_folders_and_files_as_dvc_does) {
  EXPECT_EQ(difference("images"), "");
  EXPECT_EQ(difference("images/"), "");
  EXPECT_EQ(difference("list.csv"), "");
  EXPECT_EQ(difference("images/cat"), "none");
}

TEST_F(Dvc, reports_differences) {
  put("list.csv", "two file");
  EXPECT_EQ(difference("list.csv", DvcDepth::sizes), "");
  EXPECT_EQ(difference("list.csv"), "MD5 03fe602e, list.csv.dvc records 45df2a09");
  put("list.csv", "two files");
  EXPECT_EQ(difference("list.csv", DvcDepth::sizes), "9 bytes, list.csv.dvc records 8");
  put("images/cat/2.jpg", "xyZ");
  EXPECT_EQ(difference("images", DvcDepth::sizes), "");
  EXPECT_THAT(difference("images"), ::testing::MatchesRegex("MD5 [0-9a-f]{8}, images.dvc records 23ec60fe"));
  put("images/new.jpg", "1");
  EXPECT_EQ(difference("images", DvcDepth::sizes), "5 files of 11 bytes, images.dvc records 4 of 10");
}

TEST_F(Dvc, names_the_files_that_differ_where_the_cache_has_the_list) {
  put(".dvc/cache/files/md5/23/ec60fe9a18ade66ee76c0371c0e702.dir",
      R"([{"md5": "d41d8cd98f00b204e9800998ecf8427e", "relpath": ".hidden"}, )"
      R"({"md5": "d644a230f3ef20b00879aaceb61790af", "relpath": "cat/1.txt"}, )"
      R"({"md5": "d16fb36f0911f878998c136191af705e", "relpath": "cat/2.jpg"}, )"
      R"({"md5": "c03410a5204b21cd8229ff754688d743", "relpath": "gr\u00f6\u00dfe/\u00e4 b.txt"}])");
  put("images/cat/2.jpg", "xyZ");
  EXPECT_THAT(difference("images"), ::testing::EndsWith(", images.dvc records 23ec60fe: cat/2.jpg"));
  put("images/cat/1.txt", "abcde");
  EXPECT_THAT(difference("images"), ::testing::EndsWith("records 23ec60fe: cat/1.txt and 1 more"));
}

TEST_F(Dvc, hashes_text_like_dvc_2) {
  put("note.txt", "a\r\nb\n");
  put("note.txt.dvc", "outs:\n- md5: dd8c6a395b5dd36c56d23275028f526c\n  size: 5\n  path: note.txt\n");
  EXPECT_EQ(difference("note.txt"), "");
  put("note.txt", std::string("a\r\nb\0", 5));  // not text
  EXPECT_THAT(difference("note.txt"), ::testing::StartsWith("MD5 "));
}

TEST_F(Dvc, does_not_compare_where_files_are_ignored) {
  put(".dvcignore", "# a comment\n\n");
  EXPECT_EQ(difference("images"), "");
  put(".dvcignore", "# a comment\n*.tmp\n");
  EXPECT_EQ(difference("images"), "ignored");
  EXPECT_EQ(difference("list.csv"), "");
}

TEST_F(Dvc, rejects_files_that_are_not_dvc) {
  put("images.dvc", "outs: 3\n");
  EXPECT_THAT(difference("images"), ::testing::EndsWith("images.dvc: has no outs"));
  put("images.dvc", "outs:\n- md5: 45df2a09e924431b93f90f0d40554cd3\n  path: images\n");
  EXPECT_THAT(
      difference("images"),
      ::testing::EndsWith(
          "images.dvc: '45df2a09e924431b93f90f0d40554cd3' is not the MD5 of a folder (ending in .dir)"));
  put("images.dvc", "outs:\n- md5: ../../x.dir\n  path: images\n");
  EXPECT_THAT(difference("images"), ::testing::HasSubstr("is not the MD5 of a folder"));
  put("images.dvc", "outs:\n- path: images\n");
  EXPECT_EQ(difference("images"), "none");
  put("images.dvc", "outs: [\n");
  EXPECT_THAT(difference("images"), ::testing::HasSubstr("images.dvc:"));
}

TEST_F(Dvc, reads_pipeline_outputs_from_the_lock) {
  ASSERT_TRUE(remove_file(folder_ / "images.dvc").ok());
  ASSERT_TRUE(make_directories(folder_ / ".dvc").ok());
  put("sub/images/1.jpg", "xyz");
  put("dvc.lock",
      "schema: '2.0'\nstages:\n  fetch@a:\n    cmd: x\n    deps:\n    - path: list.csv\n      md5: 0\n    "
      "outs:\n"
      "    - path: images/\n      hash: md5\n      md5: 23ec60fe9a18ade66ee76c0371c0e702.dir\n      size: "
      "10\n"
      "      nfiles: 4\n  below:\n    outs:\n    - path: ../sub/images/1.jpg\n"
      "      md5: d16fb36f0911f878998c136191af705e\n      size: 3\n");
  put("dvc.yaml",
      "stages:\n  fetch:\n    foreach: [a]\n    do: {cmd: x, outs: [images/]}\n"
      "  below: {cmd: y, wdir: images, outs: [../sub/images/1.jpg]}\n");
  EXPECT_EQ(difference("images"), "");
  EXPECT_EQ(difference("images/cat"), "none");
  EXPECT_EQ(difference("sub/images/1.jpg"), "");
  put("sub/images/1.jpg", "xy");
  EXPECT_EQ(difference("sub/images/1.jpg"), "2 bytes, dvc.lock records 3");
  put("images/new.jpg", "1");
  EXPECT_EQ(difference("images", DvcDepth::sizes), "5 files of 11 bytes, dvc.lock records 4 of 10");
  const auto dvc = find_dvc_file(folder_ / "images");
  ASSERT_TRUE(dvc.ok() && *dvc);
  EXPECT_THAT((*dvc)->stage, ::testing::EndsWith("dvc.yaml:fetch@a"));
  EXPECT_EQ(dvc_cure("images", {.version = {}, .has_old_hashes = false, .stage = "fetch@a"}),
            "dvc checkout images, or dvc commit fetch@a");
}

TEST_F(Dvc, searches_for_a_lock_only_inside_the_repository) {
  const auto lock = [](std::string_view path) {
    return format("stage:\n  outs:\n  - {{path: {}, md5: d16fb36f0911f878998c136191af705e, size: 4}}\n",
                  path);
  };
  put("repo/x.bin", "xyz");
  put("dvc.lock", lock("repo/x.bin"));
  EXPECT_EQ(difference("repo/x.bin"), "none");  // no .dvc/ in a parent: only its own folder counts
  put("repo/dvc.lock", lock("x.bin"));
  EXPECT_EQ(difference("repo/x.bin"), "3 bytes, dvc.lock records 4");
  ASSERT_TRUE(remove_file(folder_ / "repo/dvc.lock").ok());
  ASSERT_TRUE(make_directories(folder_ / ".dvc").ok());
  EXPECT_EQ(difference("repo/x.bin"), "3 bytes, dvc.lock records 4");
  ASSERT_TRUE(make_directories(folder_ / "repo/.dvc").ok());
  EXPECT_EQ(difference("repo/x.bin"), "none");
}

TEST(DvcLock, invalid_lock_is_an_error) {
  const auto error_of = [](std::string_view lock, std::string_view pipeline = "") {
    const auto found = read_dvc_lock(lock, pipeline, "dvc.lock", {"x", false});
    return found.ok() ? (*found ? "found" : "none") : std::string(found.status().message());
  };
  EXPECT_EQ(error_of(""), "none");
  EXPECT_EQ(error_of("schema: '2.0'\n"), "none");
  EXPECT_EQ(error_of("schema: '2.0'\nstages: [1]\n"), "dvc.lock: 'stages' is not a map");
  EXPECT_EQ(error_of("a: {outs: [{path: y, md5: 0}, {path: x}]}\n"), "none");
  EXPECT_EQ(error_of("a: {outs: [{path: x, md5: 12}]}\n"), "dvc.lock: '12' is not the MD5 of a file");
  EXPECT_EQ(error_of("a: {outs: [{path: ./x, md5: d16fb36f0911f878998c136191af705e}]}\n"), "found");
  EXPECT_THAT(error_of("<<<<<<< HEAD\na: 1\n"), ::testing::StartsWith("dvc.lock:2:"));
  EXPECT_THAT(error_of("a: {outs: []}\n", "stages: {"), ::testing::StartsWith("dvc.lock's dvc.yaml:1:"));
}

}  // namespace
}  // namespace stoker::pack
