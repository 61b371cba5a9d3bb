#include "arrays/samples/rows.h"

#include <map>

#include <gmock/gmock.h>

#include "arrays/samples/store.h"

namespace stoker::arrays {
namespace {

using codec::ElementType;
using ::testing::ElementsAre;

struct FakeArray {
  codec::Extents shape;
  ElementType type;
  Status opening;  // fails with this
};

// Arrays without content.
class FakeStore final : public SampleArrays::Store {
 public:
  explicit FakeStore(const std::map<std::string, FakeArray>& arrays) : arrays_(arrays) {
    for (const auto& [name, array] : arrays_) names_.push_back(name);
  }
  Status open_arrays(const std::vector<std::string>& names) override { return arrays_.at(names[0]).opening; }
  const codec::Extents& shape(const std::string& name) const override { return arrays_.at(name).shape; }
  const ElementType& type(const std::string& name) const override { return arrays_.at(name).type; }
  Status read_rows(const std::string& /*name*/, std::uint64_t /*first*/, std::uint64_t /*count*/,
                   std::span<std::byte> /*out*/) const override {
    return internal("not read");
  }
  Result<std::uint64_t> contiguous_offset(const std::string& /*name*/) const override {
    return internal("not read");
  }
  Result<codec::ChunkedArray> chunked(const std::string& /*name*/) const override {
    return internal("not read");
  }
  Result<codec::ValueArray> values(const std::string& /*name*/) const override {
    return internal("not read");
  }
  Result<std::vector<codec::ShardPart>> parts() const override { return internal("not read"); }

 private:
  std::map<std::string, FakeArray> arrays_;
};

Result<RowArrays> open_fake(const std::map<std::string, FakeArray>& arrays) {
  return RowArrays::open(std::make_unique<FakeStore>(arrays), "in/x.h5");
}

std::string refusal(const std::map<std::string, FakeArray>& arrays) {
  return open_fake(arrays).status().to_string();
}

ElementType type_of(ElementType::Kind kind, std::uint32_t bytes, char letter, std::string unit = {}) {
  return {.kind = kind, .bytes = bytes, .letter = letter, .time_unit = std::move(unit)};
}

const ElementType kFloat = codec::element_type(DType::f32);
const std::string kRefused = "in/x.h5: has no array with rows of numbers: ";

TEST(RowArrays, an_unusable_array_is_named_with_the_reason_and_a_cure) {
  using Kind = ElementType::Kind;
  EXPECT_EQ(refusal({{"x", {{4}, type_of(Kind::complex, 16, 'c'), {}}}}),
            kRefused + "x: complex128 values\n  try: save the real and imaginary parts of 'x' as two arrays");
  EXPECT_EQ(refusal({{"x", {{4}, type_of(Kind::time, 8, 'M', "ns"), {}}}}),
            kRefused + "x: datetime64[ns] values\n  try: save 'x' as int64");
  EXPECT_EQ(refusal({{"x", {{4}, codec::element_type(DType::bf16), {}}}}),
            kRefused + "x: bfloat16 values\n  try: save 'x' as float32");
  EXPECT_EQ(refusal({{"x", {{4}, type_of(Kind::bytes, 3, 'V'), {}}}}),
            kRefused +
                "x: opaque values of 3 bytes\n"
                "  try: save 'x' as uint8, with the bytes of a value along a second axis");
  EXPECT_EQ(refusal({{"x", {{4, 2}, type_of(Kind::bytes, 5, 'S'), {}}}}),
            kRefused +
                "x: several texts per row (shape 4 x 2)\n"
                "  try: save each column of 'x' as a separate array");
  EXPECT_EQ(refusal({{"x", {{}, kFloat, {}}}}), kRefused + "x: a single value (no rows)");
  EXPECT_EQ(refusal({{"x", {{0, 3}, kFloat, {}}}}), kRefused + "x: no rows (shape 0 x 3)");
  EXPECT_EQ(refusal({{"x", {{4, 0}, kFloat, {}}}}), kRefused + "x: rows without elements (shape 4 x 0)");
  EXPECT_EQ(refusal({{"", {{4}, type_of(Kind::complex, 8, 'c'), {}}}}),
            kRefused +
                "complex64 values\n"
                "  try: save the real and imaginary parts of the array as two arrays");
  EXPECT_EQ(refusal({}), "in/x.h5: has no arrays");
}

TEST(RowArrays, four_unusable_arrays_are_named_and_the_rest_counted) {
  std::map<std::string, FakeArray> arrays;
  for (const char* name : {"a", "b", "c", "d"}) arrays[name] = {{}, kFloat, {}};
  const std::string named =
      "a: a single value (no rows); b: a single value (no rows); c: a single value (no rows); "
      "d: a single value (no rows)";
  EXPECT_EQ(refusal(arrays), kRefused + named);
  arrays["e"] = {{}, kFloat, {}};
  EXPECT_EQ(refusal(arrays), kRefused + named + "; and 1 more array");
  arrays["f"] = {{}, kFloat, {}};
  EXPECT_EQ(refusal(arrays), kRefused + named + "; and 2 more arrays");
}

TEST(RowArrays, the_error_of_an_array_that_cannot_be_opened_is_the_reason) {
  const Status failure = invalid("in/x.h5: dataset 'y': is not a dataset").cure("stoker data info in");
  EXPECT_EQ(refusal({{"y", {{}, kFloat, failure}}}),
            "in/x.h5: dataset 'y': is not a dataset\n  try: stoker data info in");
  EXPECT_EQ(refusal({{"x", {{}, kFloat, {}}}, {"y", {{}, kFloat, failure}}}),
            kRefused +
                "x: a single value (no rows); dataset 'y': is not a dataset\n"
                "  try: stoker data info in");
  EXPECT_EQ(open_fake({{"y", {{}, kFloat, corrupt("in/x.h5: is damaged")}}}).status().code(), Code::corrupt);
}

TEST(RowArrays, an_ignored_array_has_a_reason) {
  const auto rows = open_fake({{"a", {{50, 3}, kFloat, {}}},
                               {"b", {{12}, kFloat, {}}},
                               {"c", {{50}, type_of(ElementType::Kind::complex, 8, 'c'), {}}}});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  std::vector<std::string> reasons;
  for (const RowArrays::IgnoredArray& other : rows->ignored_arrays())
    reasons.push_back(format("{}: {}", other.name, other.reason));
  EXPECT_THAT(reasons, ElementsAre("c: complex64 values", "b: 12 rows, not 50"));
}

}  // namespace
}  // namespace stoker::arrays
