#include "launch/next/survivors.h"

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

// A process of this host that lives until it is told to end.
class Process {
 public:
  explicit Process(Environment environment = {}) {
    Command command;
    command.argv = {"/bin/sleep", "60"};
    command.environment = std::move(environment);
    auto child = Child::spawn(command);
    CHECK(child.ok());
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

// A run whose supervisor is gone, with what it recorded of its ranks.
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
    CHECK(write_event(events_, started).ok());
  }
  void heard_of(int rank, std::int64_t pid, double time = now(),
                const std::string& host = record::this_process().host) {
    const record::Field fields[] = {{"rank", std::int64_t{rank}}, {"host", host}, {"pid", pid}};
    CHECK(events_.write_at(time, record::kRankStarted, fields).ok());
  }
  // What a `stoker rank` of it finds in its environment.
  Environment environment(const std::string& place) const {
    return {{"STOKER_WORLD", "invitation"},
            {"STOKER_PLACE", place},
            {"STOKER_ATTEMPT_DIR", attempt_.folder().string()}};
  }
  const record::RunFolder& run() const { return run_; }
  std::vector<Survivor> left() const { return survivors(attempt_); }

 private:
  static record::RunFolder make(const Path& runs) {
    auto run = record::RunFolder::create(runs, {.name = "digits"}, "name: digits\n");
    CHECK(run.ok());
    return *run;
  }
  record::Attempt begin() {
    auto attempt = run_.start_attempt("name: digits\nrun: sleep 60\ntimeouts: {grace: 2s}\n");
    CHECK(attempt.ok());
    auto events = record::EventWriter::open(attempt->node_events(0));
    CHECK(events.ok());
    events_ = std::move(*events);
    return *attempt;
  }

  TempDirectory box_;
  record::RunFolder run_;
  record::EventWriter events_;
  record::Attempt attempt_;
};

TEST(Survivors, are_the_ranks_that_live_on_this_host) {
  LostRun lost;
  Process one;
  Process two;
  lost.heard_of(1, two.pid());
  lost.heard_of(0, one.pid());
  EXPECT_THAT(lost.left(), ElementsAre(Survivor{0, one.pid()}, Survivor{1, two.pid()}));
  one.end();
  EXPECT_THAT(lost.left(), ElementsAre(Survivor{1, two.pid()}));
}

TEST(Survivors, a_pid_used_again_is_none) {
  LostRun lost;
  Process later;
  lost.heard_of(0, later.pid(), now() - 3600);
  EXPECT_THAT(lost.left(), IsEmpty());
}

TEST(Survivors, of_another_host_or_boot_are_not_looked_for) {
  LostRun lost;
  Process process;
  lost.heard_of(0, process.pid(), now(), "n7");
  EXPECT_THAT(lost.left(), IsEmpty());
  LostRun before_the_boot;
  record::ProcessIdentity other = record::this_process();
  other.boot = "another";
  before_the_boot.started_by(other);
  before_the_boot.heard_of(0, process.pid());
  EXPECT_THAT(before_the_boot.left(), IsEmpty());
}

TEST(Survivors, a_stoker_rank_is_one_whose_command_is_gone) {
  LostRun lost;
  const LostRun other;
  const Process keeper(lost.environment("1/2/1/2/0"));
  const Process of_other(other.environment("0/2/0/2/0"));
  EXPECT_THAT(lost.left(), ElementsAre(Survivor{1, keeper.pid()}));
  Process command;
  lost.heard_of(1, command.pid());
  EXPECT_THAT(lost.left(), ElementsAre(Survivor{1, command.pid()}));
}

TEST(Survivors, are_waited_for_until_they_have_ended) {
  LostRun lost;
  Process process;
  lost.heard_of(0, process.pid());
  FakeClock clock;
  std::string told;
  const SurvivorWait wait{.on_wait =
                              [&](const std::string& text) {
                                told = text;
                                process.end();
                              },
                          .should_stop = [] { return false; }};
  EXPECT_EQ(wait_for_survivors(lost.run(), wait, clock).to_string(), "ok");
  EXPECT_EQ(told, format("waiting for rank 0 (pid {}) of attempt 1 to end ...", process.pid()));
  told.clear();
  EXPECT_TRUE(wait_for_survivors(lost.run(), wait, clock).ok());
  EXPECT_EQ(told, "") << "nobody is there any more";
}

TEST(Survivors, that_outlast_their_grace_time_are_named_with_the_cure) {
  LostRun lost;
  Process one;
  Process two;
  lost.heard_of(0, one.pid());
  lost.heard_of(1, two.pid());
  FakeClock clock;
  const MonoTime begin = clock.mono();
  const Status refused = wait_for_survivors(
      lost.run(), {.on_wait = [](const std::string&) {}, .should_stop = [] { return false; }}, clock);
  EXPECT_EQ(clock.mono() - begin, std::chrono::seconds(12));
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_EQ(refused.to_string(),
            format("run {}: rank 0 (pid {}), rank 1 (pid {}) of attempt 1 did not end on {} within 12s "
                   "(timeouts.grace: 2s)\n"
                   "  try: kill -9 {} {}, then stoker resume {}",
                   lost.run().id(), one.pid(), two.pid(), record::this_process().host, one.pid(), two.pid(),
                   lost.run().id()));
}

TEST(Survivors, the_wait_for_them_ends_when_it_is_told_to) {
  LostRun lost;
  Process process;
  lost.heard_of(0, process.pid());
  FakeClock clock;
  const Status stopped = wait_for_survivors(
      lost.run(), {.on_wait = [](const std::string&) {}, .should_stop = [] { return true; }}, clock);
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_EQ(stopped.to_string(), format("run {}: not resumed: rank 0 (pid {}) of attempt 1 has not ended",
                                        lost.run().id(), process.pid()));
}

}  // namespace
}  // namespace stoker::launch
