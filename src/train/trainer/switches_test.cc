#include "train/trainer/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Answer {
  Status status;
  SwitchSettings settings;
};

Answer read_all(const std::vector<std::string>& words) {
  Answer answer;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto is_switch = read_switch(words, at, answer.settings);
    if (!is_switch.ok()) {
      answer.status = is_switch.status();
      return answer;
    }
    EXPECT_TRUE(*is_switch) << words[at];
  }
  return answer;
}

TEST(Switches, set_keys_of_the_job) {
  EXPECT_THAT(
      read_all({"-b", "64", "--epochs=3", "--lr", "0.5", "--no-drop-last"}).settings.set,
      ElementsAre("train.batch=64", "train.epochs=3", "train.optimizer.lr=0.5", "train.drop_last=false"));
  EXPECT_THAT(read_all({"--chkpt", "--find-unused-parameters"}).settings.set,
              ElementsAre("checkpoint.every=1 epoch", "train.find_unused_parameters=true"));
}

TEST(Switches, test_steps_are_overridden_by_an_explicit_number) {
  const auto expected =
      ElementsAre("train.steps=50", "train.validate_every=0", "train.steps=7", "train.validate_every=0");
  EXPECT_THAT(read_all({"--test", "--test-nsteps", "7"}).settings.set, expected);
  EXPECT_THAT(read_all({"--test-nsteps", "7", "--test"}).settings.set, expected);
}

TEST(Switches, without_effect_are_noted) {
  const Answer answer = read_all({"--pin-memory", "--no-persistent-workers"});
  EXPECT_TRUE(answer.settings.set.empty());
  EXPECT_THAT(answer.settings.notes,
              ElementsAre("--pin-memory has no effect: training runs on the CPU, without copies to a GPU",
                          "--no-persistent-workers has no effect: decoding threads live as long as the "
                          "training"));
}

TEST(Switches, with_a_missing_or_extra_value_are_rejected) {
  EXPECT_EQ(read_all({"--epochs"}).status.message(), "--epochs: a value is missing");
  EXPECT_EQ(read_all({"--test=5"}).status.message(), "--test=5: takes no value");
}

TEST(Switches, are_distinguished_from_other_arguments) {
  SwitchSettings settings;
  for (const char* other : {"--job", "epochs", "-x", "--no-epochs", "--no-", "--", ""}) {
    const std::vector<std::string> words{other};
    std::size_t at = 0;
    const auto is_switch = read_switch(words, at, settings);
    ASSERT_TRUE(is_switch.ok());
    EXPECT_FALSE(*is_switch) << other;
  }
}

TEST(Switches, are_all_in_the_help) {
  const std::string help = switches_help();
  for (const Switch& item : switches()) EXPECT_THAT(help, HasSubstr(std::string(item.name.substr(2))));
  EXPECT_THAT(help, HasSubstr("-b, --batch-size N"));
  EXPECT_THAT(help, HasSubstr("--[no-]pin-memory"));
}

}  // namespace
}  // namespace stoker::train
