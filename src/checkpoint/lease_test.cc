#include "checkpoint/lease.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process.h"
#include "checkpoint/layout.h"

namespace stoker::checkpoint {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = RealClock().wall();

TEST(Lease, round_trips) {
  const Lease lease = make_lease(WorldSize{4}, 10min, kNow);
  const auto back = parse_lease("l", lease_text(lease));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, lease);
  EXPECT_EQ(parse_lease("l", "{}").error().to_string(), "l: 'boot' is missing");
  EXPECT_EQ(parse_lease("l", "").error().to_string(), "l: is not a JSON object");
}

TEST(Lease, ends_with_its_process_or_at_its_expiry) {
  const Lease mine = make_lease(WorldSize{1}, 10min, kNow);
  EXPECT_TRUE(is_alive(mine, kNow));
  EXPECT_FALSE(is_alive(mine, kNow + 13min));
  Lease reused = mine;
  ++reused.started;
  EXPECT_FALSE(is_alive(reused, kNow));
  Lease elsewhere = reused;
  elsewhere.boot = "another machine";
  EXPECT_TRUE(is_alive(elsewhere, kNow));
  EXPECT_FALSE(is_alive(elsewhere, kNow + 13min));
}

TEST(Lease, of_a_killed_process_ends_immediately) {
  Pipe pipe = std::move(*Pipe::create());
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const std::string text = lease_text(make_lease(WorldSize{1}, 10min, kNow));
    (void)!::write(pipe.write.get(), text.data(), text.size());
    ::pause();
    ::_exit(0);
  }
  char buffer[4096];
  const ssize_t n = ::read(pipe.read.get(), buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  const auto lease = parse_lease("l", std::string_view(buffer, static_cast<std::size_t>(n)));
  ASSERT_TRUE(lease.ok());
  EXPECT_TRUE(is_alive(*lease, kNow));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(is_alive(*lease, kNow));
}

TEST(Lease, a_folder_without_a_lease_counts_as_alive_for_an_hour) {
  const TempDirectory folder;
  const WallTime now = RealClock().wall();  // the folder's own time, however long earlier tests took
  EXPECT_TRUE(is_pending_alive(folder.path(), now));
  EXPECT_FALSE(is_pending_alive(folder.path(), now + 61min));
  ASSERT_TRUE(write_file(folder / kLeaseName, "{torn").ok());
  EXPECT_TRUE(is_pending_alive(folder.path(), now));
  EXPECT_FALSE(is_pending_alive(folder / "none", now));
}

TEST(Lease, an_unreadable_lease_counts_as_alive_for_two_minutes) {
  for (const char* text : {"", "{torn", "[]"}) {
    const TempDirectory folder;
    ASSERT_TRUE(write_file(folder / kLeaseName, text).ok());
    const WallTime now = RealClock().wall();
    EXPECT_TRUE(is_pending_alive(folder.path(), now)) << text;
    EXPECT_FALSE(is_pending_alive(folder.path(), now + 3min)) << text;
  }
}

TEST(Lease, names_the_process_that_saved_a_step) {
  const Lease mine = make_lease(WorldSize{1}, 10min, kNow);
  EXPECT_EQ(writer_state(mine), WriterState::self);
  Lease other = mine;
  other.started += 1;
  EXPECT_EQ(writer_state(other), WriterState::ended);
  other.boot = "another machine";
  EXPECT_EQ(writer_state(other), WriterState::elsewhere);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(writer_state(mine) == WriterState::self ? 0 : 1);
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

TEST(Lease, an_unreadable_lease_falls_back_to_the_second) {
  const TempDirectory folder;
  Lease gone = make_lease(WorldSize(2), 10s, kNow);
  gone.started += 1;
  ASSERT_TRUE(write_file(folder / kLeaseName, "").ok());
  ASSERT_TRUE(write_file(folder / kMakerLeaseName, lease_text(gone)).ok());
  EXPECT_EQ(*find_lease(folder.path()), gone);
  EXPECT_FALSE(is_pending_alive(folder.path(), kNow));
}

}  // namespace
}  // namespace stoker::checkpoint
