#include "record/events.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/run_events.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Events, lines_are_json_objects_with_time_and_kind_first) {
  TempDirectory box;
  auto writer = EventWriter::open(box / "events-node-0000.jsonl");
  ASSERT_TRUE(writer.ok());
  const Field fields[] = {{"rank", std::int64_t{1}},
                          {"ok", false},
                          {"loss", 0.5},
                          {"bad", std::numeric_limits<double>::quiet_NaN()},
                          {"text", std::string("a\"\n\xff")},
                          {"list", std::vector<std::string>{"x", "y"}},
                          {"none", nullptr}};
  ASSERT_TRUE(writer->write_at(1.5, "test", fields).ok());
  EXPECT_EQ(*read_file(box / "events-node-0000.jsonl"),
            R"({"time":1.5,"kind":"test","rank":1,"ok":false,"loss":0.5,"bad":null,"text":"a\"\n)"
            "\xef\xbf\xbd"
            R"(","list":["x","y"],"none":null})"
            "\n");
  const auto log = read_events(box / "events-node-0000.jsonl");
  ASSERT_THAT(log->events, SizeIs(1));
  const Event& event = log->events[0];
  EXPECT_EQ(event.writer, "node-0000");
  EXPECT_EQ(event.time, 1.5);
  EXPECT_EQ(event.integer("rank"), 1);
  EXPECT_EQ(event.number("rank"), 1.0);
  EXPECT_EQ(event.flag("ok"), false);
  EXPECT_EQ(event.number("loss"), 0.5);
  EXPECT_EQ(event.text("text"), "a\"\n\xef\xbf\xbd");
  EXPECT_THAT(event.list("list"), ElementsAre("x", "y"));
  EXPECT_EQ(event.integer("loss"), std::nullopt);
  EXPECT_EQ(event.text("absent"), std::nullopt);
}

TEST(Events, a_second_writer_ends_a_torn_line_and_continues) {
  TempDirectory box;
  const Path file = box / "events-x.jsonl";
  ASSERT_TRUE(write_file(file, "{\"time\":1,\"kind\":\"a\"}\n{\"time\":2,\"ki").ok());
  EXPECT_TRUE(read_events(file)->torn);
  auto writer = EventWriter::open(file);
  ASSERT_TRUE(writer->write_at(3, "c", {}).ok());
  const auto log = read_events(file);
  ASSERT_THAT(log->events, SizeIs(2));
  EXPECT_EQ(log->events[1].kind, "c");
  EXPECT_EQ(log->damaged, 1u);
  EXPECT_FALSE(log->torn);
}

TEST(Events, damaged_lines_are_counted_and_the_rest_is_kept) {
  const EventLog log =
      parse_events("w",
                   "{\"time\":1,\"kind\":\"a\"}\n"
                   "[]\nnull\n{}\n{\"time\":\"1\",\"kind\":\"a\"}\n{\"time\":1,\"kind\":2}\n"
                   "{\"time\":1e999,\"kind\":\"a\"}\n\xff\xfe\n\n"
                   "{\"time\":2,\"kind\":\"b\",\"o\":{},\"l\":[1],\"big\":18446744073709551615}\n");
  ASSERT_THAT(log.events, SizeIs(2));
  EXPECT_EQ(log.damaged, 7u);
  EXPECT_THAT(log.events[1].fields, SizeIs(1));
  EXPECT_EQ(log.events[1].number("big"), 18446744073709551615.0);
}

TEST(Events, deep_nesting_counts_as_damage) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(parse_events("w", "{\"time\":1,\"kind\":\"a\",\"x\":" + deep + "\n").damaged, 1u);
}

TEST(Events, events_of_several_writers_are_merged_by_time) {
  TempDirectory box;
  ASSERT_TRUE(
      write_file(box / "events-a.jsonl", "{\"time\":1,\"kind\":\"a1\"}\n{\"time\":3,\"kind\":\"a3\"}\n")
          .ok());
  ASSERT_TRUE(
      write_file(box / "events-b.jsonl", "{\"time\":2,\"kind\":\"b2\"}\n{\"time\":3,\"kind\":\"b3\"}\n")
          .ok());
  ASSERT_TRUE(write_file(box / "other.jsonl", "{\"time\":2,\"kind\":\"no\"}\n").ok());
  std::vector<std::string> kinds;
  const auto merged = read_attempt_events(box.path());
  for (const Event& event : merged->events) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, ElementsAre("a1", "b2", "a3", "b3"));
}

TEST(Events, every_truncated_file_reads_as_its_complete_lines) {
  const std::string whole = "{\"time\":1,\"kind\":\"a\"}\n{\"time\":2,\"kind\":\"b\"}\n";
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const EventLog log = parse_events("w", std::string_view(whole).substr(0, cut));
    EXPECT_EQ(log.damaged, 0u);
    EXPECT_EQ(log.events.size(), cut == whole.size() ? 2u : cut > whole.size() / 2 - 1 ? 1u : 0u);
  }
}

/// Writes one event and reads it back as its struct.
template <typename T, typename Read>
T round_trip(const T& event, Read read) {
  TempDirectory box;
  auto writer = EventWriter::open(box / "events-node-0000.jsonl");
  EXPECT_TRUE(write_event(*writer, event).ok());
  const auto log = read_events(box / "events-node-0000.jsonl");
  EXPECT_EQ(log->events.size(), 1u);
  const auto back = read(log->events.at(0));
  EXPECT_TRUE(back.has_value());
  return back.value_or(T{});
}

TEST(RunEvents, chain_fields_are_read_back) {
  const Submitted submitted_one = round_trip(Submitted{"812", 4, {"/runs/a", "/runs/b"}}, submitted);
  EXPECT_EQ(submitted_one.scheduler_job, "812");
  EXPECT_EQ(submitted_one.links, 4);
  EXPECT_THAT(submitted_one.after, ElementsAre("/runs/a", "/runs/b"));
  AttemptStarted started;
  started.scheduler_job = "812_2";
  started.resume_written = 1763719411.5;
  started.links = 4;
  const AttemptStarted back = round_trip(started, attempt_started);
  EXPECT_EQ(back.resume_written, 1763719411.5);
  EXPECT_EQ(back.links, 4);
  EXPECT_EQ(round_trip(NoNextAttempt{"was cancelled"}, no_next_attempt).reason, "was cancelled");
  EXPECT_EQ(round_trip(RequeueRequested{"7_2"}, requeue_requested).job, "7_2");
}

TEST(RunEvents, are_read_back_unchanged) {
  const AttemptStarted started{1,       {"node1", 4711, 99, "boot pid"}, 4, {"python", "a b"}, "/c/step-7", 7,
                               "812345"};
  const AttemptStarted s = round_trip(started, attempt_started);
  EXPECT_EQ(s.node, 1);
  EXPECT_EQ(s.supervisor.host, "node1");
  EXPECT_EQ(s.supervisor.pid, 4711);
  EXPECT_EQ(s.supervisor.pid_start, 99);
  EXPECT_EQ(s.supervisor.boot, "boot pid");
  EXPECT_EQ(s.world_size, 4);
  EXPECT_THAT(s.command, ElementsAre("python", "a b"));
  EXPECT_EQ(s.resume, "/c/step-7");
  EXPECT_EQ(s.resume_step, 7);
  EXPECT_EQ(s.scheduler_job, "812345");

  RankEnded ended;
  ended.rank = 1;
  ended.host = "node1";
  ended.signal = 9;
  ended.phase = "backward";
  ended.epoch = 3;
  ended.step = 118;
  ended.reason = "killed by signal 9";
  ended.stack = "load (a.py:1)";
  const RankEnded e = round_trip(ended, rank_ended);
  EXPECT_EQ(e.rank, 1);
  EXPECT_EQ(e.exit_code, std::nullopt);
  EXPECT_EQ(e.signal, 9);
  EXPECT_EQ(e.phase, "backward");
  EXPECT_EQ(e.step, 118);
  EXPECT_EQ(e.reason, "killed by signal 9");
  EXPECT_EQ(e.stack, "load (a.py:1)");

  const AttemptEnded over = round_trip(AttemptEnded{2, Outcome::stopped, 75, 1, "time limit"}, attempt_ended);
  EXPECT_FALSE(over.is_loss);
  EXPECT_TRUE(
      round_trip(AttemptEnded{.outcome = Outcome::failed, .exit_code = 137, .is_loss = true}, attempt_ended)
          .is_loss);
  EXPECT_EQ(over.lost_output, "");
  EXPECT_EQ(round_trip(AttemptEnded{.lost_output = "rank 0 (n1): disk full"}, attempt_ended).lost_output,
            "rank 0 (n1): disk full");
  EXPECT_EQ(over.outcome, Outcome::stopped);
  EXPECT_EQ(over.exit_code, 75);
  EXPECT_EQ(over.first_rank, 1);
  const Staged staged_back = round_trip(Staged{1, "n2", true, "/tmp/stoker-r", 7, 1 << 20, 1.5}, staged);
  EXPECT_EQ(staged_back.host, "n2");
  EXPECT_TRUE(staged_back.is_stage_out);
  EXPECT_EQ(staged_back.files, 7);

  const GpuFound gpu =
      round_trip(GpuFound{1, "n2", 3, "NVIDIA H100", "GPU-5c0e", "00000000:3B:00.0", 7}, gpu_found);
  EXPECT_EQ(gpu.node, 1);
  EXPECT_EQ(gpu.gpu, 3);
  EXPECT_EQ(gpu.name, "NVIDIA H100");
  EXPECT_EQ(gpu.uuid, "GPU-5c0e");
  EXPECT_EQ(gpu.mig_devices, 7);
  const GpuFault fault = round_trip(GpuFault{1, "n2", 3, "00000000:3B:00.0", 79}, gpu_fault);
  EXPECT_EQ(fault.host, "n2");
  EXPECT_EQ(fault.gpu, 3);
  EXPECT_EQ(fault.pci_bus_id, "00000000:3B:00.0");
  EXPECT_EQ(fault.code, 79);

  const CheckpointSaved c =
      round_trip(CheckpointSaved{100, 2, "/c/step-100", 1 << 20, 1.5, 0.01}, checkpoint_saved);
  EXPECT_EQ(c.step, 100);
  EXPECT_EQ(c.bytes, 1 << 20);
  EXPECT_EQ(c.seconds, 1.5);
  EXPECT_EQ(c.stall_s, 0.01);
  EXPECT_EQ(round_trip(Resumed{100, 2, "/c/step-100"}, resumed).step, 100);
  EXPECT_EQ(round_trip(RankStarted{3, "node1", 12}, rank_started).pid, 12);
  EXPECT_EQ(round_trip(Stopping{"rank 1 failed"}, stopping).reason, "rank 1 failed");
}

TEST(RunEvents, a_secret_of_the_command_is_hidden) {
  AttemptStarted started;
  started.command = {"python", "train.py", "--api-key", "x"};
  EXPECT_THAT(round_trip(started, attempt_started).command,
              ElementsAre("python", "train.py", "--api-key", "(hidden)"));
}

TEST(RunEvents, are_rejected_without_their_identifying_fields) {
  const EventLog log =
      parse_events("w",
                   "{\"time\":1,\"kind\":\"rank_ended\"}\n{\"time\":1,\"kind\":\"attempt_ended\","
                   "\"outcome\":\"great\"}\n{\"time\":1,\"kind\":\"checkpoint_saved\",\"step\":\"x\"}\n");
  EXPECT_FALSE(rank_ended(log.events[0]).has_value());
  EXPECT_FALSE(attempt_ended(log.events[1]).has_value());
  EXPECT_FALSE(checkpoint_saved(log.events[2]).has_value());
  EXPECT_FALSE(resumed(log.events[2]).has_value());
  EXPECT_FALSE(gpu_fault(parse_events("w", "{\"time\":1,\"kind\":\"gpu_xid\",\"gpu\":0}\n").events[0]));
}

}  // namespace
}  // namespace stoker::record
