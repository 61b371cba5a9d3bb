#include "stage/listing.h"

#include <gmock/gmock.h>

namespace stoker::stage {
namespace {

ArchiveEntry file(std::string name, std::uint64_t data_position = 0) {
  return {.name = std::move(name), .data_position = data_position};
}
ArchiveEntry link_to(std::string name, std::string target, EntryKind kind = EntryKind::symbolic_link) {
  ArchiveEntry entry{.name = std::move(name), .kind = kind};
  entry.link = std::move(target);
  return entry;
}

std::string refusal(std::vector<ArchiveEntry> entries, OutsideLinks links = OutsideLinks::refused) {
  return resolve("a.tar", std::move(entries), links).status().to_string();
}

TEST(Listing, names_are_cleaned_or_refused) {
  EXPECT_EQ(*clean_name("a.tar", "./a//b/./c/"), "a/b/c");
  EXPECT_EQ(*clean_name("a.tar", "./"), "");
  EXPECT_EQ(*clean_name("a.tar", "..a/b..c"), "..a/b..c");
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a/..", ""}) {
    EXPECT_EQ(clean_name("a.tar", name).status().to_string(),
              format("a.tar: member '{}' is outside the folder it is unpacked into", name));
  }
}

TEST(Listing, distinguishes_links_inside_from_links_outside) {
  EXPECT_TRUE(stays_inside("bin/python", "python3"));
  EXPECT_TRUE(stays_inside("lib/a/x.so", "../../other/x.so.1"));
  EXPECT_TRUE(stays_inside("current", "versions/2"));
  for (const auto& [name, target] :
       std::vector<std::pair<const char*, const char*>>{{"bin/python", "/usr/bin/python3"},
                                                        {"x", "../x"},
                                                        {"a/b", "../../x"},
                                                        {"b", "a/../x"},
                                                        {"b", ""}}) {
    EXPECT_FALSE(stays_inside(name, target)) << name << " to " << target;
  }
}

TEST(Listing, refuses_links_outside_unless_allowed) {
  const std::vector<ArchiveEntry> entries = {link_to("bin/python", "/usr/bin/python3")};
  EXPECT_EQ(
      refusal(entries),
      "a.tar: the link 'bin/python' to '/usr/bin/python3' points outside the folder (stage.outside_links)\n"
      "  try: stage: {outside_links: true} keeps such links unchanged");
  EXPECT_EQ(refusal(entries, OutsideLinks::kept), "ok");
}

TEST(Listing, refuses_members_below_a_link_or_file) {
  EXPECT_EQ(refusal({link_to("a", "b"), file("a/x")}, OutsideLinks::kept),
            "a.tar: member 'a/x' is below 'a', which is not a folder in the archive");
  EXPECT_EQ(refusal({file("a/b/x"), file("a/b")}),
            "a.tar: member 'a/b/x' is below 'a/b', which is not a folder in the archive");
}

TEST(Listing, uses_the_last_of_members_with_the_same_name) {
  const auto kept = resolve("a.tar", {file("a", 1), file("b", 2), file("a", 3)}, OutsideLinks::refused);
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[1].name, "a");
  EXPECT_EQ((*kept)[1].data_position, 3u);
}

TEST(Listing, a_hard_link_must_lead_to_a_file_of_the_archive) {
  EXPECT_EQ(refusal({file("a"), link_to("b", "a", EntryKind::hard_link)}), "ok");
  EXPECT_EQ(refusal({link_to("b", "nothing", EntryKind::hard_link)}),
            "a.tar: the link 'b' to 'nothing' refers to no file in the archive");
}

}  // namespace
}  // namespace stoker::stage
