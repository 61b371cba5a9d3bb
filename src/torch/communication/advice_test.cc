#include "torch/communication/advice.h"

#include <gtest/gtest.h>

namespace stoker::torch {
namespace {

TEST(Advice, is_silent_where_waiting_is_little_or_nothing_was_measured) {
  const std::vector<ExchangeFacts> little{{0.1, 0.004}, {0.1, 0.001}};
  EXPECT_EQ(advise(little, {{4 << 20}}), "");
  EXPECT_EQ(advise(std::vector<ExchangeFacts>{{0.1, 0.09}}, {{4 << 20}}), "");
  EXPECT_EQ(advise(std::vector<ExchangeFacts>(2), {{4 << 20}}), "");
}

TEST(Advice, where_moving_bytes_costs_names_the_setting_that_pays) {
  const std::vector<ExchangeFacts> slow{{0.1, 0.03}, {0.1, 0.02}};
  const std::string measure =
      "exchanges: ranks wait up to 30 % of a step of 100 ms: 20 % for the bytes, 10 % for slower ranks; ";
  EXPECT_EQ(advise(slow, {{4 << 20}}),
            measure +
                "all 4.19 MB of gradients leave in one piece, after the last of them: train.bucket: 1024KiB "
                "sends earlier");
  EXPECT_EQ(advise(slow, {{2 << 20, 2 << 20}}),
            measure + "train.compress_gradients: bf16 sends half of 4.19 MB a step");
  EXPECT_EQ(advise(slow, {std::vector<std::int64_t>(20, 40 << 10)}),
            measure + "819 kB of gradients travel in 20 small pieces: train.bucket: 200KiB sends fewer");
  EXPECT_EQ(advise(slow, {{2 << 20, 2 << 20}, true}),
            measure + "rank 1 is the slowest: no setting of exchanges helps that");
}

TEST(Advice, where_one_rank_is_slow_promises_nothing_of_settings) {
  const std::vector<ExchangeFacts> uneven{{0.2, 0.08}, {0.2, 0.001}, {0.2, 0.09}};
  EXPECT_EQ(advise(uneven, {{4 << 20}}),
            "exchanges: ranks wait up to 45 % of a step of 200 ms: 0 % for the bytes, 44 % for slower ranks; "
            "rank 1 is "
            "the slowest: no setting of exchanges helps that");
}

TEST(Advice, facts_travel_as_text) {
  const ExchangeFacts facts = parse_facts(facts_text({0.125, 0.0625}));
  EXPECT_EQ(facts.step_s, 0.125);
  EXPECT_EQ(facts.waited_s, 0.0625);
  EXPECT_EQ(parse_facts("nonsense").step_s, 0);
}

}  // namespace
}  // namespace stoker::torch
