#include "stage/broadcast/tree_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

using testing::HasSubstr;

ArchiveEntry file(const std::string& name, std::uint64_t bytes = 3) {
  ArchiveEntry entry{.name = name};
  entry.bytes = bytes;
  return entry;
}
ArchiveEntry link(const std::string& name, const std::string& target, EntryKind kind) {
  return {.name = name, .kind = kind, .link = target};
}
Status parsed(std::vector<ArchiveEntry> copies) {
  return parse_tree_list(encode_tree_list({.copies = std::move(copies), .archives = {}})).status();
}

TEST(TreeList, a_list_is_read_back) {
  TreeList list;
  list.copies = {
      {.name = "env", .kind = EntryKind::folder, .mode = 0750, .mtime = -5, .mtime_ns = 999'999'999},
      file("env/a \n\xff", 7),
      link("env/same", "env/a \n\xff", EntryKind::hard_link),
      link("env/out", "/usr/bin/python", EntryKind::symbolic_link),
      file("env/b", 5)};
  list.archives = {file(".staging-archives/0/words.tar", 100)};
  const auto again = parse_tree_list(encode_tree_list(list));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(encode_tree_list(*again), encode_tree_list(list));
  EXPECT_EQ(again->bytes, 112u);
  EXPECT_EQ(again->copies[4].data_position, 7u);
  EXPECT_EQ(again->archives[0].data_position, 12u);
}

TEST(TreeList, lists_that_would_write_elsewhere_are_refused) {
  for (const char* name : {"../up", "/etc/passwd", "a/../../up", "a//b", "", ".", "a/"}) {
    const Status status = parsed({file(name)});
    EXPECT_EQ(status.code(), Code::corrupt) << name;
  }
  EXPECT_THAT(parsed({link("a", "/etc", EntryKind::symbolic_link), file("a/b")}).message(),
              HasSubstr("is below 'a'"));
  EXPECT_EQ(parsed({link("a", "../up", EntryKind::hard_link)}).code(), Code::corrupt);
  EXPECT_EQ(parsed({file("a"), file("a")}).message(), "the list of staged files has a name twice");
  EXPECT_EQ(parsed({file("a", std::uint64_t{1} << 60), file("b", 1)}).message(),
            "the list of staged files has impossible sizes");
  EXPECT_EQ(parsed({link(".staging-archives/0/x", "/etc", EntryKind::symbolic_link)}).code(), Code::corrupt);
}

TEST(TreeList, each_shorter_list_is_refused_or_has_fewer_entries) {
  const std::string whole = encode_tree_list({.copies = {file("a"), file("b")}, .archives = {}});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto list = parse_tree_list(std::string_view(whole).substr(0, length));
    if (list.ok()) {
      EXPECT_LT(list->copies.size(), 2u) << length;
    }
  }
  EXPECT_FALSE(parse_tree_list(whole + "x").ok());
}

TEST(TreeList, two_sources_of_the_same_name_are_refused) {
  EXPECT_EQ(tree_sources({.unpack = {}, .copy = {"/a/env", "/b/env/"}, .back = {}}).status().message(),
            "env: already exists (two staged items have the same name)");
  EXPECT_TRUE(tree_sources({.unpack = {"/a/x.tar", "/b/x.tar"}, .copy = {"/a/env"}, .back = {}}).ok());
}

}  // namespace
}  // namespace stoker::stage
