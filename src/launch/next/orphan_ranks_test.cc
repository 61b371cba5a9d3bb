#include "launch/next/orphan_ranks.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/process.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A process on this host that lives until it is stopped.
class Process {
 public:
  explicit Process(Environment environment = {}) {
    Command command;
    command.argv = {"/bin/sleep", "60"};
    command.environment = std::move(environment);
    auto child = Child::spawn(command);
    STOKER_CHECK(child.ok());
    child_ = std::move(*child);
  }
  ~Process() { end(); }
  std::int64_t pid() const { return child_.pid(); }
  void end() {
    (void)child_.signal(SIGKILL);
    (void)child_.wait(Deadline::after(std::chrono::seconds(10)));
  }

 private:
  Child child_;
};

double now() { return unix_seconds(RealClock().wall()); }

// A run without a supervisor, with the recorded pids of its ranks.
class LostRun {
 public:
  LostRun() : run_(make(box_ / "runs")), attempt_(begin()) {
    record::ProcessIdentity gone = record::this_process();
    gone.pid_start -= 1;
    started_by(gone);
  }

  void started_by(const record::ProcessIdentity& supervisor) {
    record::AttemptStarted started;
    started.supervisor = supervisor;
    STOKER_CHECK(write_event(events_, started).ok());
  }
  void record_rank(int rank, std::int64_t pid, double time = now(),
                   const std::string& host = record::this_process().host) {
    const record::Field fields[] = {{"rank", std::int64_t{rank}}, {"host", host}, {"pid", pid}};
    STOKER_CHECK(events_.write_at(time, record::kRankStarted, fields).ok());
  }
  // The environment of its `stoker rank`.
  Environment environment(const std::string& place) const {
    return {{"STOKER_WORLD", "invitation"},
            {"STOKER_PLACE", place},
            {"STOKER_ATTEMPT_DIR", attempt_.folder().string()}};
  }
  const record::RunFolder& run() const { return run_; }
  std::vector<OrphanRank> left() const { return find_orphan_ranks(attempt_); }

 private:
  static record::RunFolder make(const Path& runs) {
    auto run = record::RunFolder::create(runs, {.name = "digits"}, "name: digits\n");
    STOKER_CHECK(run.ok());
    return *run;
  }
  record::Attempt begin() {
    auto attempt = run_.start_attempt("name: digits\nrun: sleep 60\ntimeouts: {grace: 2s}\n");
    STOKER_CHECK(attempt.ok());
    auto events = record::EventWriter::open(attempt->node_events(0));
    STOKER_CHECK(events.ok());
    events_ = std::move(*events);
    return *attempt;
  }

  TempDirectory box_;
  record::RunFolder run_;
  record::EventWriter events_;
  record::Attempt attempt_;
};

TEST(OrphanRanks, finds_live_ranks_on_this_host) {
  LostRun lost;
  Process one;
  Process two;
  lost.record_rank(1, two.pid());
  lost.record_rank(0, one.pid());
  EXPECT_THAT(lost.left(), ElementsAre(OrphanRank{0, one.pid()}, OrphanRank{1, two.pid()}));
  one.end();
  EXPECT_THAT(lost.left(), ElementsAre(OrphanRank{1, two.pid()}));
}

TEST(OrphanRanks, reused_pid_is_ignored) {
  LostRun lost;
  Process later;
  lost.record_rank(0, later.pid(), now() - 3600);
  EXPECT_THAT(lost.left(), IsEmpty());
}

TEST(OrphanRanks, different_host_or_boot_is_ignored) {
  LostRun lost;
  Process process;
  lost.record_rank(0, process.pid(), now(), "n7");
  EXPECT_THAT(lost.left(), IsEmpty());
  LostRun before_the_boot;
  record::ProcessIdentity other = record::this_process();
  other.boot = "another";
  before_the_boot.started_by(other);
  before_the_boot.record_rank(0, process.pid());
  EXPECT_THAT(before_the_boot.left(), IsEmpty());
}

TEST(OrphanRanks, finds_stoker_rank_without_command) {
  LostRun lost;
  const LostRun other;
  const Process keeper(lost.environment("1/2/1/2/0"));
  const Process of_other(other.environment("0/2/0/2/0"));
  EXPECT_THAT(lost.left(), ElementsAre(OrphanRank{1, keeper.pid()}));
  Process command;
  lost.record_rank(1, command.pid());
  EXPECT_THAT(lost.left(), ElementsAre(OrphanRank{1, command.pid()}));
}

TEST(OrphanRanks, waits_until_they_have_ended) {
  LostRun lost;
  Process process;
  lost.record_rank(0, process.pid());
  FakeClock clock;
  std::string message;
  const OrphanWait wait{.on_wait =
                            [&](const std::string& text) {
                              message = text;
                              process.end();
                            },
                        .should_stop = [] { return false; }};
  EXPECT_EQ(wait_for_orphan_ranks(lost.run(), wait, clock).to_string(), "ok");
  EXPECT_EQ(message, format("waiting for rank 0 (pid {}) of attempt 1 to end ...", process.pid()));
  message.clear();
  EXPECT_TRUE(wait_for_orphan_ranks(lost.run(), wait, clock).ok());
  EXPECT_EQ(message, "") << "no orphan rank is left";
}

TEST(OrphanRanks, ranks_after_grace_time_are_reported_with_a_cure) {
  LostRun lost;
  Process one;
  Process two;
  lost.record_rank(0, one.pid());
  lost.record_rank(1, two.pid());
  FakeClock clock;
  const MonoTime begin = clock.mono();
  const Status refused = wait_for_orphan_ranks(
      lost.run(), {.on_wait = [](const std::string&) {}, .should_stop = [] { return false; }}, clock);
  EXPECT_EQ(clock.mono() - begin, std::chrono::seconds(12));
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_EQ(refused.to_string(),
            format("run {}: rank 0 (pid {}), rank 1 (pid {}) of attempt 1 did not end on {} within 12s "
                   "(timeouts.grace: 2s)\n  try: kill -9 {} {}&& stoker resume {}",
                   lost.run().id(), one.pid(), two.pid(), record::this_process().host, one.pid(), two.pid(),
                   lost.run().id()));
}

TEST(OrphanRanks, wait_ends_when_should_stop) {
  LostRun lost;
  Process process;
  lost.record_rank(0, process.pid());
  FakeClock clock;
  const Status stopped = wait_for_orphan_ranks(
      lost.run(), {.on_wait = [](const std::string&) {}, .should_stop = [] { return true; }}, clock);
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_EQ(stopped.to_string(), format("run {}: not resumed: rank 0 (pid {}) of attempt 1 has not ended",
                                        lost.run().id(), process.pid()));
}

}  // namespace
}  // namespace stoker::launch
