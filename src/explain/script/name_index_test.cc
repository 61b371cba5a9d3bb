// Names of a script are found as the rules ask for them: whole, by how they begin, outside comments.
#include "explain/script/name_index.h"

#include <gmock/gmock.h>

#include "explain/script/script.h"

namespace stoker::explain {
namespace {

TEST(NameIndex, a_name_is_found_whole_and_outside_comments) {
  const auto script = read_script("a", "#!/bin/bash\n# later=1 $later\nout=1\n./run ${#out} $outer later\n");
  EXPECT_TRUE(script->names.is_read("out"));
  EXPECT_FALSE(script->names.is_read("later"));
  EXPECT_EQ(script->names.first_given("out"), script->text.find("out=1"));
  EXPECT_EQ(script->names.first_given("later"), script->text.rfind("later"));
  EXPECT_EQ(script->names.first_given("oute"), std::string_view::npos);
}

TEST(NameIndex, a_longer_name_mentions_its_beginning) {
  const auto script =
      read_script("a", "#!/bin/bash\n# $later_one\n./run ${outer[1]}\nx=$((count_all + 1))\n");
  EXPECT_TRUE(script->names.is_mentioned("later"));
  EXPECT_TRUE(script->names.is_mentioned("out"));
  EXPECT_FALSE(script->names.is_mentioned("uter"));
  EXPECT_TRUE(script->names.is_counted("count"));
  EXPECT_FALSE(script->names.is_counted("outer"));
}

TEST(NameIndex, settings_exports_and_loops_are_told_apart) {
  const auto script =
      read_script("a", "#!/bin/bash\na=1\nexport b=2\na=3\nfor c in 1 2; do ./run $c; done\n");
  EXPECT_THAT(script->names.settings_of("a"), testing::ElementsAre(0, 2));
  EXPECT_TRUE(script->names.settings_of("c").empty());
  EXPECT_TRUE(script->names.is_exported("b"));
  EXPECT_FALSE(script->names.is_exported("a"));
  EXPECT_TRUE(script->names.is_loop_variable("c"));
}

TEST(NameIndex, what_a_comment_says_is_not_mentioned_by_the_script) {
  const auto script = read_script("a", "#!/bin/bash\n./a  # Checkpoint\n./b Resume\n");
  EXPECT_FALSE(script->mentions("checkpoint"));
  EXPECT_TRUE(script->mentions("RESUME"));
}

}  // namespace
}  // namespace stoker::explain
