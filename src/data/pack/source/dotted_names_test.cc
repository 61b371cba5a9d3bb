#include "data/pack/source/dotted_names.h"

#include <gtest/gtest.h>

namespace stoker::data {
namespace {

using Names = std::vector<std::string>;

// What files of these names, sorted, are packed as; or why they are not.
Names packed(const Names& names) {
  std::vector<SourceFile> files;
  for (const std::string& name : names) files.push_back({.name = name});
  Names own_names;
  const Status status = join_dots(files, "in/cat", own_names);
  if (!status.ok()) return {std::string(status.message())};
  Names now;
  for (const SourceFile& file : files) now.push_back(file.name);
  return now;
}

TEST(DottedNames, of_an_image_by_itself_is_one_name) {
  EXPECT_EQ(packed({"0010.v1.jpg", "1.jpg"}), (Names{"0010_v1.jpg", "1.jpg"}));
  EXPECT_EQ(packed({"0010.v1.jpg", "0010.v1.json"}), (Names{"0010_v1.jpg", "0010_v1.json"}));
  EXPECT_EQ(packed({"a.b.c.PNG"}), (Names{"a_b_c.PNG"}));
  EXPECT_EQ(packed({"a..jpg"}), (Names{"a_.jpg"}));
}

TEST(DottedNames, of_images_that_a_number_tells_apart_are_names) {
  EXPECT_EQ(packed({"2021.07.12.jpg", "2021.07.13.jpg"}), (Names{"2021_07_12.jpg", "2021_07_13.jpg"}));
  EXPECT_EQ(packed({"f.0001.jpg", "f.0001.seg.png", "f.0002.jpg", "f.txt"}),
            (Names{"f.txt", "f_0001.jpg", "f_0001.seg.png", "f_0002.jpg"}));
}

TEST(DottedNames, of_the_files_of_one_sample_stay_as_they_are) {
  for (const Names& names :
       {Names{"1.jpg", "1.json", "1.seg.png"}, Names{"1.2.jpg", "1.jpg"}, Names{"1.depth.png", "1.rgb.png"},
        Names{"1.seg.png", "1.txt"}, Names{"1.a.txt"}})
    EXPECT_EQ(packed(names), names);
}

TEST(DottedNames, that_would_meet_another_are_refused) {
  EXPECT_EQ(packed({"1.2.jpg", "1_2.jpg"}),
            Names{"in/cat: '1.2.jpg' and '1_2.jpg' would both be the sample '1_2': dots become _"});
  EXPECT_EQ(packed({"1.2.jpg", "1_2.json"}),
            Names{"in/cat: '1.2.jpg' and '1_2.json' would both be the sample '1_2': dots become _"});
}

TEST(DottedNames, of_rows_of_a_list_end_at_the_last_dot_whatever_lies_beside) {
  Names own_names;
  SourceFile file{.name = "1.rgb.png"};
  join_dots(file, own_names);
  EXPECT_EQ(file.name, "1_rgb.png");
  EXPECT_EQ(file.own_name, 1u);
  EXPECT_EQ(own_names, Names{"1.rgb.png"});
}

}  // namespace
}  // namespace stoker::data
