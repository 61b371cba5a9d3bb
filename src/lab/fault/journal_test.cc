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
    lab_.mode = Mode::processes;
    lab_.nodes = {Node{.name = "n1"}, Node{.name = "n2"}};
  }

  std::vector<std::string> targets() const {
    std::vector<std::string> targets;
    const auto entries = in_force(lab_);
    EXPECT_TRUE(entries.ok());
    for (const Entry& entry : *entries) targets.push_back(entry.target);
    return targets;
  }

  TempDirectory folder_;
  Lab lab_;
};

TEST_F(Journal, is_empty_in_a_lab_without_faults) { EXPECT_THAT(targets(), IsEmpty()); }

TEST_F(Journal, gives_back_what_was_recorded_the_oldest_first) {
  Entry first{.kind = "cut", .target = "n3", .text = "link down"};
  Entry second{
      .kind = "freeze", .target = "12", .rank = 1, .text = "rank 1 on n2 frozen", .notes = {{"job", "12"}}};
  ASSERT_TRUE(record(lab_, &first).ok());
  ASSERT_TRUE(record(lab_, &second).ok());
  EXPECT_THAT(targets(), ElementsAre("n3", "12"));
  const Entry read = in_force(lab_)->at(1);
  EXPECT_EQ(read.rank, 1);
  EXPECT_EQ(read.text, "rank 1 on n2 frozen");
  EXPECT_EQ(read.note("job"), "12");
  EXPECT_EQ(read.note("other"), "");
  EXPECT_EQ(read.time, second.time);
}

TEST_F(Journal, update_replaces_and_forget_removes) {
  Entry entry{.kind = "preempt", .target = "12"};
  ASSERT_TRUE(record(lab_, &entry).ok());
  entry.text = "preempted by job 13";
  ASSERT_TRUE(update(lab_, entry).ok());
  EXPECT_EQ(in_force(lab_)->at(0).text, "preempted by job 13");
  ASSERT_TRUE(forget(lab_, entry).ok());
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, a_file_that_is_being_written_is_passed_over_and_a_damaged_one_is_named) {
  ASSERT_TRUE(make_directories(lab_.folder / "faults").ok());
  ASSERT_TRUE(write_file(lab_.folder / "faults/1.json.abc.tmp", "half").ok());
  EXPECT_THAT(targets(), IsEmpty());
  const Path damaged = lab_.folder / "faults/1.json";
  for (const char* text : {"", "[]", "{", "{\"kind\": \"cut\"}", "{\"kind\": 3, \"target\": \"n1\"}"}) {
    ASSERT_TRUE(write_file(damaged, text).ok());
    const auto entries = in_force(lab_);
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(entries.error().message(), damaged.string() + ": is no fault of a lab");
    EXPECT_EQ(entries.error().code(), Code::corrupt);
  }
}

std::string refusal(Lab& lab, Request request) {
  const auto done = cause(lab, request);
  return done ? "done: " + done->text : done.error().to_string();
}

TEST_F(Journal, a_fault_that_makes_no_sense_leaves_no_entry) {
  EXPECT_EQ(refusal(lab_, {.kind = "cutt", .target = "n1"}),
            "no fault 'cutt'; did you mean 'cut'?\n  try: stoker lab fault");
  EXPECT_EQ(refusal(lab_, {.kind = "cut"}), "cut: of what? (NODE)\n  try: stoker lab fault");
  EXPECT_EQ(refusal(lab_, {.kind = "cut", .target = "n9"}), "n9: no such node in lab1 (there are: n1, n2)");
  EXPECT_EQ(refusal(lab_, {.kind = "cut", .target = "n2"}),
            "n2: its link cannot be cut: nodes of lab1 share this host's network (mode processes)\n"
            "  try: stoker lab up --mode namespaces     (as root)");
  EXPECT_EQ(refusal(lab_, {.kind = "slow", .target = "n2"}),
            "n2: its link cannot be slowed: nodes of lab1 share this host's network (mode processes)\n"
            "  try: stoker lab up --mode namespaces     (as root)");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "n1", .rank = 0}), "n1: has no ranks (--rank 0)");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "n1"}), "n1: slurmd does not run");
  EXPECT_EQ(refusal(lab_, {.kind = "freeze", .target = "controller"}), "controller: slurmctld does not run");
  EXPECT_EQ(refusal(lab_, {.kind = "kill", .target = "gpu"}),
            "gpu: no such node in lab1 (there are: n1, n2)");
  EXPECT_EQ(refusal(lab_, {.kind = "expire", .target = "n1"}), "n1: is no job id");
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, the_same_fault_twice_is_refused_with_the_way_to_heal_it) {
  Entry entry{.kind = "cut", .target = "n2", .text = "link down"};
  ASSERT_TRUE(record(lab_, &entry).ok());
  EXPECT_THAT(refusal(lab_, {.kind = "cut", .target = "n2"}),
              ::testing::MatchesRegex("n2: link down since .*\n  try: stoker lab fault heal n2"));
  lab_.name = "class";
  EXPECT_THAT(
      refusal(lab_, {.kind = "cut", .target = "n2"}),
      ::testing::MatchesRegex("n2: link down since .*\n  try: stoker lab fault heal n2 --name class"));
}

TEST_F(Journal, nothing_is_asked_of_a_controller_that_cannot_answer) {
  Entry entry{.kind = "freeze", .target = "controller", .text = "slurmctld frozen"};
  ASSERT_TRUE(record(lab_, &entry).ok());
  EXPECT_EQ(refusal(lab_, {.kind = "drain", .target = "n1"}),
            "lab1: its controller does not answer (a fault of it is in force)\n"
            "  try: stoker lab fault heal controller");
}

TEST_F(Journal, healing_names_what_is_in_force) {
  EXPECT_TRUE(heal(lab_, "")->lines.empty());
  EXPECT_EQ(heal(lab_, "n1").error().message(), "n1: nothing to heal in lab1 (no fault is in force)");
  Entry entry{.kind = "freeze", .target = "12", .rank = 1, .notes = {{"job", "12"}}};
  ASSERT_TRUE(record(lab_, &entry).ok());
  EXPECT_EQ(heal(lab_, "n1").error().message(), "n1: nothing to heal in lab1 (in force: 12)");
  EXPECT_THAT(heal(lab_, "12")->lines, ElementsAre("12: rank 1 is gone"));
  EXPECT_THAT(targets(), IsEmpty());
}

TEST_F(Journal, a_fault_recorded_but_never_caused_heals) {
  Entry entry{.kind = "fill", .target = "shared"};
  ASSERT_TRUE(make_directories(lab_.shared()).ok());
  ASSERT_TRUE(record(lab_, &entry).ok());
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
