// Saves through node-local disks: the result if processes are killed at each point, a node is lost, or its
// disk fails or returns wrong data.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/local/recovery.h"
#include "checkpoint/sandbox.h"
#include "checkpoint/save/share.h"

namespace stoker::checkpoint {
namespace {

using Observe = std::function<void(CommitPoint)>;

// A checkpoint directory, and a local disk for each rank: one node per rank.
class Nodes {
 public:
  Sandbox box;

  Path disk(int rank) const { return disks_ / format("node-{}", rank); }
  Path local(int rank) const { return disk(rank) / "run-a"; }

  // All ranks save through their local disks.
  std::vector<Status> save(int world, const std::vector<std::int64_t>& steps) const {
    return box.save(world, steps, [&](SaverOptions& o) { o.local = local(o.rank.value); });
  }

  // Step 1, and step 2 once it is on shared storage.
  void save_one_then_two(int watched, const Observe& observe) const {
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.emplace_back([&, r] {
        SaverOptions o = box.options(r, 2);
        o.local = local(r);
        if (r == watched) o.observe = observe;
        auto saver = *Saver::create(o);
        for (const std::int64_t step : {1, 2}) {
          ToyModel model(static_cast<std::uint64_t>(step) * 100);
          if (r != 0) model.disturb_buffers();
          (void)saver->save(model.contents(Step{step}));
          (void)saver->wait(Deadline::after(60s));
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  std::vector<Result<RecoveredStep>> recover(int world, const std::string& writer, int watched = -1,
                                             const Observe& observe = {}) const {
    std::vector<Result<RecoveredStep>> all(static_cast<std::size_t>(world), internal("not run"));
    std::vector<std::thread> ranks;
    for (int r = 0; r < world; ++r) {
      ranks.emplace_back([&, r] {
        RecoveryOptions o;
        o.directory = box.directory();
        o.local = local(r);
        o.rank = Rank{r};
        o.world_size = WorldSize{world};
        o.writer = writer;
        o.limit = 30s;
        if (r == watched) o.observe = observe;
        all[static_cast<std::size_t>(r)] = recover_local_steps(o);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return all;
  }
  // The step recovered by this many ranks, identical on all of them; -1: none.
  std::int64_t recovered(int world, const std::string& writer, std::string* lost = nullptr) const {
    const auto all = recover(world, writer);
    for (const auto& one : all) {
      EXPECT_TRUE(one.ok()) << one.status().to_string();
      if (!one.ok()) return -2;
      EXPECT_EQ(one->step, all[0]->step);
      EXPECT_EQ(one->lost, all[0]->lost);
    }
    if (lost != nullptr) *lost = all[0]->lost;
    return all[0]->step.value_or(Step{-1}).value;
  }
  std::size_t shares(int world) const {
    std::size_t count = 0;
    for (int r = 0; r < world; ++r) count += list_shares(local(r)).size();
    return count;
  }

 private:
  TempDirectory disks_;
};

// Runs `body` in a child that must end by SIGKILL.
void killed(const std::function<void()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(0);  // the point was not reached
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
}

// Kills this process the given time after it passes the point.
Observe kill_at(CommitPoint point, int time) {
  auto seen = std::make_shared<int>(0);  // shared by copies of the callback
  return [point, time, seen](CommitPoint p) {
    if (p == point && ++*seen == time) ::kill(::getpid(), SIGKILL);
  };
}

// Step 2 on both local disks, not yet on shared storage.
void keep_step_two(const Nodes& nodes) {
  killed([&] { nodes.save_one_then_two(0, kill_at(CommitPoint::all_ready, 2)); });
}

TEST(Drain, steps_end_on_shared_storage_and_leave_nothing_on_nodes) {
  Nodes nodes;
  for (const Status& status : nodes.save(2, {1, 2, 3})) EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(nodes.box.list(Depth::bytes), "1 valid, 2 valid, 3 valid");
  EXPECT_TRUE(nodes.box.loads_exactly(3));
  EXPECT_FALSE(path_exists(nodes.local(0)));
  EXPECT_FALSE(path_exists(nodes.local(1)));
  EXPECT_EQ(list_directory(nodes.box.directory())->size(), 3u);
}

// Shared storage is blocked for a while: two steps wait on the local disk and two in memory, the maximum lost
// with a node.
TEST(Drain, at_most_two_steps_wait_on_the_local_disk) {
  Nodes nodes;
  SaverOptions o = nodes.box.options(0, 1);
  o.local = nodes.local(0);
  o.keep_last = 0;
  std::atomic<bool> lags = true;
  std::atomic<int> kept = 0, most = 0;
  std::atomic<int> drained = 0;
  o.observe = [&](CommitPoint point) {
    if (point == CommitPoint::local_share_written) most = std::max<int>(most, ++kept - drained);
    if (point == CommitPoint::pending_made) {
      while (lags) RealClock().sleep(1ms);
    }
    if (point == CommitPoint::local_share_removed) ++drained;
  };
  auto saver = *Saver::create(o);
  for (const std::int64_t step : {1, 2, 3, 4}) {
    ToyModel model(static_cast<std::uint64_t>(step) * 100);
    ASSERT_TRUE(saver->save(model.contents(Step{step})).ok());
  }
  while (kept < 2) RealClock().sleep(1ms);
  RealClock().sleep(50ms);  // a third one would arrive now
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(nodes.shares(1), 2u);
  lags = false;
  EXPECT_TRUE(saver->finish(Deadline::after(60s)).ok());
  EXPECT_EQ(nodes.box.list(Depth::bytes), "1 valid, 2 valid, 3 valid, 4 valid");
  EXPECT_LE(most, 2);
}

TEST(Drain, a_failing_local_disk_loses_no_step_and_is_reported) {
  Nodes nodes;
  ASSERT_TRUE(write_file(nodes.disk(0), "a file where the folder should be").ok());
  SaverOptions options = nodes.box.options(0, 1);
  options.local = nodes.local(0);
  auto saver = *Saver::create(options);
  ToyModel model(100);
  ASSERT_TRUE(saver->save(model.contents(Step{1})).ok());
  ASSERT_TRUE(saver->finish(Deadline::after(30s)).ok());
  EXPECT_EQ(nodes.box.list(Depth::bytes), "1 valid");
  EXPECT_THAT(saver->last_times()->local_error.to_string(), testing::HasSubstr(": not a directory"));
}

struct KillCase {
  const char* name;
  CommitPoint point;
  int rank;
  bool is_published;
  bool are_kept;  // certainly, on both nodes
};

class KilledInDrain : public testing::TestWithParam<KillCase> {};

TEST_P(KilledInDrain, loses_at_most_the_step_in_flight) {
  const KillCase& at = GetParam();
  Nodes nodes;
  nodes.box.keep_last = 1;
  killed([&] { nodes.save_one_then_two(at.rank, kill_at(at.point, 2)); });
  EXPECT_EQ(path_exists(nodes.box.step(2)), at.is_published);
  const std::string before = nodes.box.list(Depth::bytes);
  EXPECT_THAT(before, testing::HasSubstr(at.is_published ? "2 valid" : "1 valid"));
  // The next attempt, with more ranks on more nodes, resumes from it.
  const std::int64_t recovered = nodes.recovered(3, "2");
  if (at.is_published) {
    EXPECT_EQ(recovered, -1);
  } else if (at.are_kept) {
    EXPECT_EQ(recovered, 2);
  }
  ToyModel model(0);
  const auto loaded = load_latest(nodes.box.directory(), {}, model.targets());
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->step, Step{at.is_published || recovered == 2 ? 2 : 1});
  EXPECT_TRUE(loaded->skipped.empty());
  EXPECT_TRUE(model == ToyModel(static_cast<std::uint64_t>(loaded->step.value) * 100));
  EXPECT_EQ(nodes.shares(3), 0u);
  nodes.box.writer = "2";
  for (const Status& status : nodes.save(3, {3})) EXPECT_TRUE(status.ok()) << status.to_string();
  // A kill between creating a folder and writing its lease leaves one that counts as alive for an hour.
  const std::string after = nodes.box.list(Depth::bytes);
  EXPECT_TRUE(after == "3 valid" || (!at.is_published && after == "2 writing, 3 valid")) << after;
}

INSTANTIATE_TEST_SUITE_P(
    At, KilledInDrain,
    testing::Values(KillCase{"share_written_by_rank_0", CommitPoint::local_share_written, 0, false, false},
                    KillCase{"share_written_by_rank_1", CommitPoint::local_share_written, 1, false, false},
                    KillCase{"pending_made_by_rank_0", CommitPoint::pending_made, 0, false, false},
                    KillCase{"pending_made_by_rank_1", CommitPoint::pending_made, 1, false, false},
                    KillCase{"files_written_by_rank_0", CommitPoint::files_written, 0, false, false},
                    KillCase{"files_written_by_rank_1", CommitPoint::files_written, 1, false, false},
                    KillCase{"ready_marker_by_rank_0", CommitPoint::ready_marker_written, 0, false, false},
                    KillCase{"all_ready", CommitPoint::all_ready, 0, false, true},
                    KillCase{"manifest_written", CommitPoint::manifest_written, 0, false, true},
                    KillCase{"published", CommitPoint::published, 0, true, true},
                    KillCase{"parent_synced", CommitPoint::parent_synced, 0, true, true},
                    KillCase{"pruned", CommitPoint::pruned, 0, true, true},
                    KillCase{"share_removed_by_rank_0", CommitPoint::local_share_removed, 0, true, true},
                    KillCase{"share_removed_by_rank_1", CommitPoint::local_share_removed, 1, true, true}),
    [](const auto& info) { return std::string(info.param.name); });

class KilledInRecovery : public testing::TestWithParam<KillCase> {};

TEST_P(KilledInRecovery, the_next_attempt_recovers_the_step) {
  Nodes nodes;
  keep_step_two(nodes);
  killed([&] { (void)nodes.recover(2, "2", GetParam().rank, kill_at(GetParam().point, 1)); });
  EXPECT_EQ(path_exists(nodes.box.step(2)), GetParam().is_published);
  EXPECT_EQ(nodes.recovered(2, "3"), GetParam().is_published ? -1 : 2);
  EXPECT_TRUE(nodes.box.loads_exactly(2));
  nodes.box.writer = "3";
  for (const Status& status : nodes.save(2, {3})) EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(nodes.box.list(Depth::bytes), "1 valid, 2 valid, 3 valid");
}

INSTANTIATE_TEST_SUITE_P(
    At, KilledInRecovery,
    testing::Values(KillCase{"pending_made_by_rank_0", CommitPoint::pending_made, 0, false, true},
                    KillCase{"pending_made_by_rank_1", CommitPoint::pending_made, 1, false, true},
                    KillCase{"files_written_by_rank_0", CommitPoint::files_written, 0, false, true},
                    KillCase{"files_written_by_rank_1", CommitPoint::files_written, 1, false, true},
                    KillCase{"ready_marker_by_rank_0", CommitPoint::ready_marker_written, 0, false, true},
                    KillCase{"all_ready", CommitPoint::all_ready, 0, false, true},
                    KillCase{"manifest_written", CommitPoint::manifest_written, 0, false, true},
                    KillCase{"published", CommitPoint::published, 0, true, true},
                    KillCase{"parent_synced", CommitPoint::parent_synced, 0, true, true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LocalRecovery, without_shares_recovers_nothing) {
  Nodes nodes;
  nodes.box.save_well(2, {1});
  std::string lost = "?";
  EXPECT_EQ(nodes.recovered(2, "2", &lost), -1);
  EXPECT_EQ(lost, "");
}

TEST(LocalRecovery, fewer_ranks_recover_the_shares_of_more_ranks) {
  Nodes nodes;
  killed([&] {
    (void)nodes.box.save(3, {1, 2}, [&](SaverOptions& o) {
      o.local = nodes.local(0);
      if (o.rank.value == 0) o.observe = kill_at(CommitPoint::all_ready, 2);
    });
  });
  EXPECT_EQ(nodes.shares(1), 3u);
  EXPECT_EQ(nodes.recovered(1, "2"), 2);
  EXPECT_TRUE(nodes.box.loads_exactly(2));
  EXPECT_EQ(nodes.shares(1), 0u);
}

// Two nodes of a lab may share one disk, or the user may choose a folder visible to all nodes.
TEST(LocalRecovery, nodes_that_share_a_disk_copy_each_share_once) {
  Nodes nodes;
  keep_step_two(nodes);
  const Path share = list_shares(nodes.local(1)).at(0).folder;
  std::filesystem::rename(share, nodes.local(0) / share.filename());
  ASSERT_TRUE(remove_tree(nodes.disk(1)).ok());
  std::filesystem::create_directory_symlink(nodes.disk(0), nodes.disk(1));
  EXPECT_EQ(nodes.recovered(2, "2"), 2);
  EXPECT_TRUE(nodes.box.loads_exactly(2));
  EXPECT_EQ(nodes.shares(1), 0u);
}

TEST(LocalRecovery, names_the_ranks_of_a_lost_node) {
  Nodes nodes;
  keep_step_two(nodes);
  ASSERT_TRUE(remove_tree(nodes.disk(1)).ok());
  std::string lost;
  EXPECT_EQ(nodes.recovered(2, "2", &lost), -1);
  EXPECT_EQ(lost, "step 2 is lost: the share of rank 1 is on no node");
  EXPECT_EQ(nodes.box.list(Depth::bytes).substr(0, 7), "1 valid");
  EXPECT_EQ(nodes.shares(2), 0u);
}

TEST(LocalRecovery, rejects_a_damaged_share_and_locates_the_damage) {
  Nodes nodes;
  keep_step_two(nodes);
  const Share share = list_shares(nodes.local(1)).at(0);
  const Path file = share.folder / share.marker.files.at(0).path;
  std::string bytes = *read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(file, bytes).ok());
  std::string lost;
  EXPECT_EQ(nodes.recovered(2, "2", &lost), -1);
  EXPECT_THAT(lost, testing::StartsWith("step 2: rank "));
  EXPECT_THAT(lost, testing::HasSubstr(format("{}: damaged between bytes 0 and ", file.string())));
  EXPECT_EQ(nodes.box.list(Depth::bytes).substr(0, 7), "1 valid");
}

TEST(LocalRecovery, names_the_rank_that_does_not_join) {
  Nodes nodes;
  nodes.box.save_well(1, {1});
  RecoveryOptions options;
  options.directory = nodes.box.directory();
  options.local = nodes.local(0);
  options.world_size = WorldSize{2};
  options.writer = "2";
  options.limit = 50ms;
  EXPECT_EQ(
      recover_local_steps(options).status().to_string(),
      "checkpoint.local: rank 1 did not join the recovery of local steps within 50 ms (timeouts.checkpoint)");
}

TEST(Share, a_changed_or_truncated_record_is_rejected) {
  Nodes nodes;
  keep_step_two(nodes);
  const Share share = list_shares(nodes.local(0)).at(0);
  const std::string text = share_text(share);
  const auto read = parse_share("record", text);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->marker, share.marker);
  EXPECT_EQ(read->head, share.head);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 4;
    ASSERT_FALSE(parse_share("record", changed).ok()) << "byte " << i;
    ASSERT_FALSE(parse_share("record", text.substr(0, i)).ok()) << "cut at " << i;
  }
  EXPECT_EQ(parse_share("record", "x").status().to_string(),
            "record: is not a share record, or is truncated");
}

}  // namespace
}  // namespace stoker::checkpoint
