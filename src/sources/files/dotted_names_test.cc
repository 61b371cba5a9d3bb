#include "sources/files/dotted_names.h"

#include <gtest/gtest.h>

namespace stoker::sources {
namespace {

using Names = std::vector<std::string>;

// The packed names of these sorted files, or the error.
Names packed(const Names& names) {
  std::vector<SourceFile> files;
  for (const std::string& name : names) files.push_back({.name = name});
  Names original_names;
  const Status status = replace_dots(files, "in/cat", original_names);
  if (!status.ok()) return {std::string(status.message())};
  Names now;
  for (const SourceFile& file : files) now.push_back(file.name);
  return now;
}

TEST(DottedNames, single_image_keeps_its_whole_name) {
  EXPECT_EQ(packed({"0010.v1.jpg", "1.jpg"}), (Names{"0010_v1.jpg", "1.jpg"}));
  EXPECT_EQ(packed({"0010.v1.jpg", "0010.v1.json"}), (Names{"0010_v1.jpg", "0010_v1.json"}));
  EXPECT_EQ(packed({"a.b.c.PNG"}), (Names{"a_b_c.PNG"}));
  EXPECT_EQ(packed({"a..jpg"}), (Names{"a_.jpg"}));
}

TEST(DottedNames, images_that_differ_by_a_number_are_separate_samples) {
  EXPECT_EQ(packed({"2021.07.12.jpg", "2021.07.13.jpg"}), (Names{"2021_07_12.jpg", "2021_07_13.jpg"}));
  EXPECT_EQ(packed({"f.0001.jpg", "f.0001.seg.png", "f.0002.jpg", "f.txt"}),
            (Names{"f.txt", "f_0001.jpg", "f_0001.seg.png", "f_0002.jpg"}));
}

TEST(DottedNames, files_of_one_sample_are_not_renamed) {
  for (const Names& names :
       {Names{"1.jpg", "1.json", "1.seg.png"}, Names{"1.2.jpg", "1.jpg"}, Names{"1.depth.png", "1.rgb.png"},
        Names{"1.seg.png", "1.txt"}, Names{"1.a.txt"}})
    EXPECT_EQ(packed(names), names);
}

TEST(DottedNames, collisions_are_errors) {
  EXPECT_EQ(packed({"1.2.jpg", "1_2.jpg"}),
            Names{"in/cat: '1.2.jpg' and '1_2.jpg' would both become the sample '1_2' (dots become _)"});
  EXPECT_EQ(packed({"1.2.jpg", "1_2.json"}),
            Names{"in/cat: '1.2.jpg' and '1_2.json' would both become the sample '1_2' (dots become _)"});
}

TEST(DottedNames, list_rows_end_at_the_last_dot) {
  Names original_names;
  SourceFile file{.name = "1.rgb.png"};
  replace_dots(file, original_names);
  EXPECT_EQ(file.name, "1_rgb.png");
  EXPECT_EQ(file.original_name, 1u);
  EXPECT_EQ(original_names, Names{"1.rgb.png"});
}

}  // namespace
}  // namespace stoker::sources
