#include "stage/listing.h"

#include <gmock/gmock.h>

namespace stoker::stage {
namespace {

Entry file(std::string name, std::uint64_t place = 0) { return {.name = std::move(name), .place = place}; }
Entry link_to(std::string name, std::string target, Kind kind = Kind::symbolic_link) {
  Entry entry{.name = std::move(name), .kind = kind};
  entry.link = std::move(target);
  return entry;
}

std::string refusal(std::vector<Entry> entries, OutsideLinks links = OutsideLinks::refused) {
  return resolve("a.tar", std::move(entries), links).status().to_string();
}

TEST(Listing, names_are_cleaned_or_refused) {
  EXPECT_EQ(*clean_name("a.tar", "./a//b/./c/"), "a/b/c");
  EXPECT_EQ(*clean_name("a.tar", "./"), "");
  EXPECT_EQ(*clean_name("a.tar", "..a/b..c"), "..a/b..c");
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a/..", ""}) {
    EXPECT_EQ(clean_name("a.tar", name).status().to_string(),
              format("a.tar: member '{}' leads out of the folder it is unpacked into", name));
  }
}

TEST(Listing, links_that_stay_inside_are_told_from_those_that_may_not) {
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

TEST(Listing, a_link_that_leads_out_is_refused_unless_it_is_wanted) {
  const std::vector<Entry> entries = {link_to("bin/python", "/usr/bin/python3")};
  EXPECT_EQ(
      refusal(entries),
      "a.tar: the link 'bin/python' to '/usr/bin/python3' leads out of the folder (stage.outside_links)\n"
      "  try: stage: {outside_links: true} keeps such links as they are");
  EXPECT_EQ(refusal(entries, OutsideLinks::kept), "ok");
}

TEST(Listing, nothing_is_written_through_a_link_or_a_file) {
  EXPECT_EQ(refusal({link_to("a", "b"), file("a/x")}, OutsideLinks::kept),
            "a.tar: member 'a/x' lies below 'a', which is no folder in it");
  EXPECT_EQ(refusal({file("a/b/x"), file("a/b")}),
            "a.tar: member 'a/b/x' lies below 'a/b', which is no folder in it");
}

TEST(Listing, of_members_with_one_name_the_last_counts) {
  const auto kept = resolve("a.tar", {file("a", 1), file("b", 2), file("a", 3)}, OutsideLinks::refused);
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[1].name, "a");
  EXPECT_EQ((*kept)[1].place, 3u);
}

TEST(Listing, a_hard_link_must_lead_to_a_file_of_the_archive) {
  EXPECT_EQ(refusal({file("a"), link_to("b", "a", Kind::hard_link)}), "ok");
  EXPECT_EQ(refusal({link_to("b", "nothing", Kind::hard_link)}),
            "a.tar: the link 'b' to 'nothing' leads to no file of it");
}

}  // namespace
}  // namespace stoker::stage
