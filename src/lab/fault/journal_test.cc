#include "lab/fault/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "lab/fault/fault.h"

namespace stoker::lab::fault {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Journal : public ::testing::Test {
 protected:
  Journal() {
    lab_.name = "lab1";
    lab_.folder = folder_.path();
    lab_.mode = LabMode::processes;
    lab_.nodes = {LabNode{.name = "n1"}, LabNode{.name = "n2"}};
  }

  std::vector<std::string> targets() const {
    std::vector<std::string> targets;
    const auto entries = active_faults(lab_);
    EXPECT_TRUE(entries.ok());
    for (const JournalEntry& entry : *entries) targets.push_back(entry.target);
    return targets;
  }

  TempDirectory folder_;
  Lab lab_;
};

TEST_F(Journal, is_empty_in_a_lab_without_faults) { EXPECT_THAT(targets(), IsEmpty()); }

TEST_F(Journal, lists_recorded_faults_oldest_first) {
  JournalEntry first{.kind = "cut", .target = "n3", .text = "link down"};
  JournalEntry second{
      .kind = "freeze", .target = "12", .rank = 1, .text = "rank 1 on n2 frozen", .notes = {{"job", "12"}}};
  ASSERT_TRUE(write_entry(lab_, &first).ok());
  ASSERT_TRUE(write_entry(lab_, &second).ok());
  EXPECT_THAT(targets(), ElementsAre("n3", "12"));
  const JournalEntry read = active_faults(lab_)->at(1);
  EXPECT_EQ(read.rank, 1);
  EXPECT_EQ(read.text, "rank 1 on n2 frozen");
  EXPECT_EQ(read.note("job"), "12");
  EXPECT_EQ(read.note("other"), "");
  EXPECT_EQ(read.time, second.time);
}

TEST_F(Journal, update_replaces_and_forget_removes) {
  JournalEntry entry{.kind = "preempt", .target = "12"};
  ASSERT_TRUE(write_entry(lab_, &entry).ok());
  entry.text = "preempted by job 13";
  ASSERT_TRUE(update_entry(lab_, entry).ok());
  EXPECT_EQ(active_faults(lab_)->at(0).text, "preempted by job 13");
  ASSERT_TRUE(remove_entry(lab_, entry).ok());
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, skips_temporary_files_and_names_damaged_ones) {
  ASSERT_TRUE(make_directories(lab_.folder / "faults").ok());
  ASSERT_TRUE(write_file(lab_.folder / "faults/1.json.abc.tmp", "half").ok());
  EXPECT_THAT(targets(), IsEmpty());
  const Path damaged = lab_.folder / "faults/1.json";
  for (const char* text : {"", "[]", "{", "{\"kind\": \"cut\"}", "{\"kind\": 3, \"target\": \"n1\"}"}) {
    ASSERT_TRUE(write_file(damaged, text).ok());
    const auto entries = active_faults(lab_);
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(entries.error().message(), damaged.string() + ": not a lab fault");
    EXPECT_EQ(entries.error().code(), Code::corrupt);
  }
}

std::string refusal(Lab& lab, FaultRequest request) {
  const auto done = inject(lab, request);
  return done ? "done: " + done->text : done.error().to_string();
}

TEST_F(Journal, invalid_fault_leaves_no_entry) {
  EXPECT_EQ(refusal(lab_, {.kind = "cutt", .target = "n1"}),
            "unknown fault 'cutt'; did you mean 'cut'?\n  try: stoker lab fault");
  EXPECT_EQ(refusal(lab_, {.kind = "cut"}), "cut: needs a target (NODE)\n  try: stoker lab fault");
  EXPECT_EQ(refusal(lab_, {.kind = "cut", .target = "n9"}), "n9: no such node in lab1 (available: n1, n2)");
  EXPECT_EQ(refusal(lab_, {.kind = "cut", .target = "n2"}),
            "n2: its link cannot be cut: nodes of lab1 share this host's network (mode processes)\n"
            "  try: stoker lab up --mode namespaces     (as root)");
  EXPECT_EQ(refusal(lab_, {.kind = "slow", .target = "n2"}),
            "n2: its link cannot be slowed: nodes of lab1 share this host's network (mode processes)\n"
            "  try: stoker lab up --mode namespaces     (as root)");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "n1", .rank = 0}), "n1: has no ranks (--rank 0)");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "n1"}), "n1: slurmd is not running");
  EXPECT_EQ(refusal(lab_, {.kind = "freeze", .target = "controller"}),
            "controller: slurmctld is not running");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "gpu"}),
            "gpu: no such node in lab1 (available: n1, n2)");
  EXPECT_EQ(refusal(lab_, {.kind = "expire", .target = "n1"}), "n1: not a job id");
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, the_same_fault_twice_is_refused_with_the_way_to_heal_it) {
  JournalEntry entry{.kind = "cut", .target = "n2", .text = "link down"};
  ASSERT_TRUE(write_entry(lab_, &entry).ok());
  EXPECT_THAT(refusal(lab_, {.kind = "cut", .target = "n2"}),
              ::testing::MatchesRegex("n2: link down since .*\n  try: stoker lab fault heal n2"));
  lab_.name = "class";
  EXPECT_THAT(
      refusal(lab_, {.kind = "cut", .target = "n2"}),
      ::testing::MatchesRegex("n2: link down since .*\n  try: stoker lab fault heal n2 --name class"));
}

TEST_F(Journal, rejects_faults_while_the_controller_is_down) {
  JournalEntry entry{.kind = "freeze", .target = "controller", .text = "slurmctld frozen"};
  ASSERT_TRUE(write_entry(lab_, &entry).ok());
  EXPECT_EQ(refusal(lab_, {.kind = "drain", .target = "n1"}),
            "lab1: the controller does not answer (it has an active fault)\n"
            "  try: stoker lab fault heal controller");
}

TEST_F(Journal, heal_lists_active_faults) {
  EXPECT_TRUE(heal(lab_, "")->lines.empty());
  EXPECT_EQ(heal(lab_, "n1").error().message(), "n1: nothing to heal in lab1 (no active faults)");
  JournalEntry entry{.kind = "freeze", .target = "12", .rank = 1, .notes = {{"job", "12"}}};
  ASSERT_TRUE(write_entry(lab_, &entry).ok());
  EXPECT_EQ(heal(lab_, "n1").error().message(), "n1: nothing to heal in lab1 (active: 12)");
  EXPECT_THAT(heal(lab_, "12")->lines, ElementsAre("12: rank 1 is gone"));
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, a_fault_recorded_but_never_caused_heals) {
  JournalEntry entry{.kind = "fill", .target = "shared"};
  ASSERT_TRUE(make_directories(lab_.shared()).ok());
  ASSERT_TRUE(write_entry(lab_, &entry).ok());
  EXPECT_THAT(heal(lab_, "shared")->lines, ElementsAre(::testing::StartsWith("shared: ")));
  EXPECT_THAT(targets(), IsEmpty());
}

TEST(Rate, is_read_in_the_units_of_tc) {
  EXPECT_EQ(*parse_rate("500kbit"), 500'000U);
  EXPECT_EQ(*parse_rate("10mbit"), 10'000'000U);
  EXPECT_EQ(*parse_rate("1gbit"), 1'000'000'000U);
  for (const char* text : {"500kbit", "10mbit", "1gbit"}) EXPECT_EQ(rate_text(*parse_rate(text)), text);
  for (const char* text :
       {"", "10", "mbit", "0mbit", "-1mbit", "1.5mbit", "10MB", "401gbit", "99999999999999999999gbit"}) {
    const auto rate = parse_rate(text);
    ASSERT_FALSE(rate.ok()) << text;
    EXPECT_EQ(rate.error().message(), format("'{}' is not a rate (as in 500kbit, 10mbit or 1gbit)", text));
  }
}

TEST(Loss, is_a_share_in_percent) {
  EXPECT_DOUBLE_EQ(*parse_loss("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_loss("0.5%"), 0.005);
  EXPECT_DOUBLE_EQ(*parse_loss("100%"), 1);
  for (const char* text : {"", "%", "1", "0%", "101%", "-1%", "nan%", "inf%"}) {
    const auto loss = parse_loss(text);
    ASSERT_FALSE(loss.ok()) << text;
    EXPECT_EQ(loss.error().message(), format("'{}' is not a share of packets (as in 1% or 0.5%)", text));
  }
}

}  // namespace
}  // namespace stoker::lab::fault
