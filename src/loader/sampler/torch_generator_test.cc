#include "loader/sampler/torch_generator.h"

#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "base/json/json.h"

namespace stoker::loader {
namespace {

TEST(TorchGenerator, draws_the_numbers_of_torch_randint) {
  const nlohmann::json reference = golden("generator.json");
  ASSERT_GE(reference["rows"].size(), 5u);
  for (const auto& row : reference["rows"]) {
    const auto seed = row["seed"].get<std::uint64_t>();
    TorchGenerator narrow(seed);
    for (std::uint32_t expected : row["randint_0_10_x16"]) EXPECT_EQ(narrow.random32() % 10, expected);
    TorchGenerator wide(seed);
    for (std::uint64_t expected : row["randint_0_2p40_x4"])
      EXPECT_EQ(wide.random64() % (1ull << 40), expected);
  }
}

TEST(TorchRandperm, equals_pytorch) {
  const nlohmann::json reference = golden("randperm.json");
  ASSERT_GE(reference["rows"].size(), 5u);
  for (const auto& row : reference["rows"]) {
    SCOPED_TRACE(row.dump());
    // Python's -1 is 2^64 - 1 here, as in manual_seed.
    const auto seed =
        static_cast<std::uint64_t>(row["seed"].is_number_unsigned() ? row["seed"].get<std::uint64_t>()
                                                                    : row["seed"].get<std::int64_t>());
    TorchGenerator generator(seed);
    expect_golden_list(torch_randperm(row["n"], generator), row, "perm");
    if (row.contains("second_call_same_generator")) {
      expect_golden_list(torch_randperm(row["n"], generator), row, "second_call_same_generator");
    }
  }
}

TEST(TorchRandperm, of_a_very_large_set_draws_64_bits_inside_out) {
  TorchGenerator first(0);
  EXPECT_EQ(internal::randperm_large(12, first),
            (std::vector<std::uint32_t>{10, 2, 6, 3, 5, 1, 0, 9, 7, 4, 11, 8}));
  TorchGenerator second(42);
  EXPECT_EQ(internal::randperm_large(12, second),
            (std::vector<std::uint32_t>{6, 0, 5, 11, 10, 2, 3, 1, 9, 4, 7, 8}));
}

}  // namespace
}  // namespace stoker::loader
