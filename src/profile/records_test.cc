#include "profile/records.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/print/json.h"
#include "profile/print/text.h"

namespace stoker::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kHeader =
    "step,data_s,forward_s,backward_s,communication_s,optimizer_s,checkpoint_s,step_s\n";

// Files of ranks.
class Records {
 public:
  void put(int rank, std::string_view rows, std::string_view header = kHeader) {
    const Path file = box_ / format("metrics-{:04}.csv", rank);
    ASSERT_TRUE(write_file(file, std::string(header) + std::string(rows)).ok());
    files_[rank] = file;
  }
  Result<Profile> read(const StepSelection& selection = {}) const {
    Profile profile;
    profile.subject = "test";
    STOKER_RETURN_IF_ERROR(read_records(files_, TimeSource::trainer, selection, profile));
    return profile;
  }
  std::map<int, Path>& files() { return files_; }
  const Path& folder() const { return box_.path(); }

 private:
  TempDirectory box_;
  std::map<int, Path> files_;
};

std::optional<double> factor_of(const Profile& profile, std::optional<ProfilePart> part) {
  for (const Gain& gain : profile.gains) {
    if (gain.part == part) return gain.factor;
  }
  return std::nullopt;
}

TEST(StepRecords, parts_and_the_rest_add_up_to_the_step) {
  Records records;
  records.put(0, "1,0.1,0.2,0.3,0.05,0.1,0,1.0\n2,0.1,0.2,0.3,0.05,0.1,0.2,1.0\n");
  const auto profile = records.read();
  ASSERT_TRUE(profile.ok()) << profile.status().to_string();
  ASSERT_THAT(profile->ranks, SizeIs(1));
  const RankProfile& rank = profile->ranks[0];
  EXPECT_EQ(rank.steps, 2);
  EXPECT_EQ(rank.times.total(), 2'000'000'000);
  EXPECT_EQ(rank.times[ProfilePart::other], 300'000'000);
  EXPECT_DOUBLE_EQ(profile->seconds_of(ProfilePart::checkpoint), 0.1);
  EXPECT_DOUBLE_EQ(profile->step_s(), 1);
  EXPECT_THAT(profile->measured,
              ElementsAre(ProfilePart::data, ProfilePart::forward, ProfilePart::backward,
                          ProfilePart::communication, ProfilePart::optimizer, ProfilePart::checkpoint));
}

TEST(StepRecords, parts_of_any_rows_are_never_negative_and_add_up) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(-0.05, 1);
  for (int round = 0; round < 50; ++round) {
    Records records;
    const int ranks = 1 + round % 4;
    for (int rank = 0; rank < ranks; ++rank) {
      std::string rows;
      for (int step = 1; step <= 20; ++step) {
        rows += format("{}", step);
        for (int column = 0; column < 7; ++column) rows += format(",{}", std::max(0.0, seconds(random)));
        rows += "\n";
      }
      records.put(rank, rows);
    }
    const auto profile = records.read({.first = 1, .last = std::nullopt});
    ASSERT_TRUE(profile.ok());
    double sum = 0;
    for (const ProfilePart part : kAllParts) sum += profile->seconds_of(part);
    EXPECT_NEAR(sum, profile->step_s(), 1e-9 * sum);
    for (const RankProfile& rank : profile->ranks) {
      EXPECT_EQ(rank.steps, 20);
      for (const Nanos nanos : rank.times.nanos) EXPECT_GE(nanos, 0);
    }
    for (const Gain& gain : profile->gains) EXPECT_GE(gain.factor, 1.01);
  }
}

TEST(StepRecords, parts_longer_than_their_step_lengthen_it) {
  Records records;
  records.put(0, "1,0.5,0.5,0.5,0,0,0,1.0\n");
  const auto profile = records.read();
  ASSERT_TRUE(profile.ok());
  EXPECT_DOUBLE_EQ(profile->step_s(), 1.5);
  EXPECT_EQ(profile->ranks[0].times[ProfilePart::other], 0);
}

TEST(StepRecords, slow_first_steps_are_warm_up_unless_steps_are_chosen) {
  Records records;
  records.put(0,
              "1,9,0,0,0,0,0,9\n2,2,0,0,0,0,0,2\n3,1,0,0,0,0,0,1\n4,1,0,0,0,0,0,1\n5,1,0,0,0,0,0,1\n6,1,0,0,"
              "0,0,0,1\n");
  const auto automatic = records.read();
  ASSERT_TRUE(automatic.ok());
  EXPECT_EQ(automatic->range->first, 3);
  EXPECT_EQ(automatic->range->last, 6);
  EXPECT_EQ(automatic->range->warm_up, 2);
  EXPECT_DOUBLE_EQ(automatic->step_s(), 1);
  const auto chosen = records.read({.first = 1, .last = 2});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->range->warm_up, 0);
  EXPECT_DOUBLE_EQ(chosen->step_s(), 5.5);
  EXPECT_THAT(std::string(records.read({.first = 7, .last = {}}).status().message()), HasSubstr("--steps"));
}

TEST(StepRecords, a_gain_is_limited_by_the_slowest_rank) {
  Records records;
  // Rank 0 waits 0.4 s for data; rank 1 waits for rank 0 in the collective.
  records.put(0, "1,0.4,0.5,0,0.1,0,0,1.0\n");
  records.put(1, "1,0.0,0.5,0,0.5,0,0,1.0\n");
  const auto profile = records.read();
  ASSERT_TRUE(profile.ok());
  EXPECT_DOUBLE_EQ(*factor_of(*profile, ProfilePart::data), 1.0 / 0.6);
  EXPECT_DOUBLE_EQ(*factor_of(*profile, ProfilePart::communication), 1.0 / 0.9);
  EXPECT_DOUBLE_EQ(*factor_of(*profile, std::nullopt), 1.0 / 0.8);
  EXPECT_EQ(profile->worst_rank(ProfilePart::data)->rank, 0);
  EXPECT_EQ(profile->worst_rank(ProfilePart::communication)->rank, 1);
  EXPECT_EQ(profile->slowest_rank()->rank, 0);
  EXPECT_EQ(profile->worst_rank(ProfilePart::checkpoint), nullptr);
}

TEST(StepRecords, damaged_rows_and_ranks_without_steps_are_left_out_and_noted) {
  Records records;
  records.put(
      0, "1,0,1,0,0,0,0,1\nnan,0,1,0,0,0,0,1\n2,-1,1,0,0,0,0,1\n3,0,1e300,0,0,0,0,1\n2,0,1,0,0,0,0,1\n4,0,1");
  records.put(1, "100,0,1,0,0,0,0,1\n");
  records.put(2, "", "time,loss\n");
  records.files()[3] = records.folder() / "gone.csv";
  const auto profile = records.read();
  ASSERT_TRUE(profile.ok());
  ASSERT_THAT(profile->ranks, SizeIs(1));
  EXPECT_EQ(profile->ranks[0].steps, 2);
  ASSERT_THAT(profile->notes, SizeIs(4));
  EXPECT_EQ(profile->notes[0], "metrics-0000.csv: damaged lines skipped: 3");
  EXPECT_EQ(profile->notes[1], "rank 1: no record of these steps");
  EXPECT_THAT(profile->notes[2].english(), HasSubstr("no records of steps (columns step and step_s)"));
  EXPECT_THAT(profile->notes[3].english(), HasSubstr("gone.csv"));
}

TEST(StepRecords, nothing_readable_is_not_found) {
  Records records;
  EXPECT_EQ(records.read().status().code(), Code::not_found);
  records.put(0, "");
  EXPECT_EQ(records.read().status().message(), "test: no recorded step");
}

TEST(StepRecords, ranges_of_steps_are_parsed_strictly) {
  EXPECT_EQ(parse_steps("100..500")->first, 100);
  EXPECT_EQ(parse_steps("100..500")->last, 500);
  EXPECT_EQ(parse_steps("..500")->first, std::nullopt);
  EXPECT_EQ(parse_steps("7..")->last, std::nullopt);
  EXPECT_EQ(parse_steps("7")->last, 7);
  for (const std::string_view wrong : {"", "..", "x", "-1..3", "5..3", "1...3", "1..2..3"})
    EXPECT_EQ(parse_steps(wrong).status().code(), Code::invalid) << wrong;
}

TEST(ProfileText, shows_every_measured_part_and_the_gains) {
  Records records;
  records.put(0, "1,0.5,0.25,0.25,0,0,0,1\n");
  auto profile = records.read();
  ASSERT_TRUE(profile.ok());
  const std::string text = to_plain_text(*profile, Translator());
  EXPECT_THAT(text, HasSubstr("wait for data"));
  EXPECT_THAT(text, HasSubstr("500 ms    50.0 %"));
  EXPECT_THAT(text, HasSubstr("if data never waited: 2.00 x"));
  EXPECT_THAT(text, testing::Not(HasSubstr("GPU compute")));
  EXPECT_THAT(to_json(*profile), HasSubstr(R"("gains":[{"without":"data","factor":2.0}])"));
}

}  // namespace
}  // namespace stoker::profile
