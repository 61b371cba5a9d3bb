#include "torch/process_group.h"

#include <stdexcept>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/test_ranks.h"

namespace stoker::torch {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(ProcessGroup, sums_over_all_ranks) {
  const auto statuses = on_ranks(3, [](ProcessGroup& group) -> Status {
    double values[] = {1.0 + group.rank().value, 10};
    RETURN_IF_ERROR(group.sum(values));
    return values[0] == 6 && values[1] == 30 ? Status() : internal("{} {}", values[0], values[1]);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ProcessGroup, copies_from_rank_0_and_meters_what_it_cost) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor tensor = at::full({1000}, group.rank().value == 0 ? 7.0 : 1.0, at::kFloat);
    RETURN_IF_ERROR(group.copy_from_first(tensor));
    RETURN_IF_ERROR(group.barrier());
    const Traffic traffic = group.traffic();
    if (traffic.calls != 2 || traffic.bytes != 4000 || traffic.in_flight_s <= 0)
      return internal("metered wrongly");
    return tensor.min().item<float>() == 7 ? Status() : internal("not rank 0's");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ProcessGroup, of_one_rank_needs_no_port) {
  auto group = ProcessGroup::connect({});
  ASSERT_TRUE(group.ok());
  double value[] = {3};
  EXPECT_TRUE((*group)->sum(value).ok());
  EXPECT_EQ(value[0], 3);
  EXPECT_TRUE((*group)->barrier().ok());
}

TEST(ProcessGroup, names_the_rank_that_does_not_come) {
  Rendezvous alone = meeting(0, 2, free_port());
  alone.connect_within = std::chrono::milliseconds(200);
  const Status status = ProcessGroup::connect(alone).status();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.message(),
            format("rank 0: rank 1 did not come to 127.0.0.1:{} within 200 ms (of 2 ranks)", alone.port));
}

TEST(ProcessGroup, says_that_rank_0_does_not_listen) {
  Rendezvous alone = meeting(1, 2, free_port());
  alone.connect_within = std::chrono::milliseconds(100);
  EXPECT_EQ(ProcessGroup::connect(alone).status().message(),
            format("rank 1: rank 0 did not open 127.0.0.1:{} within 100 ms (last answer: "
                   "Connection refused)",
                   alone.port));
}

TEST(ProcessGroup, says_that_an_address_is_none) {
  Rendezvous nowhere = meeting(1, 2, 1);
  nowhere.address = "no-such-host.invalid";
  EXPECT_THAT(std::string(ProcessGroup::connect(nowhere).status().message()),
              MatchesRegex("rank 1: 'no-such-host.invalid': .* \\(MASTER_ADDR\\)"));
}

TEST(ProcessGroup, names_the_rank_that_left) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    if (group.rank().value == 1) return {};
    double value[] = {1};
    return group.sum(value);
  });
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 0: summing over ranks: rank 1 left ("));
}

TEST(ProcessGroup, names_the_rank_that_does_not_answer) {
  const std::uint16_t port = free_port();
  Status status;
  const auto rank = [&](int number) {
    Rendezvous impatient = meeting(number, 2, port);
    impatient.answer_within = std::chrono::milliseconds(300);
    auto group = ProcessGroup::connect(impatient);
    ASSERT_TRUE(group.ok()) << group.status().to_string();
    double value[] = {1};
    if (number == 0) status = (*group)->sum(value);
    // Rank 1 stays connected and silent until rank 0 has given up.
    if (number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  };
  std::thread silent(rank, 1);
  rank(0);
  silent.join();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 0: summing over ranks: rank 1 gave no answer within 300 ms ("));
}

}  // namespace
}  // namespace stoker::torch
