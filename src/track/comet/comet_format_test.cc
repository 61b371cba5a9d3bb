#include "track/comet/comet_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::track {
namespace {

// Values and bins of comet_ml 3.58.8: Histogram().get_bin_index(value).
TEST(CometBins, have_the_numbers_of_the_package) {
  const std::vector<std::pair<double, int>> bins = {{0, 775},    {1, 1065},    {-2, 476},  {6.5, 1085},
                                                    {0.3, 1053}, {1e21, 1549}, {-1e21, 0}, {1e-12, 775}};
  for (const auto& [value, bin] : bins) EXPECT_EQ(comet_bin(value), bin) << value;
}

TEST(CometBins, exist_for_every_number) {
  for (const double value : {9.99e19, -9.99e19, 1e-13, -1e-13, 5e-324, 1.7e308}) {
    EXPECT_GE(comet_bin(value), 0) << value;
    EXPECT_LE(comet_bin(value), 1549) << value;
  }
}

}  // namespace
}  // namespace stoker::track
