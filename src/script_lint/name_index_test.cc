// Name queries of the rules: whole names, prefixes, outside comments.
#include "script_lint/name_index.h"

#include <gmock/gmock.h>

#include "script_lint/script.h"

namespace stoker::script_lint {
namespace {

TEST(NameIndex, a_name_is_found_whole_and_outside_comments) {
  const auto script = read_script("a", "#!/bin/bash\n# later=1 $later\nout=1\n./run ${#out} $outer later\n");
  EXPECT_TRUE(script->names.is_read("out"));
  EXPECT_FALSE(script->names.is_read("later"));
  EXPECT_EQ(script->names.first_assignment("out"), script->text.find("out=1"));
  EXPECT_EQ(script->names.first_assignment("later"), script->text.rfind("later"));
  EXPECT_EQ(script->names.first_assignment("oute"), std::string_view::npos);
}

TEST(NameIndex, a_longer_name_mentions_its_beginning) {
  const auto script =
      read_script("a", "#!/bin/bash\n# $later_one\n./run ${outer[1]}\nx=$((count_all + 1))\n");
  EXPECT_TRUE(script->names.is_mentioned("later"));
  EXPECT_TRUE(script->names.is_mentioned("out"));
  EXPECT_FALSE(script->names.is_mentioned("uter"));
  EXPECT_TRUE(script->names.is_arithmetic("count"));
  EXPECT_FALSE(script->names.is_arithmetic("outer"));
}

TEST(NameIndex, settings_exports_and_loops_are_distinguished) {
  const auto script =
      read_script("a", "#!/bin/bash\na=1\nexport b=2\na=3\nfor c in 1 2; do ./run $c; done\n");
  EXPECT_THAT(script->names.settings_of("a"), testing::ElementsAre(0, 2));
  EXPECT_TRUE(script->names.settings_of("c").empty());
  EXPECT_TRUE(script->names.is_exported("b"));
  EXPECT_FALSE(script->names.is_exported("a"));
  EXPECT_TRUE(script->names.is_loop_variable("c"));
}

TEST(NameIndex, comments_are_not_indexed) {
  const auto script = read_script("a", "#!/bin/bash\n./a  # Checkpoint\n./b Resume\n");
  EXPECT_FALSE(script->mentions("checkpoint"));
  EXPECT_TRUE(script->mentions("RESUME"));
}

}  // namespace
}  // namespace stoker::script_lint
