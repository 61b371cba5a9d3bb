#include "base/enum_names.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

enum class Fuel { coal, oil, wood };
constexpr std::array<std::string_view, 3> names_of(Fuel) { return {"coal", "oil", "fire-wood"}; }

TEST(EnumNames, an_enumerator_is_written_and_read_by_its_name) {
  EXPECT_EQ(to_text(Fuel::wood), "fire-wood");
  EXPECT_EQ(enum_named<Fuel>("oil"), Fuel::oil);
  EXPECT_EQ(enum_named<Fuel>("coal"), Fuel::coal);
}

TEST(EnumNames, other_text_names_no_enumerator) {
  EXPECT_EQ(enum_named<Fuel>(""), std::nullopt);
  EXPECT_EQ(enum_named<Fuel>("Oil"), std::nullopt);
  EXPECT_EQ(enum_named<Fuel>("coal|oil"), std::nullopt);
}

TEST(EnumNames, all_names_are_joined_at_compile_time) {
  static_assert(JoinedNames<Fuel>::kJoined == "coal|oil|fire-wood");
}

}  // namespace
}  // namespace stoker
