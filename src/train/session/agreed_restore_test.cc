#include "train/session/agreed_restore.h"

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "train/comm/test_ranks.h"

namespace stoker::train {
namespace {

using namespace std::chrono_literals;

// The result of one rank, as text.
struct Resumed {
  std::string folder;  // name of the step; "" without one
  std::vector<std::string> skipped;
  std::string error;
  friend bool operator==(const Resumed&, const Resumed&) = default;
  friend void PrintTo(const Resumed& r, std::ostream* out) {
    *out << r.folder << " " << testing::PrintToString(r.skipped) << " " << r.error;
  }
};

// Two ranks, each with its own view of the checkpoint folder.
class Views {
 public:
  void add(int rank, const char* step) { EXPECT_TRUE(make_directories(view(rank) / step).ok()); }
  void add_to_both(const char* step) {
    for (const int rank : {0, 1}) add(rank, step);
  }
  Path view(int rank) const { return box_ / format("view-{}", rank); }

  // The result of `restore` for this rank and step. Without an entry, every step that the rank sees is valid.
  std::map<std::pair<int, std::string>, Result<std::string>> results;

  Result<std::string> restore(int rank, const Path& folder) const {
    const std::string name = folder.filename().string();
    if (!folder_exists(folder)) return not_found("{}: no such checkpoint", name);
    const auto found = results.find({rank, name});
    return found == results.end() ? Result<std::string>("save of " + name) : found->second;
  }

  // Both ranks resume; `steps` are the requested steps by rank, "" for the newest.
  std::vector<Resumed> resume(std::vector<std::string> steps = {"", ""}, Duration appears_within = 0s) {
    std::vector<Resumed> all(2);
    const auto statuses = on_ranks(2, [&](ProcessGroup& group) -> Status {
      const int rank = group.rank().value;
      const auto index = static_cast<std::size_t>(rank);
      ResumeRequest request{.directory = view(rank), .appears_within = appears_within};
      if (!steps[index].empty()) request.step = view(rank) / steps[index];
      const auto agreed = restore_agreed([&](const std::string& own) { return group.all_gather(own); },
                                         request, [&](const Path& folder) { return restore(rank, folder); });
      if (!agreed.ok()) all[index].error = agreed.status().to_string();
      if (!agreed.ok()) return {};
      all[index].folder = agreed->folder.filename().string();
      for (const auto& [folder, why] : agreed->skipped)
        all[index].skipped.push_back(format("{}: {}", folder.filename(), why));
      return {};
    });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
    return all;
  }

 private:
  TempDirectory box_;
};

std::vector<Resumed> both(const Resumed& resumed) { return {resumed, resumed}; }

TEST(AgreedRestore, ranks_resume_from_the_newest_step) {
  Views views;
  for (const char* step : {"step-9", "step-10", "step-2"}) views.add_to_both(step);
  EXPECT_EQ(views.resume(), both({.folder = "step-10"}));
}

TEST(AgreedRestore, without_a_step_ranks_start_from_the_beginning) {
  Views views;
  EXPECT_EQ(views.resume(), both({}));
}

TEST(AgreedRestore, step_that_is_damaged_on_one_rank_is_skipped_by_both) {
  for (const int rank : {0, 1}) {
    Views views;
    for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
    views.results.emplace(std::pair(rank, "step-2"), corrupt("shard-00001: CRC-32C differs"));
    const std::string why = format("step-2: rank {}: shard-00001: CRC-32C differs", rank);
    EXPECT_EQ(views.resume(), both({.folder = "step-1", .skipped = {why}}));
  }
}

TEST(AgreedRestore, step_that_one_rank_does_not_see_is_skipped_by_both) {
  for (const int rank : {0, 1}) {
    Views views;
    views.add_to_both("step-1");
    views.add(1 - rank, "step-2");
    const std::string why = format("step-2: rank {}: step-2: no such checkpoint", rank);
    EXPECT_EQ(views.resume(), both({.folder = "step-1", .skipped = {why}}));
  }
}

TEST(AgreedRestore, step_that_appears_late_on_a_rank_is_awaited) {
  Views views;
  views.add_to_both("step-1");
  views.add(0, "step-2");
  std::thread late([&] {
    RealClock().sleep(300ms);
    views.add(1, "step-2");
  });
  EXPECT_EQ(views.resume({"", ""}, 60s), both({.folder = "step-2"}));
  late.join();
}

TEST(AgreedRestore, different_saves_of_a_step_are_skipped) {
  Views views;
  for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
  views.results.emplace(std::pair(1, "step-2"), std::string("older save"));
  const std::string why =
      "step-2: step-2: rank 1 has a different save of it than rank 0 (older save, save of step-2)";
  EXPECT_EQ(views.resume(), both({.folder = "step-1", .skipped = {why}}));
}

TEST(AgreedRestore, without_a_valid_step_both_ranks_fail) {
  Views views;
  for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
  views.results.emplace(std::pair(0, "step-1"), corrupt("torn"));
  views.results.emplace(std::pair(1, "step-2"), corrupt("bit flipped"));
  const std::string why = "no valid checkpoint (step-2: rank 1: bit flipped; step-1: rank 0: torn)";
  const std::vector<Resumed> resumed = views.resume();
  for (const int rank : {0, 1}) {
    EXPECT_EQ(resumed[static_cast<std::size_t>(rank)],
              (Resumed{.error = format("{}: {}", views.view(rank).string(), why)}));
  }
}

TEST(AgreedRestore, requested_step_is_restored_or_fails_on_both_ranks_with_one_error) {
  Views views;
  for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
  EXPECT_EQ(views.resume({"step-1", "step-1"}), both({.folder = "step-1"}));
  views.results.emplace(std::pair(1, "step-2"), corrupt("shard-00001: CRC-32C differs"));
  EXPECT_EQ(views.resume({"step-2", "step-2"}), both({.error = "rank 1: shard-00001: CRC-32C differs"}));
  EXPECT_EQ(views.resume({"step-3", "step-3"}), both({.error = "rank 0: step-3: no such checkpoint"}));
}

TEST(AgreedRestore, error_besides_damage_ends_both_ranks_and_keeps_its_cure) {
  Views views;
  for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
  views.results.emplace(std::pair(0, "step-2"), invalid("step-2: does not fit").cure("train.width: 8"));
  EXPECT_EQ(views.resume(), both({.error = "rank 0: step-2: does not fit\n  try: train.width: 8"}));
}

TEST(AgreedRestore, different_requests_are_refused_on_both_ranks) {
  Views views;
  for (const char* step : {"step-1", "step-2"}) views.add_to_both(step);
  const std::string end = ", but rank 0 from step-1 (STOKER_RESUME)";
  EXPECT_EQ(views.resume({"step-1", "step-2"}),
            both({.error = "checkpoint: rank 1 resumes from step-2" + end}));
  EXPECT_EQ(views.resume({"step-1", ""}),
            both({.error = "checkpoint: rank 1 resumes from the newest step" + end}));
}

}  // namespace
}  // namespace stoker::train
