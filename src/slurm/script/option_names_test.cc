#include "slurm/script/option_names.h"

#include <gtest/gtest.h>

namespace stoker::slurm {
namespace {

TEST(OptionNames, refuses_options_that_change_what_sbatch_does) {
  EXPECT_TRUE(check_user_option("--time=1:00").ok());
  EXPECT_TRUE(check_user_option("-C v100").ok());
  EXPECT_EQ(check_user_option("--wait").message(), "'--wait': --wait is not allowed here");
  EXPECT_EQ(check_user_option("-W").message(), "'-W': --wait is not allowed here");
  EXPECT_EQ(check_user_option("--test-only").message(), "'--test-only': --test-only is not allowed here");
  EXPECT_EQ(check_user_option("time=1").message(),
            "'time=1' is not an sbatch option (such as --time=1:00:00)");
  EXPECT_EQ(check_user_option("--a\nb").message(), "'--a\\x0ab' contains a control character");
  EXPECT_EQ(check_user_option("--x=" + std::string(5000, 'y')).message(),
            "an option of 5004 bytes is too long");
}

TEST(OptionNames, a_mistyped_option_is_recognized) {
  EXPECT_EQ(suggest_option("--ntaks-per-node=4"), "--ntasks-per-node");
  EXPECT_EQ(suggest_option("--cpu-per-task"), "--cpus-per-task");
  EXPECT_EQ(suggest_option("--frobnicate"), "");
}

TEST(OptionNames, recognizes_abbreviated_options) {
  EXPECT_EQ(look_up_option("--time"), OptionName::known);
  EXPECT_EQ(look_up_option("--cores"), OptionName::known);
  EXPECT_EQ(look_up_option("--gpu"), OptionName::ambiguous);
  EXPECT_EQ(look_up_option("--cluster"), OptionName::known);
  EXPECT_EQ(look_up_option("--clust"), OptionName::ambiguous);
  EXPECT_EQ(look_up_option("--ntaks-per-node"), OptionName::unknown);
}

}  // namespace
}  // namespace stoker::slurm
