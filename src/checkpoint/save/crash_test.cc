// Kills one rank or all of them at every point of the protocol and in between; fills the disk.
#include <csignal>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention/retention.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

// Saves steps 1 and 2 with two ranks in a child; the given rank kills it at a point of step 2.
void save_killed_at(const Sandbox& box, CommitPoint point, int rank) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)box.save(2, {1, 2}, [&](SaverOptions& o) {
      if (o.rank.value != rank) return;
      auto seen = std::make_shared<int>(0);  // shared by copies of the callback
      o.observe = [point, seen](CommitPoint p) {
        if (p == point && ++*seen == 2) ::kill(::getpid(), SIGKILL);
      };
    });
    ::_exit(0);  // the point was not reached
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
}

struct KillCase {
  const char* name;
  CommitPoint point;
  int rank;
  bool is_published;
};

class Killed : public testing::TestWithParam<KillCase> {};

TEST_P(Killed, the_step_exists_completely_or_not_at_all) {
  Sandbox box;
  save_killed_at(box, GetParam().point, GetParam().rank);
  EXPECT_TRUE(box.loads_exactly(1));
  EXPECT_EQ(path_exists(box.step(2)), GetParam().is_published);
  if (GetParam().is_published) {
    EXPECT_TRUE(box.loads_exactly(2));
  }
  ToyModel model(0);
  const auto loaded = load_latest(box.directory(), {}, model.targets());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->step, Step{GetParam().is_published ? 2 : 1});
  EXPECT_TRUE(loaded->skipped.empty());
  // The next attempt, with a different world size, cleans up and resumes.
  box.writer = "2";
  box.save_well(3, {2, 3});
  EXPECT_EQ(box.list(Depth::bytes), "1 valid, 2 valid, 3 valid");
  EXPECT_EQ(list_directory(box.directory())->size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    At, Killed,
    testing::Values(KillCase{"pending_made_by_rank_0", CommitPoint::pending_made, 0, false},
                    KillCase{"pending_made_by_rank_1", CommitPoint::pending_made, 1, false},
                    KillCase{"files_written_by_rank_0", CommitPoint::files_written, 0, false},
                    KillCase{"files_written_by_rank_1", CommitPoint::files_written, 1, false},
                    KillCase{"ready_marker_by_rank_0", CommitPoint::ready_marker_written, 0, false},
                    KillCase{"all_ready", CommitPoint::all_ready, 0, false},
                    KillCase{"manifest_written", CommitPoint::manifest_written, 0, false},
                    KillCase{"published", CommitPoint::published, 0, true},
                    KillCase{"parent_synced", CommitPoint::parent_synced, 0, true},
                    KillCase{"pruned", CommitPoint::pruned, 0, true}),
    [](const auto& info) { return std::string(info.param.name); });

// Rank 0 died between creating the folder and writing its lease: later readers must detect that it is dead.
TEST(Killed, before_rank_0_wrote_its_lease) {
  Sandbox box;
  box.save_well(2, {1});
  ASSERT_TRUE(make_directory(box.directory() / pending_folder_name(Step{2}, "2", 0)).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    SaverOptions rank = box.options(1, 2);
    rank.writer = "2";
    rank.observe = [](CommitPoint p) {
      if (p == CommitPoint::pending_made) ::kill(::getpid(), SIGKILL);
    };
    (void)Sandbox::save_rank(rank, {2});
    ::_exit(0);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how));
  box.writer = "3";
  box.save_well(2, {2});
  EXPECT_EQ(box.list(Depth::bytes), "1 valid, 2 valid");
  EXPECT_EQ(list_directory(box.directory())->size(), 2u);
}

TEST(Killed, while_replacing_a_step_leaves_one_of_the_two) {
  for (const CommitPoint point : {CommitPoint::manifest_written, CommitPoint::published}) {
    Sandbox box;
    box.save_well(1, {1, 2});
    box.writer = "2";
    save_killed_at(box, point, 0);
    EXPECT_EQ(box.list(Depth::bytes).substr(0, 16), "1 valid, 2 valid");
    EXPECT_TRUE(box.loads_exactly(2));
  }
}

TEST(Killed, list_names_the_rank_whose_share_is_missing) {
  Sandbox box;
  save_killed_at(box, CommitPoint::files_written, 1);
  const std::string list = box.list();
  EXPECT_THAT(list, testing::StartsWith("1 valid, 2 torn: "));
  EXPECT_THAT(list, testing::HasSubstr("(killed while writing)"));
}

// Random moments: writes of files, renames, pruning of older steps.
TEST(Killed, at_a_random_moment_the_newest_step_is_valid) {
  // tests/test_checkpoint_soak.py runs more.
  std::int64_t rounds = 20;
  const auto wanted = environment_value("STOKER_KILLS");
  ASSERT_TRUE(!wanted || parse_number(*wanted, &rounds));
  for (int round = 0; round < rounds; ++round) {
    Sandbox box(round % 20 < 3 ? Storage::disk : Storage::memory);
    box.keep_last = 1;
    Pipe pipe = std::move(*Pipe::create());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      (void)box.save(2, {1, 2, 3, 4, 5, 6, 7, 8}, [&](SaverOptions& o) {
        if (o.rank.value == 0) {
          o.observe = [&](CommitPoint p) {
            if (p == CommitPoint::published) (void)!::write(pipe.write.get(), "x", 1);
          };
        }
      });
      ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);  // step 1 is published
    std::this_thread::sleep_for(std::chrono::microseconds(round % 20 * 3001 + round / 20 * 137));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ToyModel model(0);
    const auto loaded = load_latest(box.directory(), {}, model.targets());
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_TRUE(loaded->skipped.empty());
    EXPECT_TRUE(model == ToyModel(static_cast<std::uint64_t>(loaded->step.value) * 100));
  }
}

// A filesystem of a few megabytes, or the reason why it cannot be created.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) {
    if (::mount("stoker-test", folder_.path().c_str(), "tmpfs", 0, size) != 0) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (why_.empty()) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  const std::string& why() const { return why_; }
  const Path& path() const { return folder_.path(); }

 private:
  TempDirectory folder_;
  std::string why_;
};

// The disk becomes full at each place of a save: its folders, a file, a marker, the manifest.
TEST(DiskFull, at_any_point_keeps_the_previous_step_and_names_the_disk) {
  const SmallDisk disk("size=9m");
  if (!disk.why().empty()) GTEST_SKIP() << "mounting a small tmpfs needs root: " << disk.why();
  Sandbox box(disk.path() / "ckpt");
  box.save_well(2, {1});
  const std::uint64_t room = free_space(disk.path())->value;
  const Path ballast = disk.path() / "ballast";
  int failed = 0;
  std::uint64_t left = 0;
  for (; left < room; left += left < 65536 ? 4096 : 262144) {
    ASSERT_TRUE(write_file(ballast, std::string(room - left, 'x')).ok());
    box.writer = format("w{}", left);
    const std::vector<Status> statuses = box.save(2, {2});
    EXPECT_EQ(box.list(Depth::bytes).substr(0, 7), "1 valid") << left;
    if (statuses[0].ok() && statuses[1].ok()) break;
    ++failed;
    EXPECT_FALSE(path_exists(box.step(2))) << left;
    EXPECT_EQ(statuses[0].code(), Code::no_space) << left << " bytes left: " << statuses[0].to_string();
    // Without space for text, rank 0 can only write an empty note.
    const bool is_reported = statuses[1].code() == Code::no_space || left < 8192;
    EXPECT_TRUE(!statuses[1].ok() && is_reported) << left << " bytes left: " << statuses[1].to_string();
    ASSERT_TRUE(remove_file(ballast).ok());
    (void)remove_abandoned(box.directory(), RealClock().wall());
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(left, room) << "a step of 3.3 MB has room at last";
  EXPECT_TRUE(box.loads_exactly(1));
  EXPECT_TRUE(box.loads_exactly(2));
}

// One step of ToyModel takes about 3.3 MB.
TEST(DiskFull, keeps_the_previous_step_valid_and_is_reported) {
  const SmallDisk disk("size=6m");
  if (!disk.why().empty()) GTEST_SKIP() << "mounting a small tmpfs needs root: " << disk.why();
  Sandbox box(disk.path() / "ckpt");
  box.save_well(2, {1});
  const std::vector<Status> statuses = box.save(2, {2});
  EXPECT_EQ(statuses[0].code(), Code::no_space);
  EXPECT_EQ(statuses[1].code(), Code::no_space) << statuses[1].to_string();
  EXPECT_THAT(statuses[0].to_string(), testing::StartsWith("checkpoint step 2: "));
  EXPECT_THAT(statuses[0].to_string(), testing::HasSubstr(": no space left on device"));
  EXPECT_EQ(box.list(Depth::bytes), "1 valid");
  EXPECT_TRUE(box.loads_exactly(1));
  // The failed save's files are removed: there is as much space as before.
  EXPECT_GT(free_space(disk.path())->value, 2'300'000u);
}

TEST(DiskFull, saves_succeed_again_once_there_is_space) {
  const SmallDisk disk("size=8m");
  if (!disk.why().empty()) GTEST_SKIP() << "mounting a small tmpfs needs root: " << disk.why();
  Sandbox box(disk.path() / "ckpt");
  auto saver = *Saver::create(box.options(0, 1));
  ToyModel model(300);
  ASSERT_TRUE(saver->save(model.contents(Step{1})).ok());
  ASSERT_TRUE(saver->wait(Deadline::after(30s)).ok());
  ASSERT_TRUE(write_file(disk.path() / "ballast", std::string(3'000'000, 'x')).ok());
  ASSERT_TRUE(saver->save(model.contents(Step{2})).ok());
  EXPECT_EQ(saver->wait(Deadline::after(30s)).code(), Code::no_space);
  ASSERT_TRUE(remove_file(disk.path() / "ballast").ok());
  ASSERT_TRUE(saver->save(model.contents(Step{3})).ok());
  EXPECT_TRUE(saver->finish(Deadline::after(30s)).ok());
  EXPECT_EQ(box.list(Depth::bytes), "1 valid, 3 valid");
  EXPECT_EQ(list_directory(box.directory())->size(), 2u);
}

}  // namespace
}  // namespace stoker::checkpoint
