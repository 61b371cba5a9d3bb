#include "slurm/script/option_names.h"

#include <gtest/gtest.h>

namespace stoker::slurm {
namespace {

TEST(OptionNames, options_with_which_sbatch_does_not_just_submit_are_refused) {
  EXPECT_TRUE(check_own_option("--time=1:00").ok());
  EXPECT_TRUE(check_own_option("-C v100").ok());
  EXPECT_EQ(check_own_option("--wait").message(), "'--wait': --wait has no place here");
  EXPECT_EQ(check_own_option("-W").message(), "'-W': --wait has no place here");
  EXPECT_EQ(check_own_option("--test-only").message(), "'--test-only': --test-only has no place here");
  EXPECT_EQ(check_own_option("time=1").message(), "'time=1' is no option for sbatch (as in --time=1:00:00)");
  EXPECT_EQ(check_own_option("--a\nb").message(), "'--a\\x0ab' has a control character");
  EXPECT_EQ(check_own_option("--x=" + std::string(5000, 'y')).message(),
            "an option of 5004 bytes is too long");
}

TEST(OptionNames, a_mistyped_option_is_recognized) {
  EXPECT_EQ(likely_option("--ntaks-per-node=4"), "--ntasks-per-node");
  EXPECT_EQ(likely_option("--cpu-per-task"), "--cpus-per-task");
  EXPECT_EQ(likely_option("--frobnicate"), "");
}

TEST(OptionNames, options_are_known_by_their_beginnings) {
  EXPECT_EQ(look_up_option("--time"), OptionName::known);
  EXPECT_EQ(look_up_option("--cores"), OptionName::known);
  EXPECT_EQ(look_up_option("--gpu"), OptionName::ambiguous);
  EXPECT_EQ(look_up_option("--cluster"), OptionName::known);
  EXPECT_EQ(look_up_option("--clust"), OptionName::ambiguous);
  EXPECT_EQ(look_up_option("--ntaks-per-node"), OptionName::unknown);
}

}  // namespace
}  // namespace stoker::slurm
