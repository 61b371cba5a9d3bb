#include "report/facts.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/metrics.h"
#include "report/html/page.h"
#include "report/json.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "report/text.h"

namespace stoker::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A run whose files a test writes one by one.
class RunOnDisk {
 public:
  RunOnDisk() : run_(make(box_ / "runs")) {}

  void put(std::string_view name, std::string_view content) {
    const Path file = run_.folder() / name;
    ASSERT_TRUE(make_directories(file.parent_path()).ok());
    ASSERT_TRUE(write_file(file, content).ok());
  }
  RunFacts facts() const { return collect_run_facts(run_, {.now = 4e9}); }
  const record::RunFolder& run() const { return run_; }

 private:
  static record::RunFolder make(const Path& runs) {
    record::RunDescription what;
    what.name = "test";
    what.world_size = 2;
    return *record::RunFolder::create(runs, what, "name: test\n");
  }

  TempDirectory box_;
  record::RunFolder run_;
};

constexpr std::string_view kHeader =
    "time,epoch,step,samples,loss,top1,top5,lr,data_s,forward_s,backward_s,communication_s,optimizer_s,"
    "checkpoint_s,step_s\n";

std::string started(double time, std::string_view more = "") {
  return format(
      "{{\"time\":{},\"kind\":\"attempt_started\",\"node\":0,\"host\":\"h\",\"pid\":1,\"pid_start\":1,"
      "\"boot\":\"b\",\"world_size\":2{}}}\n",
      time, more);
}
std::string ended(double time, std::string_view outcome, int code) {
  return format("{{\"time\":{},\"kind\":\"attempt_ended\",\"node\":0,\"outcome\":\"{}\",\"exit_code\":{}}}\n",
                time, outcome, code);
}

TEST(RunFacts, averages_ranks_by_samples_and_times_the_slowest) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/metrics-0000.csv",
          std::string(kHeader) + "101,0,1,30,2,0.5,1,0.1,0.1,0.2,0.3,0,0,0,1\n");
  run.put("attempts/1/metrics-0001.csv",
          std::string(kHeader) + "101,0,1,10,4,0.1,1,0.1,0.5,0.2,0.3,0,0,0,2\n");
  const RunFacts facts = run.facts();
  ASSERT_THAT(facts.learning.steps, SizeIs(1));
  EXPECT_DOUBLE_EQ(facts.learning.steps[0].loss, 2.5);
  EXPECT_DOUBLE_EQ(facts.learning.steps[0].top1, 0.4);
  EXPECT_EQ(facts.learning.steps[0].samples, 40);
  EXPECT_EQ(facts.learning.steps[0].run_time, 1);
  EXPECT_EQ(facts.samples_per_s, 20);
  ASSERT_THAT(facts.time.ranks, SizeIs(2));
  EXPECT_DOUBLE_EQ(facts.time.ranks[0].seconds_in(TimePart::other), 0.4);
  EXPECT_DOUBLE_EQ(facts.time.whole->total(), 10);
  EXPECT_DOUBLE_EQ(facts.time.whole->seconds_in(TimePart::outside), 9);
}

TEST(RunFacts, steps_done_again_after_a_resume_count_once_in_the_curves_and_twice_in_the_time) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "failed", 9));
  run.put("attempts/2/events-node-0000.jsonl", started(200, ",\"resume_step\":2") + ended(210, "done", 0));
  const auto row = [](int step, double loss) {
    return format("100,0,{},1,{},,,,0,0,0,0,0,0,1\n", step, loss);
  };
  run.put("attempts/1/metrics-0000.csv",
          std::string(kHeader) + row(1, 10) + row(2, 11) + row(3, 12) + row(4, 13));
  run.put("attempts/2/metrics-0000.csv", std::string(kHeader) + row(3, 22) + row(4, 23) + row(5, 24));
  const RunFacts facts = run.facts();
  std::vector<double> losses;
  for (const StepPoint& point : facts.learning.steps) losses.push_back(point.loss);
  EXPECT_THAT(losses, ElementsAre(10, 11, 22, 23, 24));
  EXPECT_EQ(facts.learning.redone_steps, 2);
  EXPECT_EQ(facts.time.ranks[0].steps, 7);
  EXPECT_THAT(facts.learning.resumed_at, ElementsAre(2));
  EXPECT_EQ(facts.running_s, 20);
  EXPECT_EQ(result_sentence(facts), "test: loss 24.0 after 5 steps, 20 s, 2 ranks, resumed once");
}

TEST(RunFacts, repeated_epoch_replaces_the_earlier_one) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100));
  run.put("attempts/1/epochs.csv", "epoch,step,val_top1\n0,10,0.1\n1,20,0.2\n");
  run.put("attempts/2/events-node-0000.jsonl", started(200) + ended(210, "done", 0));
  run.put("attempts/2/epochs.csv", "epoch,step,val_top1\n1,20,0.3\n");
  const RunFacts facts = run.facts();
  ASSERT_THAT(facts.learning.epochs, SizeIs(2));
  EXPECT_EQ(facts.learning.epochs[1].val_top1, 0.3);
  EXPECT_TRUE(std::isnan(facts.learning.epochs[1].train_loss));
  EXPECT_EQ(result_sentence(facts), "test: 30.0 % top-1 after 2 epochs, " + seconds_text(facts.running_s) +
                                        ", 2 ranks, restarted once");
}

constexpr std::string_view kGpuHeader =
    "time,gpu0.busy_percent,gpu0.memory_bytes,gpu0.power_w,gpu0.memory_total_bytes,gpu0.sm_clock_mhz,"
    "gpu0.memory_clock_mhz,gpu0.temperature_c,gpu0.throttle_reasons,gpu0.ecc_errors\n";

TEST(RunFacts, gpus_are_summarized_over_all_attempts) {
  RunOnDisk run;
  run.put(
      "attempts/1/events-node-0000.jsonl",
      started(100) +
          "{\"time\":101,\"kind\":\"gpu_found\",\"node\":0,\"host\":\"h\",\"gpu\":0,\"name\":\"NVIDIA H100\","
          "\"uuid\":\"GPU-a\",\"pci_bus_id\":\"00000000:3B:00.0\"}\n"
          "{\"time\":102,\"kind\":\"gpu_xid\",\"node\":0,\"host\":\"h\",\"gpu\":0,\"xid\":94}\n" +
          ended(110, "failed", 1));
  run.put("attempts/1/system-0000.csv", std::string(kGpuHeader) +
                                            "101,90,40e9,600,80e9,1980,2619,60,0,3\n"
                                            "102,100,60e9,700,80e9,1900,2619,70,4,5\n");
  run.put("attempts/2/events-node-0000.jsonl", started(200) + ended(210, "done", 0));
  run.put("attempts/2/system-0000.csv", std::string(kGpuHeader) +
                                            "201,50,10e9,500,80e9,1700,2619,85,36,0\n"
                                            "202,nan,nan,nan,nan,nan,nan,nan,nan,nan\n"
                                            "203,60,10e9,200,80e9,1980,2619,80,0,0\n");
  const RunFacts facts = run.facts();
  ASSERT_THAT(facts.gpus, SizeIs(1));
  EXPECT_EQ(facts.gpus[0].busy_mean, 75);
  EXPECT_EQ(facts.gpus[0].throttled_share, 0.5);
  EXPECT_EQ(facts.gpus[0].ecc_errors, 2) << "the count of attempt 2 starts at 0";
  EXPECT_THAT(
      gpus_table(facts).rows.at(0),
      ElementsAre("0: NVIDIA H100", "75 %", "100 %", "60.0 GB of 80.0 GB", "500 W", "700 W", "1890 MHz",
                  "2619 MHz", "85 °C", "50.0 % (power limit 50.0 %, temperature 25.0 %)",
                  "Xid 94 at 1970-01-01T00:01:42Z: uncorrectable memory error, contained to the programs "
                  "on it; 2 uncorrected memory errors"));
  const RunFacts all[] = {facts};
  EXPECT_THAT(to_plain_text(all), HasSubstr("gpus (attempts/*/system-*.csv and events-*.jsonl)"));
  EXPECT_THAT(to_html(all), HasSubstr("<h3>GPUs</h3>"));
  EXPECT_THAT(to_json(all), HasSubstr("\"throttle_shares\":{\"power limit\":0.5,\"temperature\":0.25}"));
  EXPECT_THAT(to_json(all), HasSubstr("\"xid\":94"));
}

TEST(RunFacts, gpus_of_an_earlier_version_have_only_its_values) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/system-0000.csv",
          "time,gpu0.busy_percent,gpu0.memory_bytes,gpu0.power_w\n101,90,40e9,600\n102,80,1e300,600\n");
  const RunFacts facts = run.facts();
  ASSERT_THAT(facts.gpus, SizeIs(1));
  const std::vector<std::string> row = gpus_table(facts).rows.at(0);
  EXPECT_EQ(row.at(1), "85 %");
  EXPECT_EQ(row.at(6), "-") << "no clocks";
  EXPECT_EQ(row.at(9), "-") << "throttling is unknown, not absent";
  EXPECT_EQ(row.at(10), "none");
}

TEST(RunFacts, damage_is_noted_and_never_fatal) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", "garbage\n" + started(100) + ended(110, "failed", 7));
  run.put("attempts/1/metrics-0000.csv", "\xff\xfe\n");
  run.put("attempts/1/metrics-0001.csv",
          std::string(kHeader) + "1,2\n105,1e300,-5,nan,inf,,,,-1,nan,inf,0,0,0,-7\n1,2,3\n");
  run.put("attempts/1/epochs.csv", "epoch,step\n-1,0\nnan,1\n1e308,1\n");
  run.put("attempts/1/system-0000.csv",
          "time,rank0.cpu_cores,rankx.cpu_cores,gpu0.power_w\n1e308,inf,1,2\nnan,1,1,1\n");
  run.put("capsule/code.json", "[]");
  run.put("attempts/x/notes", "");
  const RunFacts facts = run.facts();
  const std::string folder = run.run().folder().string();
  EXPECT_THAT(
      facts.notes,
      ElementsAre(
          folder + "/capsule/code.json: not a JSON object",
          "attempts/1/events-*.jsonl: 1 damaged line skipped",
          folder + "/attempts/1/metrics-0000.csv: '\\xff\\xfe' in its first line is not a column name",
          "attempts/1/metrics-0001.csv: 2 damaged lines skipped"));
  EXPECT_EQ(facts.state.state, record::State::failed);
  const RunFacts all[] = {facts};
  EXPECT_THAT(to_html(all), HasSubstr("<h1>test: failed"));
  EXPECT_THAT(to_json(all), HasSubstr("\"state\":\"failed\""));
  EXPECT_THAT(to_plain_text(all), HasSubstr("notes\n"));
}

TEST(RunFacts, reports_a_run_that_never_started) {
  RunOnDisk run;
  const RunFacts facts = run.facts();
  EXPECT_EQ(result_sentence(facts), "test: never started, 2 ranks");
  EXPECT_THAT(facts.attempts, IsEmpty());
  const RunFacts all[] = {facts};
  EXPECT_THAT(to_html(all), HasSubstr("<h1>test: never started, 2 ranks</h1>"));
}

TEST(Json, an_end_that_has_not_come_yet_is_null) {
  RunFacts facts;
  facts.state.state = record::State::running;
  facts.state.started = 100;
  facts.attempts.push_back({.number = 1, .started = 100, .ended = 150, .state = record::State::running});
  const std::string json = to_json(std::span(&facts, 1));
  EXPECT_THAT(json, HasSubstr("\"started\":100.0,\"ended\":null,\"running_s\":"));
  EXPECT_THAT(json, HasSubstr("\"started\":100.0,\"ended\":null,\"seconds\":50.0"));
}

TEST(Json, a_run_that_never_started_has_no_times) {
  const RunFacts facts = RunOnDisk().facts();
  EXPECT_THAT(to_json(std::span(&facts, 1)), HasSubstr("\"started\":null,\"ended\":null"));
}

TEST(RunFacts, a_loss_that_stopped_being_a_number_is_noted) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/metrics-0000.csv",
          std::string(kHeader) + "101,0,1,1,2,,,,0,0,0,0,0,0,1\n102,0,2,1,nan,,,,0,0,0,0,0,0,1\n");
  EXPECT_THAT(run.facts().notes, ElementsAre("the loss is NaN from step 2"));
}

TEST(RunFacts, shows_the_last_log_lines_without_colours_and_progress_bars) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "failed", 7));
  std::string log;
  for (int i = 0; i < 100'000; ++i) log += format("line {}\n", i);
  run.put("attempts/1/rank-0000.log", log + "\x1b[31m10 %\r20 %\r\n\n\xff end without a line end");
  const RunFacts facts = run.facts();
  ASSERT_THAT(facts.logs, SizeIs(1));
  ASSERT_THAT(facts.logs[0].lines, SizeIs(20));
  EXPECT_EQ(facts.logs[0].lines[0], "line 99983");
  EXPECT_EQ(facts.logs[0].lines[17], "20 %");
  EXPECT_EQ(facts.logs[0].lines[18], "");
  EXPECT_EQ(facts.logs[0].lines[19], "\\xff end without a line end");
}

TEST(RunAgain, names_a_run_relative_to_the_folder_of_cd) {
  RunFacts facts;
  facts.id = "ID";
  facts.description.working_directory = "/w";
  facts.state.state = record::State::failed;
  const auto lines_of = [&](const Path& folder) {
    facts.folder = folder;
    return rerun_commands(facts);
  };
  EXPECT_THAT(lines_of("/w/elsewhere/ID"),
              ElementsAre("cd /w", "# resume from its last checkpoint, if any", "stoker resume elsewhere/ID",
                          "# run again from the start", "stoker run /w/elsewhere/ID/job.yaml"));
  EXPECT_EQ(lines_of("/w/runs/ID")[2], "stoker resume ID");
  EXPECT_EQ(lines_of("/w/runs/ID/")[2], "stoker resume ID");
  EXPECT_EQ(lines_of("/w/ID")[2], "stoker resume /w/ID");
  EXPECT_EQ(lines_of("/v/runs/ID")[2], "stoker resume /v/runs/ID");
  facts.description.working_directory = "";
  EXPECT_EQ(lines_of("/w/runs/ID")[1], "stoker resume /w/runs/ID");
}

TEST(RunAgain, finished_run_is_only_restarted) {
  RunFacts facts;
  facts.folder = "/w/runs/ID";
  facts.description.working_directory = "/w";
  facts.state_word = "done";
  EXPECT_THAT(rerun_commands(facts),
              ElementsAre("cd /w", "# run again from the start", "stoker run /w/runs/ID/job.yaml"));
}

/// A rank's trace: consecutive steps with these durations, half forward and half backward, with
/// an exchange from the middle of backward on.
std::string trace_of(int rank, const std::vector<double>& steps_ms, double begin_us = 1e15) {
  std::string text = "[\n{\"name\":\"process_name\",\"ph\":\"M\"}";
  for (std::size_t i = 0; i < steps_ms.size(); ++i) {
    const double us = 1e3 * steps_ms[i];
    const auto span = [&](std::string_view name, std::string_view kind, double begin, double length) {
      text += format(
          ",\n{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{:.1f},\"dur\":{:.1f},\"args\":{{"
          "\"epoch\":0,"
          "\"step\":{}}}}}",
          name, kind, begin, length, i + 1);
    };
    span("forward", "phase", begin_us, us / 2);
    span("backward", "phase", begin_us + us / 2, us / 2);
    for (const char half : {'b', 'e'}) {
      text += format(
          ",\n{{\"name\":\"all-reduce "
          "<float32>\",\"cat\":\"exchange\",\"ph\":\"{}\",\"id\":\"{}.{}\",\"ts\":{:.1f}}}",
          half, rank, i, begin_us + (half == 'b' ? 0.75 : 1) * us);
    }
    span("step", "step", begin_us, us);
    begin_us += us;
  }
  return text;
}

TEST(Traces, the_step_of_median_length_that_all_ranks_have_is_shown) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/trace-0000.json", trace_of(0, {900, 10, 40, 20, 70}));
  run.put("attempts/1/trace-0001.json", trace_of(1, {900, 10, 40, 20}, 1e15 + 2000));  // killed in step 5
  const RunFacts facts = run.facts();
  ASSERT_TRUE(facts.traced.has_value());
  EXPECT_EQ(facts.traced->step, 4u);  // of 10, 20 and 40 ms
  EXPECT_EQ(facts.traced->candidates, 3u);
  EXPECT_NEAR(facts.traced->seconds, 0.022, 1e-6);
  ASSERT_THAT(facts.traced->ranks, SizeIs(2));
  const TracedRank& second = facts.traced->ranks[1];
  EXPECT_NEAR(second.begin_s, 0.002, 1e-6);
  ASSERT_THAT(second.phases, SizeIs(2));
  EXPECT_EQ(second.phases[1].name, "backward");
  EXPECT_NEAR(second.phases[1].begin_s, 0.012, 1e-6);
  ASSERT_THAT(second.exchanges, SizeIs(1));
  EXPECT_NEAR(second.exchanges[0].end_s, 0.022, 1e-6);
  const Table table = traced_table(facts);
  EXPECT_EQ(table.title, "Step 4 of epoch 1, milliseconds");
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[1],
              ElementsAre("1", "20.00", "0.00", "10.00", "10.00", "0.00", "0.00", "0.00", "0.00", "5.00"));
}

TEST(Traces, are_drawn_with_escaped_text_and_labels) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/trace-0000.json", trace_of(0, {10}));
  const RunFacts facts = run.facts();
  const std::string page = to_html(std::span(&facts, 1));
  EXPECT_THAT(
      page,
      HasSubstr("aria-label=\"rank 0: forward 5.00 ms, backward 5.00 ms; 1 exchange with other ranks\""));
  EXPECT_THAT(page, HasSubstr("<rect class=\"p-backward\" x=\"50.000%\" width=\"50.000%\" "
                              "height=\"18\"><title>backward: 5.00 ms"));
  EXPECT_THAT(page, HasSubstr("<title>all-reduce &lt;float32&gt;: 2.50 ms</title>"));
  EXPECT_THAT(to_plain_text(std::span(&facts, 1)), HasSubstr("step 1 of epoch 1, milliseconds"));
  EXPECT_THAT(to_json(std::span(&facts, 1)),
              HasSubstr("\"traced_step\":{\"attempt\":1,\"epoch\":0,\"step\":1,"));
}

TEST(Traces, damaged_or_unmatched_traces_are_noted_or_skipped) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  EXPECT_FALSE(run.facts().traced.has_value());
  run.put("attempts/1/trace-0000.json", "[\n");
  const RunFacts facts = run.facts();
  EXPECT_FALSE(facts.traced.has_value());
  EXPECT_THAT(facts.notes, ElementsAre("attempts/1/trace-0000.json: contains no complete step"));
  EXPECT_THAT(to_html(std::span(&facts, 1)), ::testing::Not(HasSubstr("<h2>A step</h2>")));
}

TEST(RunFacts, expired_run_outside_a_queue_is_a_timeout) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(102, "stopped", 1));
  EXPECT_EQ(run.facts().attempts.at(0).ending, "timeout");
  RunOnDisk interrupted;
  interrupted.put("attempts/1/events-node-0000.jsonl", started(100) + ended(102, "stopped", 143));
  EXPECT_EQ(interrupted.facts().attempts.at(0).ending, "");
}

TEST(Sentence, reports_where_the_deciding_rank_failed) {
  RunFacts facts;
  facts.description.name = "r";
  facts.state_word = "failed";
  facts.state.first_rank = 1;
  facts.attempts.resize(3);
  facts.attempts[1].resume_step = 5;
  facts.attempts[2].resume_step = 9;
  record::RankEnded end;
  end.rank = 1;
  end.epoch = 2;
  end.step = 118;
  facts.attempts[2].ends.push_back(end);
  EXPECT_EQ(result_sentence(facts), "r: failed at epoch 3 step 118, 1 rank, resumed twice");
}

TEST(Numbers, are_written_with_the_digits_that_matter) {
  EXPECT_EQ(significant(0.01234), "0.012");
  EXPECT_EQ(significant(1.854), "1.85");
  EXPECT_EQ(significant(45.67), "45.7");
  EXPECT_EQ(significant(456.7), "457");
  EXPECT_EQ(significant(123456), "123 456");
  EXPECT_EQ(significant(-1234), "-1 234");
  EXPECT_EQ(significant(0.00001234), "1.23e-05");
  EXPECT_EQ(significant(std::nan("")), "-");
  EXPECT_EQ(percent(0.61239), "61.2 %");
  EXPECT_EQ(seconds_text(-1), "-");
}

TEST(RunFacts, an_attempt_that_resumed_from_any_checkpoint_counts) {
  RunOnDisk disk;
  disk.put("attempts/1/events-node-0000.jsonl", started(1000) + ended(1010, "failed", 1));
  disk.put("attempts/2/events-node-0000.jsonl",
           started(1100, ",\"resume\":\"/c/last.pt\"") + ended(1110, "failed", 1));
  disk.put("attempts/3/events-node-0000.jsonl",
           started(1200, ",\"resume\":\"/c/step-7\"") + ended(1210, "done", 0));
  const RunFacts facts = disk.facts();
  EXPECT_EQ(facts.resumes(), 2);
  const Table table = attempts_table(facts);
  EXPECT_EQ(table.rows[0][3], "start");
  EXPECT_EQ(table.rows[1][3], "last.pt");
  EXPECT_EQ(table.rows[2][3], "7");
  EXPECT_THAT(result_sentence(facts), HasSubstr("resumed twice"));
}

TEST(RunFacts, the_judged_state_is_the_word_everywhere) {
  RunOnDisk disk;
  disk.put("attempts/1/events-node-0000.jsonl", started(1000) + ended(1010, "failed", 143));
  const record::LivenessOptions options{.now = 4e9};
  JudgedState judged{"preempted", "its note", true, record::derive_state(disk.run(), options)};
  const RunFacts facts = collect_run_facts(disk.run(), options, judged);
  EXPECT_EQ(state_text(facts), "preempted, exit code 143");
  EXPECT_THAT(result_sentence(facts), HasSubstr(": preempted"));
  EXPECT_EQ(attempts_table(facts).rows[0][1], "preempted");
  EXPECT_THAT(to_json(std::vector{facts}), HasSubstr("\"state\":\"preempted\""));
}

TEST(RunFacts, a_run_is_started_again_the_way_it_was_started) {
  TempDirectory box;
  const auto again = [&](const record::RunDescription& what, const std::string& job, bool is_submitted) {
    const record::RunFolder run = *record::RunFolder::create(box / "runs", what, job);
    const auto attempt = run.start_attempt(job);
    if (is_submitted) STOKER_CHECK(write_file(attempt->submit_events(), "").ok());
    const std::string command = rerun_commands(collect_run_facts(run, {.now = 4e9})).back();
    const std::size_t at = command.find(run.folder().string());
    return at == std::string::npos
               ? command
               : command.substr(0, at) + "RUN" + command.substr(at + run.folder().string().size());
  };
  const std::string one = "name: a\nrun: train\n";
  const std::string two = one + "resources: {nodes: 2}\n";
  record::RunDescription what{.name = "a", .job_file = "job.yaml", .typed = {"stoker", "run", "job.yaml"}};
  EXPECT_EQ(again(what, one, false), "stoker run RUN/job.yaml");
  EXPECT_EQ(again(what, one, true), "stoker submit RUN/job.yaml");
  EXPECT_EQ(again(what, two, false), "stoker submit RUN/job.yaml");
  what.job_file = "";
  what.typed = {"stoker", "submit", "--sbatch=--time=1:00:00", "train.sh"};
  EXPECT_EQ(again(what, one, true), "stoker submit --sbatch=--time=1:00:00 train.sh");
}

}  // namespace
}  // namespace stoker::report
