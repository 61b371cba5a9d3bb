#include "rank/process/output.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

MonoTime at(Duration t) { return MonoTime(t); }

std::string read_all(int fd) {
  std::string text(1 << 20, '\0');
  const ssize_t n = ::read(fd, text.data(), text.size());
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

TEST(LinePrefixer, marks_each_line_however_it_is_cut) {
  LinePrefixer marker("[1] ");
  EXPECT_EQ(marker.feed("a\nb"), "[1] a\n");
  EXPECT_EQ(marker.feed("c\n\n"), "[1] bc\n[1] \n");
  EXPECT_EQ(marker.feed("end"), "");
  EXPECT_EQ(marker.finish(), "[1] end\n");
  EXPECT_EQ(marker.finish(), "");
}

TEST(LinePrefixer, shows_what_carriage_returns_leave) {
  LinePrefixer marker("[1] ");
  EXPECT_EQ(marker.feed("10 %\r20 %\r\n"), "[1] 20 %\n");
  EXPECT_EQ(marker.feed("windows\r\n"), "[1] windows\n");
}

TEST(LinePrefixer, cuts_lines_without_an_end) {
  LinePrefixer marker("[1] ");
  const std::string out = marker.feed(std::string(70'000, 'x'));
  EXPECT_EQ(out.size(), 4u + 65536 + 1);
  EXPECT_EQ(marker.finish().size(), 4u + 70'000 - 65536 + 1);
}

TEST(LineBuffer, incomplete_line_is_held_briefly) {
  LineBuffer line_buffer;
  EXPECT_EQ(line_buffer.feed("a\nb", at(0ms)), "a\n");
  EXPECT_TRUE(line_buffer.has_pending());
  EXPECT_EQ(line_buffer.overdue(at(10ms)), "");
  EXPECT_EQ(line_buffer.feed("c\n", at(20ms)), "bc\n");
  EXPECT_EQ(line_buffer.feed("prompt> ", at(30ms)), "");
  EXPECT_EQ(line_buffer.overdue(at(90ms)), "prompt> ");
  EXPECT_EQ(line_buffer.feed(std::string(70'000, 'x'), at(100ms)).size(), 70'000u);
}

TEST(Sink, a_reader_that_stands_still_is_waited_for_and_then_passed_over) {
  auto pipe = Pipe::create();
  ASSERT_TRUE(pipe.ok());
  Sink sink(pipe->write.get(), {.write_timeout = 1ms, .max_pending = 1000});
  sink.push(std::string(100'000, 'a'));  // a pipe takes 64 KiB
  sink.flush(RealClock().mono());
  EXPECT_FALSE(sink.has_capacity());
  sink.flush(RealClock().mono() + 1s);
  EXPECT_TRUE(sink.has_capacity());
  sink.push("lost\n");
  EXPECT_EQ(sink.left_out(), 5u);
  EXPECT_EQ(read_all(pipe->read.get()).size(), 65536u);
  sink.flush(RealClock().mono() + 2s);
  const std::string rest = read_all(pipe->read.get());
  EXPECT_EQ(rest.substr(rest.find('\n')),
            "\n(5 B dropped here: the reader was blocked for 1.0 ms; the logs are complete)\n");
  EXPECT_EQ(::fcntl(pipe->write.get(), F_GETFL) & O_NONBLOCK, 0)
      << "the shared descriptor must keep its mode";
}

TEST(Sink, a_reader_that_is_gone_is_no_error) {
  ::signal(SIGPIPE, SIG_IGN);
  auto pipe = Pipe::create();
  Sink sink(pipe->write.get(), {.write_timeout = 1s});
  pipe->read.reset();
  sink.push("x");
  sink.flush(RealClock().mono());
  EXPECT_TRUE(sink.has_capacity());
  EXPECT_FALSE(sink.wants_write());
}

TEST(Sink, own_lines_start_on_a_new_line) {
  auto pipe = Pipe::create();
  Sink sink(pipe->write.get(), {.write_timeout = 1s});
  sink.push("half");
  sink.push_line("rank 1 left");
  sink.push_line("more");
  sink.drain();
  EXPECT_EQ(read_all(pipe->read.get()), "half\nrank 1 left\nmore\n");
}

TEST(LogFile, what_cannot_be_written_is_counted) {
  const TempDirectory box;
  auto log = LogFile::open(box / "rank-0000.log");
  ASSERT_TRUE(log.ok());
  log->write("fine\n");
  EXPECT_EQ(log->error_summary(), "");
  auto full = LogFile::open("/dev/full");
  ASSERT_TRUE(full.ok());
  full->write("12345");
  full->write("678");
  EXPECT_EQ(full->error_summary(), "/dev/full: no space left on device; 8 B of output are missing");
}

TEST(LogFile, a_removed_log_is_lost_and_a_moved_one_is_not) {
  const TempDirectory box;
  auto log = LogFile::open(box / "rank-0000.log");
  ASSERT_TRUE(log.ok());
  log->write("fine\n");
  ASSERT_TRUE(rename_path(box / "rank-0000.log", box / "moved.log").ok());
  EXPECT_EQ(log->error_summary(), "");
  ASSERT_TRUE(remove_file(box / "moved.log").ok());
  EXPECT_EQ(log->error_summary(),
            (box / "rank-0000.log").string() + ": was removed during the run; its output is lost");
}

Tail tail_of(std::string_view text) {
  Tail tail;
  tail.feed(text);
  return tail;
}

std::string final_text(std::string_view text) { return tail_of(text).final_line().text; }

TEST(Tail, is_the_last_line_with_something_on_it) {
  Tail tail;
  EXPECT_EQ(tail.final_line().text, "");
  tail.feed("Traceback\n  File x\nValueError: \x1b[1mno\x1b[0m\n\n  \n");
  EXPECT_EQ(tail.final_line().text, "ValueError: \\x1b[1mno\\x1b[0m");
  for (int i = 0; i < 10'000; ++i) tail.feed("0123456789\n");
  tail.feed("10 %\r20 %");
  EXPECT_EQ(tail.final_line().text, "20 %");
}

constexpr const char* kNotDestroyed =
    "[rank0]:[W1126 10:00:00.000000000 ProcessGroupNCCL.cpp:1524] Warning: WARNING: destroy_process_group() "
    "was "
    "not called before program exit, which can leak resources. For more info, please see "
    "https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())\n";

TEST(Tail, is_the_error_above_warnings_at_exit) {
  for (const char* warning :
       {kNotDestroyed,
        "[W ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed (function operator())\n",
        "/v/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 6 "
        "leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear "
        "to "
        "be %d '\n"}) {
    EXPECT_EQ(final_text(std::string("KeyError: 'lr'\n") + warning), "KeyError: 'lr'") << warning;
  }
  EXPECT_EQ(final_text("UserWarning: slow\n"), "UserWarning: slow");
}

TEST(Tail, is_the_error_above_the_teardown_of_nccl) {
  std::string text =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 7, in <module>\n"
      "[rank1]: RuntimeError: shape '[3, 5]' is invalid for input of size 8\n";
  const std::string error = "[rank1]: RuntimeError: shape '[3, 5]' is invalid for input of size 8";
  for (int group = 0; group < 4; ++group) {
    text +=
        "[rank1]:[W1126 10:00:01.000000000 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=81, "
        "addr=[localhost]:43210, remote=[localhost]:29500): Failed to recv, got 0 bytes\n"
        "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:675 (most recent "
        "call "
        "first):\n";
    for (int frame = 0; frame < 12; ++frame) {
      text += format(
          "frame #{}: c10d::TCPStore::check(std::vector<std::string> const&) + 0x{:x} (0x7f0a1b2c3d4e in "
          "/v/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so)\n",
          frame, 16 * frame);
    }
    text +=
        "\n[rank1]:[W1126 10:00:01.000000000 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0(default_pg) Rank "
        "1] "
        "Failed to check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too "
        "early), "
        "with error: Failed to recv, got 0 bytes\n"
        "[rank1]:[E1126 10:00:02.000000000 ProcessGroupNCCL.cpp:1812] [PG ID 0 PG GUID 0(default_pg) Rank 1] "
        "ProcessGroupNCCL HeartbeatMonitor: no heartbeat, exiting\n";
  }
  EXPECT_EQ(final_text(text), error);
}

TEST(Tail, is_an_error_rather_than_a_later_plain_line) {
  EXPECT_EQ(final_text("torch.OutOfMemoryError: CUDA out of memory\nwandb: Synced 5 files\n"),
            "torch.OutOfMemoryError: CUDA out of memory");
  EXPECT_EQ(final_text("train: error: --lr is missing\nbye\n"), "train: error: --lr is missing");
  EXPECT_EQ(final_text("terminate called\n  what():  no such file\nAborted\n"), "what():  no such file");
  EXPECT_EQ(final_text("no such class\n"), "no such class");
}

TEST(Tail, of_standard_output_counts_if_standard_error_has_only_warnings) {
  EXPECT_EQ(explaining_line(tail_of(kNotDestroyed), tail_of("loss 0.3\nValueError: no such class\n")),
            "ValueError: no such class");
  EXPECT_EQ(explaining_line(tail_of(kNotDestroyed), tail_of("cannot continue\n")), "cannot continue");
  EXPECT_EQ(explaining_line(tail_of("no such class\n"), tail_of("loss 0.3\n")), "no such class");
  EXPECT_THAT(explaining_line(tail_of(kNotDestroyed), tail_of("")), HasSubstr("destroy_process_group"));
}

}  // namespace
}  // namespace stoker::rank
