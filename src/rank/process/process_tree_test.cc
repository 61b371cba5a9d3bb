#include "rank/process/process_tree.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/process.h"

namespace stoker::rank {
namespace {

// Waits until `done` is true; false after 10 s.
bool eventually(const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (!done()) {
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

TEST(Stat, names_with_blanks_and_parentheses_are_read) {
  const auto facts =
      parse_stat("42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 12345 9 9\n");
  ASSERT_TRUE(facts.ok()) << facts.status().to_string();
  EXPECT_EQ(facts->pid, 42);
  EXPECT_EQ(facts->name, "a) b (c");
  EXPECT_EQ(facts->state, 'S');
  EXPECT_EQ(facts->parent, 7);
  EXPECT_FALSE(facts->is_exiting);
  EXPECT_EQ(facts->start, 12345u);
  EXPECT_EQ(facts->cpu_s, 200.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST(Stat, anything_else_is_refused) {
  for (std::string_view line :
       {"", "42", "42 (a", "42 (a)", "x (a) S 1", "42 (a) S 7 1 1", ") 1 (", "42 (a) SS 7"}) {
    EXPECT_EQ(parse_stat(line).status().code(), Code::corrupt) << line;
  }
}

TEST(Stat, what_has_ended_or_is_being_cleared_away_is_exiting) {
  const auto child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "ready");
    for (;;) ::pause();
  }
  ASSERT_TRUE(eventually([&] { return process_facts(child)->name == "ready"; }));
  EXPECT_FALSE(process_facts(child)->is_exiting);
  ::kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] { return process_facts(child)->state == 'Z'; }));
  EXPECT_TRUE(process_facts(child)->is_exiting);
  ::waitpid(child, nullptr, 0);
}

TEST(Descendants, includes_setsid_and_orphaned_processes) {
  ASSERT_TRUE(become_subreaper().ok());
  auto child = Child::spawn({.argv = {"sh", "-c", "setsid sh -c 'sleep 111 & exit 0' & sleep 112"}});
  ASSERT_TRUE(child.ok());
  const auto sleepers = [] {
    const auto all = descendants(::getpid());
    return std::count_if(all.begin(), all.end(), [](const ProcessFacts& p) { return p.name == "sleep"; });
  };
  EXPECT_TRUE(eventually([&] { return sleepers() == 2; }));
  EXPECT_TRUE(eventually([&] {
    for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, SIGKILL);
    (void)child->poll();
    return !reap_orphans({});
  }));
  EXPECT_TRUE(descendants(::getpid()).empty());
}

TEST(Signals, reused_pid_gets_no_signal_and_stopped_process_is_continued) {
  auto child = Child::spawn({.argv = {"sleep", "113"}});
  ASSERT_TRUE(child.ok());
  auto facts = process_facts(child->pid());
  ASSERT_TRUE(facts.ok());
  ProcessFacts other = *facts;
  other.start += 1;  // the same pid, another process
  signal_process(other, SIGKILL);
  EXPECT_FALSE(child->poll().has_value());
  ASSERT_TRUE(child->signal(SIGSTOP).ok());
  ASSERT_TRUE(eventually([&] { return process_facts(child->pid())->state == 'T'; }));
  signal_process(*facts, SIGTERM);
  const auto exit = child->wait(Deadline::after(std::chrono::seconds(10)));
  ASSERT_TRUE(exit.ok());
  EXPECT_EQ(exit->signal, SIGTERM);
}

TEST(Signals, a_handler_is_seen_from_outside) {
  auto child = Child::spawn({.argv = {"sh", "-c", "trap 'exit 0' USR1; sleep 114"}});
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(eventually([&] { return handles_signal(child->pid(), SIGUSR1); }));
  EXPECT_FALSE(handles_signal(child->pid(), SIGUSR2));
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, SIGKILL);
  EXPECT_TRUE(child->wait(Deadline::after(std::chrono::seconds(10))).ok());
  EXPECT_TRUE(eventually([] { return !reap_orphans({}); }));
}

TEST(Memory, kills_and_limit_are_read_from_the_cgroup) {
  const TempDirectory box;
  ASSERT_TRUE(make_directories(box / "proc/self").ok());
  ASSERT_TRUE(make_directories(box / "cgroup/job/step").ok());
  ASSERT_TRUE(write_file(box / "proc/self/cgroup", "0::/job/step\n").ok());
  ASSERT_TRUE(write_file(box / "cgroup/job/step/memory.events", "low 0\noom 2\noom_kill 3\n").ok());
  ASSERT_TRUE(write_file(box / "cgroup/job/step/memory.max", "32000000000\n").ok());
  const MemoryKills kills = memory_kills(box / "proc", box / "cgroup");
  EXPECT_EQ(kills.count, 3u);
  EXPECT_EQ(kills.limit_bytes, 32000000000u);
  EXPECT_EQ(memory_kills(box / "nowhere", box / "cgroup").count, 0u);
}

}  // namespace
}  // namespace stoker::rank
