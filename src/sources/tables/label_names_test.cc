#include "sources/tables/label_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sources {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kMetadata =
    R"({"info": {"features": {"image": {"_type": "Image"},
        "label": {"names": ["tench", "goldfish"], "_type": "ClassLabel"},
        "box": {"kind": {"names": ["car"], "_type": "ClassLabel"}},
        "count": {"dtype": "int64", "_type": "Value"},
        "odd": {"names": ["a", 7], "_type": "ClassLabel"}}}})";

TEST(ClassLabelNames, are_read_from_the_feature) {
  EXPECT_THAT(class_label_names(kMetadata, "label"), ElementsAre("tench", "goldfish"));
  EXPECT_THAT(class_label_names(kMetadata, "box.kind"), ElementsAre("car"));
}

TEST(ClassLabelNames, are_empty_for_everything_else) {
  for (const std::string_view column : {"image", "count", "odd", "box", "label.names", "none", ""})
    EXPECT_THAT(class_label_names(kMetadata, column), IsEmpty()) << column;
  for (const std::string_view metadata : {"", "{", "[]", R"({"info": 7})", R"({"info": {"features": []}})"})
    EXPECT_THAT(class_label_names(metadata, "label"), IsEmpty()) << metadata;
}

}  // namespace
}  // namespace stoker::sources
