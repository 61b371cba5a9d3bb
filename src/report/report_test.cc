#include "report/report.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/metrics.h"
#include "report/tables.h"

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
  RunFacts facts() const { return gather(run_, {.now = 4e9}); }
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

TEST(Gather, ranks_are_averaged_by_their_samples_and_the_slowest_sets_the_pace) {
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
  EXPECT_DOUBLE_EQ(facts.time.ranks[0].of(Part::other), 0.4);
  EXPECT_DOUBLE_EQ(facts.time.whole->total(), 10);
  EXPECT_DOUBLE_EQ(facts.time.whole->of(Part::outside), 9);
}

TEST(Gather, steps_done_again_after_a_resume_count_once_in_the_curves_and_twice_in_the_time) {
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

TEST(Gather, an_epoch_held_again_replaces_the_earlier_one) {
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

TEST(Gather, damage_is_noted_and_never_fatal) {
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
      ElementsAre(folder + "/capsule/code.json: not a JSON object",
                  "attempts/1/events-*.jsonl: 1 damaged line left out",
                  folder + "/attempts/1/metrics-0000.csv: '\\xff\\xfe' in its first line is no column name",
                  "attempts/1/metrics-0001.csv: 2 damaged lines left out"));
  EXPECT_EQ(facts.state.state, record::State::failed);
  const RunFacts all[] = {facts};
  EXPECT_THAT(to_html(all), HasSubstr("<h1>test: failed"));
  EXPECT_THAT(to_json(all), HasSubstr("\"state\":\"failed\""));
  EXPECT_THAT(to_plain_text(all), HasSubstr("notes\n"));
}

TEST(Gather, a_run_that_never_started_is_said_so) {
  RunOnDisk run;
  const RunFacts facts = run.facts();
  EXPECT_EQ(result_sentence(facts), "test: never started, 2 ranks");
  EXPECT_THAT(facts.attempts, IsEmpty());
  const RunFacts all[] = {facts};
  EXPECT_THAT(to_html(all), HasSubstr("<h1>test: never started, 2 ranks</h1>"));
}

TEST(Gather, a_loss_that_stopped_being_a_number_is_noted) {
  RunOnDisk run;
  run.put("attempts/1/events-node-0000.jsonl", started(100) + ended(110, "done", 0));
  run.put("attempts/1/metrics-0000.csv",
          std::string(kHeader) + "101,0,1,1,2,,,,0,0,0,0,0,0,1\n102,0,2,1,nan,,,,0,0,0,0,0,0,1\n");
  EXPECT_THAT(run.facts().notes, ElementsAre("the loss is not a number from step 2 on"));
}

TEST(Gather, of_a_long_log_the_last_lines_are_shown_without_colours_and_rewritten_progress) {
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

TEST(Sentence, says_where_a_run_failed_as_its_deciding_rank_did) {
  RunFacts facts;
  facts.description.name = "r";
  facts.state.state = record::State::failed;
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

}  // namespace
}  // namespace stoker::report
