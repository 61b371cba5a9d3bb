// Tensors sharded by rows over ranks, ranks that disagree, and partial reads of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

// Rows of one 8 x 3 tensor, and a small tensor on rank 0.
struct Rank3 {
  std::vector<float> rows;
  float scalar = 0;

  Rank3(std::int64_t first, std::int64_t count, float start = 0) {
    for (std::int64_t i = 0; i < count * 3; ++i) rows.push_back(start + static_cast<float>(first * 3 + i));
  }
  StepContents contents(std::int64_t first) const {
    StepContents c{.step = Step{1},
                   .parameters = {},
                   .buffers = {},
                   .optimizer = {},
                   .rank0_optimizer = {{"count", DType::f32, {}, std::as_bytes(std::span(&scalar, 1))}},
                   .shards = {},
                   .state = {},
                   .rank_state = {},
                   .hyper_parameters = {}};
    const auto count = static_cast<std::int64_t>(rows.size() / 3);
    c.shards.push_back({{"w", DType::f32, {count, 3}, std::as_bytes(std::span(rows))}, {8, 3}, first, false});
    return c;
  }
};

struct Held {
  std::int64_t first;
  std::int64_t count;
};

// Statuses of all ranks after saving these rows together.
std::vector<std::string> save_rows(const Sandbox& box, const std::vector<Held>& held) {
  std::vector<std::string> results(held.size());
  std::vector<std::thread> ranks;
  for (std::size_t r = 0; r < held.size(); ++r) {
    ranks.emplace_back([&, r] {
      auto saver = Saver::create(box.options(static_cast<int>(r), static_cast<int>(held.size())));
      Rank3 rank(held[r].first, held[r].count);
      rank.scalar = static_cast<float>(r);
      Status status = saver.ok() ? (*saver)->save(rank.contents(held[r].first)) : saver.status();
      if (status.ok()) status = (*saver)->finish(Deadline::after(30s));
      results[r] = status.to_string();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return results;
}

TEST(Shards, rows_are_combined_from_any_distribution) {
  for (const std::vector<Held>& held :
       {std::vector<Held>{{0, 8}}, {{0, 5}, {5, 3}}, {{3, 5}, {0, 3}, {0, 0}}}) {
    const Sandbox box;
    EXPECT_THAT(save_rows(box, held), testing::Each("ok"));
    const Rank3 expected(0, 8);
    std::vector<float> rows(24);
    float scalar = 9;
    Targets targets;
    targets.model = {{"w", DType::f32, {8, 3}, std::as_writable_bytes(std::span(rows))}};
    targets.optimizer = {{"count", DType::f32, {}, std::as_writable_bytes(std::span(&scalar, 1))}};
    const auto loaded = load(box.step(1), {}, targets);
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_EQ(rows, expected.rows);
    EXPECT_EQ(scalar, 0);
  }
}

TEST(Shards, gaps_and_duplicates_are_rejected_before_the_commit) {
  const Sandbox box;
  const auto hole = save_rows(box, {{0, 4}, {5, 3}});
  EXPECT_EQ(hole[0], "checkpoint step 1: rows of the ranks: tensor 'w': rows 4 to 4 are missing");
  EXPECT_EQ(hole[1], "checkpoint step 1: rank 0: rows of the ranks: tensor 'w': rows 4 to 4 are missing");
  EXPECT_EQ(save_rows(box, {{0, 5}, {4, 4}})[0],
            "checkpoint step 1: rows of the ranks: tensor 'w': row 4 appears twice");
  EXPECT_EQ(save_rows(box, {{0, 0}, {0, 0}})[0],
            "checkpoint step 1: rows of the ranks: tensor 'w': is in no file");
  EXPECT_EQ(save_rows(box, {{6, 3}})[0],
            "checkpoint: tensor 'w': the rows of this rank do not fit the whole tensor");
  EXPECT_FALSE(path_exists(box.step(1)));
}

TEST(Shards, different_replicas_are_named_if_compared) {
  for (const bool compares : {true, false}) {
    const Sandbox box;
    std::vector<std::string> results(2);
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.emplace_back([&, r] {
        SaverOptions options = box.options(r, 2);
        options.compares_ranks = compares;
        auto saver = Saver::create(options);
        const ToyModel model(static_cast<std::uint64_t>(r));
        Status status = (*saver)->save(model.contents(Step{1}));
        if (status.ok()) status = (*saver)->finish(Deadline::after(30s));
        results[static_cast<std::size_t>(r)] = status.to_string();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    const std::string why = "tensor 'conv.weight': values on rank 1 differ from rank 0";
    EXPECT_EQ(results[0], compares ? "checkpoint step 1: " + why : "ok");
    EXPECT_EQ(results[1], compares ? "checkpoint step 1: rank 0: " + why : "ok");
  }
}

TEST(Saver, reports_the_outcome_of_each_save) {
  const Sandbox box;
  auto saver = *Saver::create(box.options(0, 1));
  const ToyModel model(1);
  EXPECT_EQ(saver->save_count(), 0u);
  ASSERT_TRUE(saver->save(model.contents(Step{1})).ok());
  ASSERT_TRUE(saver->wait_for_save(0, Deadline::after(30s)));
  EXPECT_EQ(saver->outcome(0)->to_string(), "ok");
  ASSERT_TRUE(std::filesystem::create_directory(box.directory() / ".step-2.1.0"));
  ASSERT_TRUE(write_file(box.directory() / ".step-2.1.0/lease.json", "").ok());
  ASSERT_TRUE(saver->save(model.contents(Step{2})).ok());
  ASSERT_TRUE(saver->wait_for_save(1, Deadline::after(30s)));
  EXPECT_EQ(saver->outcome(1)->code(), Code::exists);
  EXPECT_FALSE(saver->outcome(2));
  EXPECT_EQ(saver->save_count(), 2u);
}

class ReadRows : public testing::Test {
 protected:
  void SetUp() override { box.save_well(2, {1}); }
  std::string read(const std::string& name, const Shape& shape, std::int64_t first,
                   bool is_optimizer = false) {
    rows.assign(*archive::tensor_bytes(DType::f32, shape), std::byte{0});
    NoProgress progress;
    return read_rows(box.step(1), {{is_optimizer, {name, DType::f32, shape, rows}, first}}, progress)
        .to_string();
  }
  Sandbox box;
  std::vector<std::byte> rows;
};

TEST_F(ReadRows, reads_a_range_of_rows_over_several_files) {
  ASSERT_EQ(read("fc.weight", {1000, 200}, 0), "ok");
  const std::vector<std::byte> whole = rows;
  for (const auto& [first, count] : {std::pair{0, 1000}, {0, 3}, {100, 800}, {999, 1}, {1000, 0}}) {
    ASSERT_EQ(read("fc.weight", {count, 200}, first), "ok") << first;
    const auto begin = whole.begin() + first * 800;
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), begin, begin + count * 800)) << first;
  }
  EXPECT_EQ(read("conv.weight", {1, 3, 32, 32}, 63), "ok");
}

TEST_F(ReadRows, rejects_tensors_missing_in_the_step) {
  const std::string step = box.step(1).string();
  EXPECT_EQ(read("nosuch", {1}, 0), step + ": tensor 'nosuch': is not in the checkpoint");
  EXPECT_EQ(
      read("fc.weight", {10, 200}, 991),
      step + ": tensor 'fc.weight': is F32 [1000, 200] in the checkpoint, not F32 [10, 200] from row 991");
  EXPECT_EQ(
      read("fc.weight", {1000, 100}, 0),
      step + ": tensor 'fc.weight': is F32 [1000, 200] in the checkpoint, not F32 [1000, 100] from row 0");
}

TEST_F(ReadRows, reads_only_files_with_requested_rows) {
  ASSERT_TRUE(remove_file(box.file(1, 0, "optimizer")).ok());
  EXPECT_EQ(read("fc.weight", {1000, 200}, 0), "ok");
  EXPECT_THAT(read("state.fc.weight.momentum_buffer", {1000, 200}, 0, true),
              testing::HasSubstr(
                  "optimizer/shard-00001-optimizer-00001-of-00001.safetensors: rank 0's file is missing"));
}

}  // namespace
}  // namespace stoker::checkpoint
