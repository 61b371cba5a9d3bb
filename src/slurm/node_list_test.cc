#include "slurm/node_list.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> nodes(std::string_view text) {
  auto result = expand_node_list(text);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *result : std::vector<std::string>{};
}

std::string error(std::string_view text) { return std::string(expand_node_list(text).status().message()); }

TEST(NodeList, ranges_keep_the_width_of_their_first_number) {
  EXPECT_THAT(nodes("node[001-003,7]"), ElementsAre("node001", "node002", "node003", "node7"));
  EXPECT_THAT(nodes("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(nodes("n[08-10]"), ElementsAre("n08", "n09", "n10"));
}

TEST(NodeList, commas_in_brackets_do_not_separate_names) {
  EXPECT_THAT(nodes("a[1,3],b,c[2]"), ElementsAre("a1", "a3", "b", "c2"));
}

TEST(NodeList, a_suffix_after_the_brackets_is_kept) {
  EXPECT_THAT(nodes("node[0009-0010]-int"), ElementsAre("node0009-int", "node0010-int"));
}

TEST(NodeList, several_brackets_make_the_cross_product) {
  EXPECT_THAT(nodes("r[1-2]i[0,3]n1"), ElementsAre("r1i0n1", "r1i3n1", "r2i0n1", "r2i3n1"));
}

TEST(NodeList, newlines_also_separate_names) {
  EXPECT_THAT(nodes("a\nb[1-2]\n"), ElementsAre("a", "b1", "b2"));
}

TEST(NodeList, pending_and_empty_lists_have_no_nodes) {
  EXPECT_THAT(nodes(""), IsEmpty());
  EXPECT_THAT(nodes("(null)"), IsEmpty());
}

TEST(NodeList, errors_are_reported) {
  EXPECT_EQ(error("n[1-"), "node list 'n[1-': a bracket is not closed");
  EXPECT_EQ(error("n[3-1]"), "node list 'n[3-1]': range '3-1' is descending");
  EXPECT_EQ(error("n[a]"), "node list 'n[a]': 'a' is not a number or a range of numbers");
  EXPECT_EQ(error("n[]"), "node list 'n[]': '' is not a number or a range of numbers");
  EXPECT_EQ(error("a,,b"), "node list 'a,,b': a name is empty");
  EXPECT_EQ(error("a;rm"), "node list 'a;rm': 'a;rm' is not a node name");
  EXPECT_EQ(error("n[1-2]]"), "node list 'n[1-2]]': ']' is not a node name");
}

TEST(NodeList, more_than_64_ki_nodes_are_refused_before_they_are_made) {
  EXPECT_EQ(nodes("n[0-65535]").size(), kMaxNodes);
  EXPECT_EQ(error("n[0-65536]"), "node list 'n[0-65536]': more than 65536 nodes");
  EXPECT_EQ(error("n[0-999999999999]"), "node list 'n[0-999999999999]': more than 65536 nodes");
  EXPECT_EQ(error("n[0-999]m[0-999]"), "node list 'n[0-999]m[0-999]': more than 65536 nodes");
  EXPECT_EQ(error("n[0-65535],m"), "node list 'n[0-65535],m': more than 65536 nodes");
  EXPECT_EQ(error("n[1-99999999999999999999]"),
            "node list 'n[1-99999999999999999999]': '1-99999999999999999999' is not a number or a range of "
            "numbers");
}

TEST(PerNode, repeats_are_expanded) {
  EXPECT_THAT(*expand_per_node("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*expand_per_node("64"), ElementsAre(64));
}

TEST(PerNode, errors_are_reported) {
  EXPECT_EQ(expand_per_node("").status().message(), "task counts '': '' is not a count such as 4 or 4(x2)");
  EXPECT_EQ(expand_per_node("2(x)").status().message(),
            "task counts '2(x)': '2(x)' is not a count such as 4 or 4(x2)");
  EXPECT_EQ(expand_per_node("2(x99999)").status().message(),
            "task counts '2(x99999)': '2(x99999)' is not between 1 and 65536");
  EXPECT_EQ(expand_per_node("2(x0)").status().message(),
            "task counts '2(x0)': '2(x0)' is not between 1 and 65536");
}

}  // namespace
}  // namespace stoker::slurm
