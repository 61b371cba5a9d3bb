// Checkpoints of other programs: complete ones are found, truncated ones skipped with a reason.
#include "checkpoint/foreign/latest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/foreign/file_check.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// A zip archive with one stored member.
std::string zip_of(const std::string& name, const std::string& content) {
  const std::string sizes = number(0, 4) + number(content.size(), 4) + number(content.size(), 4);
  const std::string common =
      number(0, 2) + number(0, 2) + number(0, 4) + sizes + number(name.size(), 2) + number(0, 2);
  const std::string local = "PK\3\4" + number(20, 2) + common + name + content;
  const std::string entry = "PK\1\2" + number(20, 2) + number(20, 2) + common + number(0, 2) + number(0, 2) +
                            number(0, 2) + number(0, 4) + number(0, 4) + name;
  return local + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) + number(entry.size(), 4) +
         number(local.size(), 4) + number(0, 2);
}

std::string safetensors_of(std::size_t bytes) {
  const std::string header =
      format("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[0,{}]}}}}", bytes, bytes);
  return number(header.size(), 8) + header + std::string(bytes, 'w');
}

// A version 0 superblock of a file of this length.
std::string hdf5_of(std::size_t bytes) {
  std::string start = std::string("\x89HDF\r\n\x1a\n") + std::string(5, '\0') + "\x08\x08" +
                      std::string(9, '\0') + number(0, 8) + number(~0ull, 8) + number(bytes, 8);
  start.resize(bytes, '\0');
  return start;
}

class FindLatest : public testing::Test {
 protected:
  // Each file is a second older than the previous one.
  void put(const std::string& name, const std::string& content) {
    const Path path = folder / name;
    ASSERT_TRUE(make_directories(path.parent_path()).ok());
    ASSERT_TRUE(write_file(path, content).ok());
    age(path);
  }
  void age(const Path& path) {
    const timespec times[2] = {{1'700'000'000 - turn_, 0}, {1'700'000'000 - turn_, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    ++turn_;
  }
  // "<name> <kind> <step>", or "none"; skipped candidates go to `skipped`.
  std::string find(LatestOptions options = {}) {
    NoProgress progress;
    const auto latest = find_latest(folder.path(), options, clock, progress);
    if (!latest.ok()) return latest.status().to_string();
    skipped.clear();
    for (const SkippedStep& step : latest->skipped)
      skipped.push_back(step.folder.filename().string() + ": " + step.why);
    if (!latest->path) return "none";
    return format("{} {} {}", latest->path->filename().string(), latest->kind, latest->step.value_or(-1));
  }

  TempDirectory folder;
  FakeClock clock;
  std::vector<std::string> skipped;

 private:
  int turn_ = 0;
};

TEST_F(FindLatest, nothing_found_is_not_an_error) {
  EXPECT_EQ(find(), "none");
  EXPECT_THAT(skipped, IsEmpty());
  put("notes.txt", "x");
  put(".hidden.pt", "x");
  put("half.pt.tmp", "x");
  EXPECT_EQ(find(), "none");
  EXPECT_THAT(skipped, IsEmpty());
}

TEST_F(FindLatest, finds_the_newest_complete_file_of_each_format) {
  put("empty.pt", "");
  put("cut.pt", zip_of("archive/data.pkl", "pickle").substr(0, 60));
  put("other.pt", zip_of("readme", "text"));
  put("legacy.pt", "\x80\x02}q.");
  put("text.ckpt", "hello");
  put("epoch=3-step=1200.ckpt", zip_of("archive/data.pkl", "pickle"));
  put("older.pt", zip_of("archive/data.pkl", "pickle"));
  EXPECT_EQ(find(), "epoch=3-step=1200.ckpt torch 1200");
  EXPECT_THAT(skipped, ElementsAre("empty.pt: is empty", testing::StartsWith("cut.pt: "),
                                   "other.pt: is a zip archive without data.pkl",
                                   "legacy.pt: is a plain pickle, which cannot be checked for completeness",
                                   "text.ckpt: is not a file written by torch.save"));
  EXPECT_EQ(find({.match = "old*.pt"}), "older.pt torch -1");
  EXPECT_EQ(find({.match = "*.h5"}), "none");
}

TEST_F(FindLatest, truncated_hdf5_files_are_detected) {
  put("cut.h5", hdf5_of(200).substr(0, 150));
  put("not.h5", std::string(100, 'x'));
  put("whole.h5", hdf5_of(200));
  EXPECT_EQ(find(), "whole.h5 hdf5 -1");
  EXPECT_THAT(skipped, ElementsAre("cut.h5: is 150 bytes long, expected 200 (truncated)",
                                   "not.h5: is not an HDF5 file"));
}

TEST_F(FindLatest, safetensors_and_keras) {
  put("cut.safetensors", safetensors_of(50).substr(0, 90));
  put("whole.safetensors", safetensors_of(50));
  put("model.keras", zip_of("config.json", "{}"));
  EXPECT_EQ(find(), "whole.safetensors safetensors -1");
  EXPECT_EQ(skipped.size(), 1u);
  EXPECT_THAT(skipped[0], testing::HasSubstr("is 90 bytes long, its header needs"));
  EXPECT_EQ(find({.match = "*.keras"}), "model.keras keras -1");
}

class HuggingFace : public FindLatest {
 protected:
  void trainer_state(int step, int recorded) {
    put(format("checkpoint-{}/trainer_state.json", step), format("{{\"global_step\": {}}}", recorded));
  }
};

TEST_F(HuggingFace, folders_are_ordered_by_number_and_every_file_is_required) {
  put("model.safetensors", safetensors_of(10));  // written at the end of the training
  put("checkpoint-1000/model.safetensors", safetensors_of(10));
  put("checkpoint-900/model.safetensors", safetensors_of(10).substr(0, 60));
  trainer_state(900, 900);
  put("checkpoint-800/model.safetensors.index.json",
      R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  put("checkpoint-800/model-00001-of-00002.safetensors", safetensors_of(10));
  trainer_state(800, 800);
  put("checkpoint-700/model.safetensors", safetensors_of(10));
  put("checkpoint-700/optimizer.pt", "PK\3\4 and no more");
  trainer_state(700, 700);
  put("checkpoint-600/model.safetensors", safetensors_of(10));
  trainer_state(600, 500);
  put("checkpoint-90/adapter_model.safetensors", safetensors_of(10));
  put("checkpoint-90/rng_state.pth", zip_of("rng_state/data.pkl", "p"));
  trainer_state(90, 90);
  EXPECT_EQ(find(), "checkpoint-90 hugging face 90");
  EXPECT_THAT(skipped, ElementsAre("checkpoint-1000: trainer_state.json, which is written last, is missing",
                                   testing::HasSubstr("checkpoint-900: model.safetensors: is 60 bytes long"),
                                   "checkpoint-800: model-00002-of-00002.safetensors: is missing",
                                   testing::StartsWith("checkpoint-700: optimizer.pt: "),
                                   "checkpoint-600: trainer_state.json: belongs to step 500"));
}

TEST_F(HuggingFace, an_index_must_not_name_files_elsewhere) {
  put("checkpoint-1/model.safetensors.index.json", R"({"weight_map": {"a": "../x.safetensors"}})");
  trainer_state(1, 1);
  EXPECT_EQ(find(), "none");
  EXPECT_THAT(skipped,
              ElementsAre("checkpoint-1: model.safetensors.index.json: 'a' is in '../x.safetensors'"));
}

TEST_F(FindLatest, distributed_checkpoints_need_metadata) {
  put("step10/__0_0.distcp", "x");
  put("step5/__0_0.distcp", "x");
  put("step5/.metadata", "x");
  age(folder / "step10");
  age(folder / "step5");
  EXPECT_EQ(find(), "step5 dcp -1");
  EXPECT_THAT(skipped, ElementsAre("step10: has no .metadata, which is written last"));
}

// A clock whose sleeps let another writer change the file.
class BusyClock final : public Clock {
 public:
  explicit BusyClock(Path file) : file_(std::move(file)) {}
  WallTime wall() const override { return WallTime(std::chrono::seconds(1'700'000'001) + slept_); }
  MonoTime mono() const override { return {}; }
  void sleep(Duration duration) override {
    slept_ += duration;
    if (slept_ > std::chrono::seconds(1)) (void)write_file(file_, safetensors_of(99));
  }

 private:
  Path file_;
  Duration slept_{0};
};

TEST_F(FindLatest, files_being_written_are_skipped) {
  put("new.safetensors", safetensors_of(50));
  put("old.safetensors", safetensors_of(50));
  BusyClock busy(folder / "new.safetensors");
  NoProgress progress;
  const auto latest =
      find_latest(folder.path(), {.match = "", .settle = std::chrono::seconds(5)}, busy, progress);
  ASSERT_TRUE(latest.ok());
  EXPECT_EQ(latest->path, folder / "old.safetensors");
  ASSERT_EQ(latest->skipped.size(), 1u);
  EXPECT_EQ(latest->skipped[0].why, "changed while being checked: it is still being written");
}

TEST_F(FindLatest, the_list_has_all_candidates_and_why_one_is_not_complete) {
  ASSERT_TRUE(make_directories(folder / "checkpoint-20").ok());
  ASSERT_TRUE(make_directories(folder / "checkpoint-30").ok());
  const auto all = list_foreign(folder.path());
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].path, folder / "checkpoint-30");
  EXPECT_EQ((*all)[0].step, 30);
  EXPECT_EQ((*all)[0].kind, "hugging face");
  EXPECT_NE((*all)[0].why, "");
  EXPECT_TRUE(list_foreign(folder / "missing")->empty());
}

TEST_F(FindLatest, stoker_steps_are_verified_completely) {
  const Sandbox box(folder / "ckpt");
  box.save_well(1, {9, 10});
  const Path file = box.file(10, 0);
  std::string content = *read_file(file);
  content[content.size() - 1] ^= 1;
  ASSERT_TRUE(write_file(file, content).ok());
  NoProgress progress;
  const auto latest = find_latest(box.directory(), {}, clock, progress);
  ASSERT_TRUE(latest.ok());
  EXPECT_EQ(latest->path, box.step(9));
  EXPECT_EQ(latest->kind, "stoker");
  EXPECT_EQ(latest->step, 9);
  ASSERT_EQ(latest->skipped.size(), 1u);
  EXPECT_THAT(latest->skipped[0].why, testing::HasSubstr("damaged between bytes"));
}

TEST(WholeFile, newer_superblocks_record_length_and_open_writer) {
  const TempDirectory folder;
  const auto check = [&](int version, char flags, std::uint64_t end) {
    std::string file = std::string("\x89HDF\r\n\x1a\n") + static_cast<char>(version) + "\x08\x08" + flags +
                       number(0, 8) + number(~0ull, 8) + number(end, 8);
    file.resize(100, '\0');
    EXPECT_TRUE(write_file(folder / "f.h5", file).ok());
    std::string text = check_complete(folder / "f.h5", FileKind::hdf5).to_string();
    const std::string prefix = (folder / "f.h5").string() + ": ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  };
  EXPECT_EQ(check(2, 0, 100), "ok");
  EXPECT_EQ(check(2, 0, 101), "is 100 bytes long, expected 101 (truncated)");
  EXPECT_EQ(check(3, 0, 100), "ok");
  EXPECT_EQ(check(3, 1, 100), "was not closed by the program that wrote it");
  EXPECT_EQ(check(9, 0, 100), "HDF5 superblock version 9 is not supported");
}

}  // namespace
}  // namespace stoker::checkpoint
