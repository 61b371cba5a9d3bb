#include "cli/remote/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostOption, is_removed_from_the_arguments_of_the_remote_command) {
  const auto without = [](std::vector<std::string> words) { return without_host(words); };
  EXPECT_THAT(without({"job.yaml", "--host", "login", "--dry-run"}), ElementsAre("job.yaml", "--dry-run"));
  EXPECT_THAT(without({"--host=login:/work", "--host-program=/opt/stoker", "last"}), ElementsAre("last"));
  EXPECT_THAT(without({"--host-program", "/opt/stoker"}), IsEmpty());
  EXPECT_THAT(without({"--host"}), IsEmpty());
}

TEST(HostOption, is_kept_after_a_double_dash) {
  const std::vector<std::string> words = {"--host", "login", "--", "--host", "x"};
  EXPECT_THAT(without_host(words), ElementsAre("--", "--host", "x"));
}

TEST(HostOption, options_are_added_after_the_typed_ones_and_before_a_double_dash) {
  const std::vector<std::string> added = {"--lang", "fr"};
  const auto with = [&](std::vector<std::string> words) { return with_options(words, added); };
  EXPECT_THAT(with({"last", "--lang", "auto"}), ElementsAre("last", "--lang", "auto", "--lang", "fr"));
  EXPECT_THAT(with({"--json", "--", "--odd.log", "--"}),
              ElementsAre("--json", "--lang", "fr", "--", "--odd.log", "--"));
  EXPECT_THAT(with({}), ElementsAre("--lang", "fr"));
}

}  // namespace
}  // namespace stoker::cli
