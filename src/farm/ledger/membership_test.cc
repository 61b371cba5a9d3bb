#include "farm/ledger/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::farm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TaskList list_of(int tasks, const std::string& command = "echo") {
  std::string text;
  for (int i = 0; i < tasks; ++i) text += format("{} {}\n", command, i);
  return *TaskList::parse("t.txt", text, {}, {});
}

// A farm in a new folder.
class FarmTest : public testing::Test {
 protected:
  FarmTest() { EXPECT_TRUE(prepare_farm(folder_).ok()); }

  TaskEnd end_of(TaskIndex task, TaskOutcome outcome, std::uint32_t attempt = 1) const {
    return {.task = task, .key = list_.key(task), .attempt = attempt, .outcome = outcome};
  }
  static bool is_free(const FarmState& state, TaskIndex task) {
    return !state.owner(task) && state.outcome(task) == TaskOutcome::waiting;
  }
  Result<std::vector<TaskIndex>> claim(Membership& member, const FarmState& state, std::size_t most) {
    return member.claim(most, [&](TaskIndex task) { return is_free(state, task); });
  }

  TempDirectory root_;
  Path folder_ = root_ / "t.farm";
  TaskList list_ = list_of(10);
};

TEST_F(FarmTest, workers_divide_the_tasks) {
  FarmState first(folder_, list_);
  FarmState second(folder_, list_);
  auto a = Membership::join(first, "");
  auto b = Membership::join(second, "");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->file(), b->file());
  EXPECT_THAT(*claim(*a, first, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(*claim(*b, second, 4), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(*claim(*a, first, 9), ElementsAre(7, 8, 9));
  EXPECT_THAT(*claim(*b, second, 9), IsEmpty());
}

TEST_F(FarmTest, tasks_of_a_worker_that_left_are_free_again) {
  FarmState first(folder_, list_);
  auto a = Membership::join(first, "");
  ASSERT_TRUE(claim(*a, first, 3).ok());
  ASSERT_TRUE(a->append(end_of(0, TaskOutcome::done)).ok());
  ASSERT_TRUE(a->append(TasksFreed{{1}}).ok());
  FarmState second(folder_, list_);
  auto b = Membership::join(second, "");
  EXPECT_THAT(*claim(*b, second, 2), ElementsAre(1, 3));
  ASSERT_TRUE(a->leave().ok());
  EXPECT_THAT(*claim(*b, second, 2), ElementsAre(2, 4));
  EXPECT_EQ(second.outcome(0), TaskOutcome::done);
}

TEST_F(FarmTest, a_ledger_that_is_continued_ends_its_last_worker) {
  {
    FarmState state(folder_, list_);
    auto killed = Membership::join(state, "");
    ASSERT_TRUE(claim(*killed, state, 5).ok());
    ASSERT_TRUE(killed->append(end_of(0, TaskOutcome::done)).ok());
    auto ledger = File::open_append(folder_ / "ledger" / (killed->file() + ".log"));
    ASSERT_TRUE(ledger->write("end 1 a torn li").ok());
  }
  FarmState state(folder_, list_);
  auto next = Membership::join(state, "");
  ASSERT_TRUE(next.ok());
  EXPECT_THAT(*claim(*next, state, 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(state.damaged(), 0U);
}

TEST_F(FarmTest, a_worker_of_a_different_host_is_lost_after_its_lease) {
  const WorkerStart start{
      .id = "far", .who = {"elsewhere", 1, 1, "boot pid"}, .job = "7", .list_digest = list_.digest()};
  ASSERT_TRUE(write_file(folder_ / "ledger/elsewhere-0.log", ledger_line(start)).ok());
  ASSERT_TRUE(make_directories(FarmState(folder_, list_).claims_folder()).ok());
  ASSERT_TRUE(
      write_file(FarmState(folder_, list_).claims_folder() / "0", ledger_line(TaskClaim{"far", {0, 1}}))
          .ok());
  FarmState state(folder_, list_);
  ASSERT_TRUE(state.refresh().ok());
  const double now = unix_seconds(RealClock().wall());
  ASSERT_TRUE(state.find_lost_workers(now, nullptr).ok());
  EXPECT_TRUE(state.owner(0));
  ASSERT_TRUE(
      state.find_lost_workers(now + 60, [](const std::string&) { return std::optional(false); }).ok());
  EXPECT_TRUE(state.owner(0));
  ASSERT_TRUE(
      state.find_lost_workers(now + 60, [](const std::string& job) { return std::optional(job == "7"); })
          .ok());
  EXPECT_FALSE(state.owner(0));
  FarmState later(folder_, list_);
  ASSERT_TRUE(later.refresh().ok());
  ASSERT_TRUE(later.find_lost_workers(now + 301, nullptr).ok());
  EXPECT_FALSE(later.owner(0));
}

TEST_F(FarmTest, a_changed_list_keeps_finished_tasks) {
  FarmState state(folder_, list_);
  auto worker = Membership::join(state, "");
  ASSERT_TRUE(worker->append(end_of(9, TaskOutcome::done)).ok());
  ASSERT_TRUE(worker->append(end_of(8, TaskOutcome::out_of_memory)).ok());
  const TaskList shorter = *TaskList::parse("t.txt", "new\necho 9\necho 8\n", {}, {});
  {
    FarmState other(folder_, shorter);
    EXPECT_EQ(Membership::join(other, "").error().code(), Code::exists);
  }
  ASSERT_TRUE(worker->leave().ok());
  FarmState other(folder_, shorter);
  ASSERT_TRUE(Membership::join(other, "").ok());
  EXPECT_EQ(other.outcome(0), TaskOutcome::waiting);
  EXPECT_EQ(other.outcome(1), TaskOutcome::done);
  EXPECT_EQ(other.outcome(2), TaskOutcome::out_of_memory);
  EXPECT_EQ(other.memory_doublings(2), 1U);
}

TEST_F(FarmTest, memory_is_doubled_until_it_exceeds_the_peak) {
  const TaskList list = *TaskList::parse("t.txt", "a\nb\nc\n", {}, {.memory = 100_MiB});
  FarmState state(folder_, list);
  auto worker = Membership::join(state, "");
  const auto fail = [&](TaskIndex task, ByteCount peak) {
    EXPECT_TRUE(worker
                    ->append(TaskEnd{.task = task,
                                     .key = list.key(task),
                                     .attempt = state.attempts(task) + 1,
                                     .outcome = TaskOutcome::out_of_memory,
                                     .peak_bytes = peak.value})
                    .ok());
    return state.memory_doublings(task);
  };
  EXPECT_EQ(fail(0, 0_MiB), 1U);
  EXPECT_EQ(fail(0, 190_MiB), 2U);
  EXPECT_EQ(fail(1, 110_MiB), 1U);
  EXPECT_EQ(fail(2, 700_MiB), 3U);
  EXPECT_EQ(fail(2, 800_MiB), 4U);
}

TEST_F(FarmTest, the_later_attempt_counts_in_any_order) {
  std::string late;
  std::string early;
  const WorkerStart start{.id = "x", .who = {"h", 1, 1, "b"}, .job = "", .list_digest = list_.digest()};
  late = ledger_line(start) + ledger_line(end_of(0, TaskOutcome::done, 2));
  early = ledger_line(WorkerStart{.id = "y", .who = start.who, .job = "", .list_digest = list_.digest()}) +
          ledger_line(end_of(0, TaskOutcome::failed, 1));
  ASSERT_TRUE(write_file(folder_ / "ledger/a.log", late).ok());
  ASSERT_TRUE(write_file(folder_ / "ledger/b.log", early).ok());
  FarmState state(folder_, list_);
  ASSERT_TRUE(state.refresh().ok());
  EXPECT_EQ(state.outcome(0), TaskOutcome::done);
  EXPECT_EQ(state.attempts(0), 2U);
}

TEST_F(FarmTest, a_folder_of_something_else_or_of_a_later_version_is_refused) {
  ASSERT_TRUE(write_file(folder_ / "farm.json", "{\"version\":2,\"id\":\"x\"}").ok());
  EXPECT_EQ(prepare_farm(folder_).to_string(),
            format("{}: version 2 (this Stoker reads 1)", folder_ / "farm.json"));
  ASSERT_TRUE(write_file(folder_ / "farm.json", "[]").ok());
  EXPECT_EQ(prepare_farm(folder_).code(), Code::corrupt);
}

}  // namespace
}  // namespace stoker::farm
