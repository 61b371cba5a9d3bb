#include "profile/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::profile {
namespace {

using ::testing::HasSubstr;

Profile with_gain(TimeSource source, std::optional<ProfilePart> part) {
  Profile profile;
  profile.source = source;
  profile.gains = {{part, 1.5}};
  for (const int rank : {0, 1}) profile.ranks.push_back({.rank = rank, .steps = 1});
  profile.ranks[1].times[ProfilePart::forward] = 10;
  return profile;
}

std::string command_for(const AdviceContext& context, Profile profile) {
  advise(context, profile);
  EXPECT_FALSE(profile.advice.empty());
  return profile.command;
}

const AdviceContext kTrained{.run = "last", .job = "a job.yaml", .dataset = "/data/set", .hosts = 1};

TEST(Advice, commands_name_the_run_its_job_and_its_data) {
  const auto trained = [](std::optional<ProfilePart> part) {
    return command_for(kTrained, with_gain(TimeSource::trainer, part));
  };
  EXPECT_EQ(trained(ProfilePart::data), "stoker data bench /data/set");
  EXPECT_EQ(trained(ProfilePart::communication), "stoker run 'a job.yaml' --set train.accumulate=2");
  EXPECT_EQ(trained(ProfilePart::checkpoint), "stoker checkpoint list last");
  EXPECT_EQ(trained(ProfilePart::other), "stoker run 'a job.yaml' --set record.trace=20");
  EXPECT_EQ(trained(std::nullopt), "stoker report last");
}

TEST(Advice, slow_communication_between_nodes_is_measured_first) {
  AdviceContext context = kTrained;
  context.hosts = 2;
  EXPECT_EQ(command_for(context, with_gain(TimeSource::program, ProfilePart::communication)),
            "stoker hello 'a job.yaml'");
}

TEST(Advice, files_without_a_run_have_no_commands_about_runs) {
  for (const ProfilePart part : {ProfilePart::communication, ProfilePart::host_to_device, ProfilePart::host,
                                 ProfilePart::copies, ProfilePart::checkpoint, ProfilePart::other})
    EXPECT_EQ(command_for({}, with_gain(TimeSource::trace, part)), "");
  Profile slow = with_gain(TimeSource::trace, std::nullopt);
  advise({}, slow);
  EXPECT_EQ(slow.advice, "rank 1 is the slowest: compare its node with the nodes of its peers");
}

TEST(Advice, nothing_to_gain_needs_no_advice) {
  Profile profile;
  advise(kTrained, profile);
  EXPECT_TRUE(profile.advice.empty());
}

}  // namespace
}  // namespace stoker::profile
