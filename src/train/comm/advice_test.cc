#include "train/comm/advice.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

TEST(Advice, is_empty_for_short_waits_or_without_measurements) {
  const std::vector<CommunicationStats> little{{0.1, 0.004}, {0.1, 0.001}};
  EXPECT_EQ(communication_advice(little, {{4 << 20}}), "");
  EXPECT_EQ(communication_advice(std::vector<CommunicationStats>{{0.1, 0.09}}, {{4 << 20}}), "");
  EXPECT_EQ(communication_advice(std::vector<CommunicationStats>(2), {{4 << 20}}), "");
}

TEST(Advice, for_slow_transfers_names_the_setting_that_helps) {
  const std::vector<CommunicationStats> slow{{0.1, 0.03}, {0.1, 0.02}};
  const std::string measure =
      "gradient exchange: ranks wait up to 30 % of a step of 100 ms: 20 % for the transfer, 10 % for slower "
      "ranks; ";
  EXPECT_EQ(
      communication_advice(slow, {{4 << 20}}),
      measure +
          "all gradients (4.19 MB) are exchanged in one bucket at the end of backward: train.bucket: 1024KiB "
          "starts earlier");
  EXPECT_EQ(communication_advice(slow, {{2 << 20, 2 << 20}}),
            measure + "train.compress_gradients: bf16 halves the 4.19 MB exchanged per step");
  EXPECT_EQ(
      communication_advice(slow, {std::vector<std::int64_t>(20, 40 << 10)}),
      measure + "819 kB of gradients are exchanged in 20 small buckets: train.bucket: 200KiB makes fewer");
  EXPECT_EQ(communication_advice(slow, {{2 << 20, 2 << 20}, true}),
            measure + "rank 1 is the slowest, which no communication setting changes");
}

TEST(Advice, for_small_gradients_suggests_no_setting) {
  const std::vector<CommunicationStats> slow{{0.1, 0.03}, {0.1, 0.03}};
  const std::string measure =
      "gradient exchange: ranks wait up to 30 % of a step of 100 ms: 30 % for the transfer, 0 % for slower "
      "ranks";
  EXPECT_EQ(communication_advice(slow, {{712}}), measure);
  EXPECT_EQ(communication_advice(slow, {{(1 << 20) - 1}}), measure);
  EXPECT_EQ(communication_advice(slow, {std::vector<std::int64_t>(20, 40)}), measure);
  EXPECT_EQ(communication_advice(slow, {{1 << 19, 1 << 19}}),
            measure + "; train.compress_gradients: bf16 halves the 1.05 MB exchanged per step");
}

TEST(Advice, for_a_slow_rank_suggests_no_setting) {
  const std::vector<CommunicationStats> uneven{{0.2, 0.08}, {0.2, 0.001}, {0.2, 0.09}};
  EXPECT_EQ(communication_advice(uneven, {{4 << 20}}),
            "gradient exchange: ranks wait up to 45 % of a step of 200 ms: 0 % for the transfer, 44 % for "
            "slower ranks; "
            "rank 1 is "
            "the slowest, which no communication setting changes");
}

TEST(Advice, stats_round_trip_as_text) {
  const CommunicationStats facts = parse_stats(stats_text({0.125, 0.0625}));
  EXPECT_EQ(facts.step_s, 0.125);
  EXPECT_EQ(facts.waited_s, 0.0625);
  EXPECT_EQ(parse_stats("nonsense").step_s, 0);
}

}  // namespace
}  // namespace stoker::train
