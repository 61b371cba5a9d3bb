#include "checkpoint/save/plan.h"

#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::checkpoint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kMiB = 1 << 20;

TensorInfo rows(std::int64_t n, std::int64_t bytes_each) { return {"t", DType::u8, {n, bytes_each}}; }

std::uint64_t bytes(const std::vector<TensorInfo>& tensors, const std::vector<Slice>& slices) {
  std::uint64_t sum = 0;
  for (const Slice& slice : slices) {
    const Shape& shape = tensors[slice.tensor].shape;
    sum += static_cast<std::uint64_t>(shape.empty() ? 1 : slice.rows * shape[1]);
  }
  return sum;
}

TEST(Plan, a_tensor_is_split_by_rows_into_equal_shares) {
  const std::vector<TensorInfo> tensors = {rows(10, kMiB)};
  EXPECT_THAT(rank_slices(tensors, 0, Rank{0}, WorldSize{1}), ElementsAre(Slice{0, 0, 10}));
  EXPECT_THAT(rank_slices(tensors, 0, Rank{0}, WorldSize{3}), ElementsAre(Slice{0, 0, 3}));
  EXPECT_THAT(rank_slices(tensors, 0, Rank{1}, WorldSize{3}), ElementsAre(Slice{0, 3, 4}));
  EXPECT_THAT(rank_slices(tensors, 0, Rank{2}, WorldSize{3}), ElementsAre(Slice{0, 7, 3}));
}

TEST(Plan, small_and_single_row_tensors_are_not_split) {
  const std::vector<TensorInfo> tensors = {
      rows(4, 100), {"s", DType::u8, {}}, rows(1, 10 * kMiB), rows(4, 100)};
  EXPECT_THAT(rank_slices(tensors, 0, Rank{0}, WorldSize{2}), ElementsAre(Slice{0, 0, 4}, Slice{1, 0, 1}));
  EXPECT_THAT(rank_slices(tensors, 0, Rank{1}, WorldSize{2}), ElementsAre(Slice{2, 0, 1}, Slice{3, 0, 4}));
}

TEST(Plan, rank_0_tensors_go_to_rank_0_and_its_peers_get_more_of_the_rest) {
  const std::vector<TensorInfo> tensors = {rows(4, kMiB), rows(4, kMiB)};
  EXPECT_THAT(rank_slices(tensors, 1, Rank{0}, WorldSize{3}), ElementsAre(Slice{0, 0, 4}));
  EXPECT_THAT(rank_slices(tensors, 1, Rank{1}, WorldSize{3}), ElementsAre(Slice{1, 0, 2}));
  EXPECT_THAT(rank_slices(tensors, 1, Rank{2}, WorldSize{3}), ElementsAre(Slice{1, 2, 2}));
}

TEST(Plan, empty_rank_0_tensors_belong_to_rank_0) {
  const std::vector<TensorInfo> tensors = {rows(0, 5), rows(100, kMiB)};
  EXPECT_THAT(rank_slices(tensors, 1, Rank{0}, WorldSize{2}), ElementsAre(Slice{0, 0, 0}, Slice{1, 0, 50}));
}

TEST(Plan, more_ranks_than_rows_leave_some_without_a_share) {
  const std::vector<TensorInfo> tensors = {rows(2, kMiB)};
  EXPECT_THAT(rank_slices(tensors, 0, Rank{1}, WorldSize{8}), ElementsAre(Slice{0, 0, 1}));
  EXPECT_THAT(rank_slices(tensors, 0, Rank{5}, WorldSize{8}), ElementsAre(Slice{0, 1, 1}));
  int idle = 0;
  for (int r = 0; r < 8; ++r) idle += rank_slices(tensors, 0, Rank{r}, WorldSize{8}).empty() ? 1 : 0;
  EXPECT_EQ(idle, 6);
}

TEST(Plan, an_empty_list_has_no_shares) {
  EXPECT_THAT(rank_slices({}, 0, Rank{0}, WorldSize{2}), IsEmpty());
  const std::vector<TensorInfo> empty = {rows(0, 3), rows(0, 3)};
  EXPECT_THAT(rank_slices(empty, 0, Rank{0}, WorldSize{2}), ElementsAre(Slice{0, 0, 0}, Slice{1, 0, 0}));
  EXPECT_THAT(rank_slices(empty, 0, Rank{1}, WorldSize{2}), IsEmpty());
}

// Over many lists and world sizes: every row once, rank-0 tensors on rank 0, shares equal up to one row or
// small tensor.
TEST(Plan, shares_cover_every_row_once_and_are_balanced) {
  std::uint64_t random = 1;
  const auto next = [&](std::uint64_t below) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::int64_t>((random >> 33) % below);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<TensorInfo> tensors;
    for (std::int64_t i = next(12); i >= 0; --i) tensors.push_back(rows(next(40), next(20000)));
    const std::size_t held = static_cast<std::size_t>(next(3));
    const int world = static_cast<int>(1 + next(7));
    std::vector<std::int64_t> next_row(tensors.size(), 0);
    std::vector<int> pieces(tensors.size(), 0);
    std::uint64_t total = 0;
    for (const TensorInfo& t : tensors) total += static_cast<std::uint64_t>(t.shape[0] * t.shape[1]);
    for (int r = 0; r < world; ++r) {
      const std::vector<Slice> mine = rank_slices(tensors, held, Rank{r}, WorldSize{world});
      for (const Slice& slice : mine) {
        EXPECT_EQ(slice.first_row, next_row[slice.tensor]);
        EXPECT_TRUE(slice.tensor >= held || r == 0);
        next_row[slice.tensor] += slice.rows;
        ++pieces[slice.tensor];
      }
      if (held != 0) continue;
      EXPECT_LE(bytes(tensors, mine), total / static_cast<std::uint64_t>(world) + kWholeBelow + 20000);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(next_row[i], tensors[i].shape[0]) << round;
      EXPECT_GE(pieces[i], 1) << round;
    }
  }
}

TEST(Plan, ranks_with_the_same_tensors_have_the_same_layout) {
  const std::byte data[16] = {};
  StepContents contents;
  contents.parameters = {{"w", DType::f32, {2, 2}, data}};
  const auto zero = plan_save(contents, Rank{0}, WorldSize{2});
  const auto one = plan_save(contents, Rank{1}, WorldSize{2});
  EXPECT_EQ(zero->layout, one->layout);
  EXPECT_EQ(zero->parts[0].bytes + one->parts[0].bytes, 16u);
  contents.parameters[0].shape = {4, 1};
  EXPECT_NE(plan_save(contents, Rank{0}, WorldSize{2})->layout, zero->layout);
}

TEST(Plan, matches_only_the_same_tensors) {
  const std::byte data[32] = {};
  const std::span bytes(data);
  StepContents contents;
  contents.parameters = {{"w", DType::f32, {2, 2}, bytes.first(16)}, {"v", DType::u8, {4}, bytes.first(4)}};
  contents.buffers = {{"b", DType::f32, {}, bytes.first(4)}};
  contents.optimizer = {{"m", DType::f32, {2, 2}, bytes.first(16)}};
  const auto plan = plan_save(contents, Rank{0}, WorldSize{1});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(fits(*plan, contents));
  EXPECT_FALSE(fits(SavePlan(), contents));
  const auto fits_when = [&](const std::function<void(StepContents&)>& change) {
    StepContents other = contents;
    change(other);
    return fits(*plan, other);
  };
  EXPECT_TRUE(fits_when([&](StepContents& c) { c.parameters[0].data = bytes.last(16); }));
  EXPECT_FALSE(fits_when([](StepContents& c) { c.parameters[0].name = "x"; }));
  EXPECT_FALSE(fits_when([](StepContents& c) { c.parameters[0].dtype = DType::i32; }));
  EXPECT_FALSE(fits_when([](StepContents& c) { c.parameters[0].shape = {4, 1}; }));
  EXPECT_FALSE(fits_when([&](StepContents& c) { c.parameters[0].data = bytes.first(12); }));
  EXPECT_FALSE(fits_when([](StepContents& c) { std::swap(c.parameters[0], c.parameters[1]); }));
  EXPECT_FALSE(fits_when([](StepContents& c) { c.parameters.pop_back(); }));
  EXPECT_FALSE(fits_when([](StepContents& c) { c.optimizer.clear(); }));
  EXPECT_FALSE(fits_when([](StepContents& c) { std::swap(c.buffers, c.rank0_optimizer); }));
  EXPECT_FALSE(fits_when([&](StepContents& c) { c.shards = {{c.parameters[0], {2, 2}, 0, false}}; }));
}

TEST(Plan, invalid_tensors_are_named) {
  const std::byte data[16] = {};
  const auto problem = [&](std::vector<TensorView> parameters) {
    StepContents contents;
    contents.parameters = std::move(parameters);
    const auto plan = plan_save(contents, Rank{0}, WorldSize{1});
    return plan.ok() ? "ok" : plan.error().to_string();
  };
  const TensorView good{"w", DType::f32, {4}, data};
  EXPECT_EQ(problem({good}), "ok");
  EXPECT_EQ(problem({good, good}), "checkpoint: tensor 'w' appears twice");
  EXPECT_EQ(problem({{"", DType::f32, {4}, data}}), "checkpoint: tensor '': name is empty or not plain text");
  EXPECT_EQ(problem({{"w", DType::f32, {5}, data}}),
            "checkpoint: tensor 'w': has 16 bytes, but shape and dtype require 20");
  EXPECT_EQ(problem({{"w", DType::f32, {-1}, data}}),
            "checkpoint: tensor 'w': shape is negative or too large");
}

}  // namespace
}  // namespace stoker::checkpoint
