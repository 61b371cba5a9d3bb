#include "record/beacon.h"

#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::record {
namespace {

TEST(Beacon, reports_the_position_of_its_rank) {
  TempDirectory box;
  auto beacon = Beacon::create(box / "rank-0003.beacon", 3);
  ASSERT_TRUE(beacon.ok());
  EXPECT_EQ(read_beacon(box / "rank-0003.beacon")->phase, Phase::start);
  beacon->at(2, 118);
  beacon->enter(Phase::backward);
  const auto seen = read_beacon(box / "rank-0003.beacon");
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->rank, 3);
  EXPECT_EQ(seen->pid, ::getpid());
  EXPECT_EQ(describe(*seen), "epoch 3 step 118, phase backward");
  EXPECT_EQ(seen->count, 3u);
  EXPECT_GT(seen->seen_monotonic_s, 0);
  EXPECT_GT(seen->seen_unix_s, 1.5e9);
  EXPECT_FALSE(seen->torn);
}

TEST(Beacon, without_a_file_ignores_calls) {
  Beacon none;
  none.at(1, 2);
  none.enter(Phase::data);
  Beacon moved = std::move(none);
  moved.enter(Phase::done);
}

TEST(Beacon, outlives_kill_9_of_its_writer) {
  TempDirectory box;
  const Path file = box / "rank-0000.beacon";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto beacon = Beacon::create(file, 0);
    beacon->at(7, 9);
    beacon->enter(Phase::communication);
    if (::write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(describe(*read_beacon(file)), "epoch 8 step 9, phase communication");
}

TEST(Beacon, a_reader_never_sees_a_partial_update) {
  TempDirectory box;
  const Path file = box / "rank-0000.beacon";
  auto beacon = Beacon::create(file, 0);
  ASSERT_TRUE(beacon.ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t i = 1; !stop; ++i) beacon->at(i, i);
  });
  for (int i = 0; i < 20'000; ++i) {
    const auto seen = read_beacon(file);
    ASSERT_TRUE(seen.ok());
    if (seen->torn) continue;  // all hundred tries met an update: allowed, and reported
    ASSERT_EQ(seen->epoch, seen->step);
  }
  stop = true;
  writer.join();
}

TEST(Beacon, a_writer_that_died_during_an_update_is_torn) {
  TempDirectory box;
  const Path file = box / "rank-0000.beacon";
  {
    auto beacon = Beacon::create(file, 0);
  }
  auto raw = File::open_read_write(file);
  const std::uint64_t odd = 5;
  ASSERT_TRUE(raw->write_at(24, std::as_bytes(std::span(&odd, 1))).ok());
  EXPECT_TRUE(read_beacon(file)->torn);
}

TEST(Beacon, reports_foreign_truncated_and_newer_files) {
  TempDirectory box;
  const std::string file = (box / "rank-0000.beacon").string();
  EXPECT_EQ(read_beacon(file).status().code(), Code::not_found);
  ASSERT_TRUE(write_file(file, "").ok());
  EXPECT_EQ(read_beacon(file).status().message(), file + ": 0 bytes, a beacon has 72");
  ASSERT_TRUE(write_file(file, std::string(4096, 'x')).ok());
  EXPECT_EQ(read_beacon(file).status().message(), file + ": not a beacon (its first 8 bytes)");
  {
    auto beacon = Beacon::create(file, 0);
  }
  auto raw = File::open_read_write(file);
  const std::uint32_t version = 2;
  ASSERT_TRUE(raw->write_at(8, std::as_bytes(std::span(&version, 1))).ok());
  EXPECT_EQ(read_beacon(file).status().message(), file + ": beacon version 2, this Stoker version reads 1");
  ASSERT_TRUE(raw->truncate(71).ok());
  EXPECT_EQ(read_beacon(file).status().message(), file + ": 71 bytes, a beacon has 72");
}

TEST(Beacon, an_unknown_phase_of_a_later_version_reads_as_unknown) {
  EXPECT_EQ(to_text(static_cast<Phase>(77)), "unknown");
  EXPECT_EQ(to_text(Phase::done), "done");
}

TEST(Beacon, an_unwritable_path_is_an_error) {
  EXPECT_EQ(Beacon::create("/nowhere/x.beacon", 0).status().message(),
            "/nowhere/x.beacon: no such file or directory");
  EXPECT_EQ(Beacon::create("/dev/full", 0).status().message(), "/dev/full: no space left on device");
}

}  // namespace
}  // namespace stoker::record
