#include "diagnose/launches.h"

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kAlone = "2 copies train separately";
constexpr const char* kCommand = "run: torchrun t.py";

RecordedLaunches launches(const std::string& rule, script_lint::LauncherCopies copies = {}) {
  RecordedLaunches found;
  found.check = "stoker check job.yaml";
  found.findings.push_back({{.rule = rule,
                             .level = Level::job,
                             .what = kAlone,
                             .evidence = {{"job.yaml", kCommand}},
                             .cure = "run: python t.py"},
                            copies});
  return found;
}

RecordedLaunches separate(std::uint64_t per_node = 1) {
  return launches("separate-trainings", {.count = 2, .per_node = per_node});
}

// Of logs with this cause.
Diagnosis failed(const std::string& rule, const std::string& line = "the line") {
  Diagnosis diagnosis;
  diagnosis.certainty = rule.empty() ? Certainty::unknown : Certainty::known;
  diagnosis.rule = rule;
  diagnosis.cause = rule.empty() ? "" : "ranks are missing";
  diagnosis.cure = "the cure of the rule";
  diagnosis.rank = 1;
  diagnosis.evidence = {{"rank-0001.log:3", line}};
  return diagnosis;
}

RankLines both_have_rank_0() {
  return {.rank_zero = {{"rank-0000.log:1", "rank 0/4"}, {"rank-0001.log:1", "rank 0/4"}},
          .has_progress = false};
}

std::vector<std::string> places(const std::vector<Evidence>& evidence) {
  std::vector<std::string> where;
  for (const Evidence& each : evidence) where.push_back(each.where);
  return where;
}

// The rule of the cause after the launchers were added, and "note" if the finding is a note.
std::vector<std::string> joined(const RecordedLaunches& found, const RankLines& lines, Diagnosis diagnosis) {
  const bool has_note = !join_launches(found, lines, AttemptEnd::failed, diagnosis).empty();
  std::vector<std::string> result = {diagnosis.rule};
  if (has_note) result.emplace_back("note");
  return result;
}

TEST(LaunchCause, a_rendezvous_timeout_is_the_effect_of_copies_that_train_separately) {
  Diagnosis diagnosis = failed("rendezvous-timeout");
  EXPECT_THAT(join_launches(separate(), {}, AttemptEnd::failed, diagnosis), IsEmpty());
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
  EXPECT_EQ(diagnosis.rule, "separate-trainings");
  EXPECT_EQ(diagnosis.cause, kAlone);
  EXPECT_EQ(diagnosis.cure, "run: python t.py");
  EXPECT_EQ(diagnosis.confirm, "stoker check job.yaml");
  EXPECT_EQ(diagnosis.consequences, "rank 1: ranks are missing (rank-0001.log:3)");
  EXPECT_EQ(diagnosis.rank, std::nullopt);
  EXPECT_THAT(places(diagnosis.evidence), ElementsAre("job.yaml", "rank-0001.log:3"));
}

TEST(LaunchCause, several_ranks_0_prove_separate_trainings) {
  Diagnosis diagnosis = failed("clients-missing");
  join_launches(separate(), both_have_rank_0(), AttemptEnd::failed, diagnosis);
  EXPECT_EQ(diagnosis.certainty, Certainty::known);
  EXPECT_THAT(places(diagnosis.evidence), ElementsAre("job.yaml", "rank-0000.log:1", "rank-0001.log:1"));
  // Equal lines of one log may also come from a restart.
  RecordedLaunches of_script = separate();
  of_script.logs = LogLayout::shared_log;
  diagnosis = failed("clients-missing");
  join_launches(of_script, both_have_rank_0(), AttemptEnd::failed, diagnosis);
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
}

TEST(LaunchCause, a_run_that_succeeded_has_a_note_with_the_number_of_trainings) {
  Diagnosis diagnosis = failed("");
  const auto notes = join_launches(separate(), both_have_rank_0(), AttemptEnd::done, diagnosis);
  EXPECT_EQ(diagnosis.certainty, Certainty::unknown);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].what, "this run was 2 separate trainings: 2 copies train separately");
  EXPECT_EQ(notes[0].cure, "run: python t.py");
}

TEST(LaunchCause, a_running_run_has_a_note_in_the_words_of_check) {
  Diagnosis diagnosis = failed("");
  const auto notes = join_launches(separate(), both_have_rank_0(), AttemptEnd::none, diagnosis);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].what, kAlone);
}

TEST(LaunchCause, a_failure_without_a_relation_to_the_launcher_keeps_its_cause) {
  for (const char* rule : {"gpu-out-of-memory", "module-missing", "state-cancelled", "nccl-connect-failed"})
    EXPECT_THAT(joined(separate(), both_have_rank_0(), failed(rule)), ElementsAre(rule, "note"));
}

TEST(LaunchCause, ranks_that_trained_had_connected) {
  const RankLines trained{.rank_zero = {}, .has_progress = true};
  for (const char* rule : {"rendezvous-timeout", "gloo-timeout", "state-timeout", "time-limit"}) {
    EXPECT_THAT(joined(launches("rendezvous"), {}, failed(rule)), ElementsAre("rendezvous"));
    EXPECT_THAT(joined(launches("rendezvous"), trained, failed(rule)), ElementsAre(rule, "note"));
  }
  EXPECT_THAT(joined(launches("rendezvous"), {}, failed("watchdog-timeout", "WorkNCCL(SeqNum=1, OpType")),
              ElementsAre("rendezvous"));
  EXPECT_THAT(joined(launches("rendezvous"), {}, failed("watchdog-timeout", "WorkNCCL(SeqNum=12, OpType")),
              ElementsAre("watchdog-timeout", "note"));
}

TEST(LaunchCause, only_copies_on_one_node_compete_for_a_port) {
  for (const char* rule : {"agent-per-task", "nested-launcher", "rendezvous"})
    EXPECT_THAT(joined(launches(rule), {}, failed("port-in-use")), ElementsAre(rule));
  EXPECT_THAT(joined(separate(4), {}, failed("port-in-use")), ElementsAre("separate-trainings"));
  EXPECT_THAT(joined(separate(1), {}, failed("port-in-use")), ElementsAre("port-in-use", "note"));
  EXPECT_THAT(joined(launches("agent-on-first-node"), {}, failed("port-in-use")),
              ElementsAre("port-in-use", "note"));
}

TEST(LaunchCause, a_step_inside_of_a_step_is_not_created) {
  EXPECT_THAT(joined(launches("nested-launcher"), {}, failed("step-not-created")),
              ElementsAre("nested-launcher"));
  EXPECT_THAT(joined(separate(), {}, failed("step-not-created")), ElementsAre("step-not-created", "note"));
}

TEST(LaunchCause, an_unknown_failure_needs_several_ranks_0) {
  EXPECT_THAT(joined(separate(), {}, failed("")), ElementsAre("", "note"));
  EXPECT_THAT(joined(separate(), both_have_rank_0(), failed("")), ElementsAre("separate-trainings"));
  Diagnosis diagnosis = failed("");
  join_launches(separate(), both_have_rank_0(), AttemptEnd::failed, diagnosis);
  EXPECT_TRUE(diagnosis.consequences.empty());
}

TEST(LaunchCause, remaining_findings_are_notes) {
  RecordedLaunches two = launches("rendezvous");
  two.findings.push_back(launches("expanded-too-early").findings[0]);
  EXPECT_THAT(joined(two, {}, failed("clients-missing")), ElementsAre("rendezvous", "note"));
}

}  // namespace
}  // namespace stoker::diagnose
