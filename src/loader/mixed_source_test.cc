#include "loader/mixed_source.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "dataset/test_dataset.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

using dataset::TestSample;

// `samples` texts "<name> <i>" in shards of ten.
class Texts {
 public:
  Texts(const std::string& name, int samples) {
    std::vector<std::vector<TestSample>> shards;
    for (int i = 0; i < samples; ++i) {
      if (i % 10 == 0) shards.emplace_back();
      shards.back().push_back({format("{}/{:03}", name, i), 1, {{"txt", format("{} {}", name, i)}}});
    }
    dataset::write_test_dataset(folder_.path(), shards);
    source_ = dataset::LocalShardSource::open(folder_.path(), "").value();
  }
  const dataset::ShardSource* source() const { return source_.get(); }

 private:
  TempDirectory folder_;
  std::unique_ptr<dataset::LocalShardSource> source_;
};

std::vector<std::string> read_epochs(const MixedSource& mixed, const LoaderOptions& options,
                                     const std::optional<OrderState>& from, int epochs) {
  auto loader = Loader::open(mixed, options, from).value();
  std::vector<std::string> seen;
  while (epochs > 0) {
    auto batch = loader->next(Deadline::after(std::chrono::seconds(20))).value();
    if (!batch) {
      --epochs;
      continue;
    }
    for (std::string& text : batch->texts(0)) seen.push_back(std::move(text));
  }
  return seen;
}

LoaderOptions options_for(const MixedSource& mixed, const std::vector<double>& weights) {
  LoaderOptions options;
  options.content = Content::bytes;
  options.batch = 8;
  options.shuffle = Shuffle::mixed;
  options.mixture = mixed.parts(weights).value();
  options.rank.remainder = Remainder::exact;
  options.fields = {{.component = "txt", .kind = FieldKind::text}};
  return options;
}

TEST(MixedSource, different_labels_have_a_different_version) {
  const auto version = [](std::int64_t label) {
    TempDirectory folder;
    dataset::write_test_dataset(folder.path(), {{{"a", label, {{"txt", "same"}}}}});
    const auto source = dataset::LocalShardSource::open(folder.path(), "").value();
    return MixedSource::create({source.get()}).value()->manifest().version;
  };
  EXPECT_EQ(version(1), version(1));
  EXPECT_NE(version(1), version(2));
}

TEST(MixedSource, each_dataset_has_its_share_and_each_sample_appears) {
  const Texts a("a", 96), b("b", 32);
  const auto mixed = MixedSource::create({a.source(), b.source()}).value();
  EXPECT_EQ(mixed->samples().size(), 128u);
  // Half and half: 16 epochs of 128 are two whole blocks of the mixture.
  std::vector<std::string> seen = read_epochs(*mixed, options_for(*mixed, {1, 1}), std::nullopt, 16);
  ASSERT_EQ(seen.size(), 2048u);
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](auto& text) { return text[0] == 'a'; }), 1024);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "b 31"), 32);
  const auto of_a = std::count(seen.begin(), seen.end(), "a 95");
  EXPECT_TRUE(of_a == 10 || of_a == 11) << of_a;
  // By size: each sample once per epoch on average.
  seen = read_epochs(*mixed, options_for(*mixed, {}), std::nullopt, 8);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "b 0"), 8);
}

TEST(MixedSource, resumes_on_another_world_size) {
  const Texts a("a", 70), b("b", 30);
  const auto mixed = MixedSource::create({a.source(), b.source()}).value();
  LoaderOptions options = options_for(*mixed, {1, 3});
  std::vector<std::string> whole = read_epochs(*mixed, options, OrderState{0, 3, 0, 100}, 1);
  std::vector<std::string> parts = read_epochs(*mixed, options, OrderState{0, 3, 40, 100}, 1);
  EXPECT_TRUE(std::equal(parts.begin(), parts.end(), whole.begin() + 40, whole.end()));
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    options.rank.rank = Rank{rank};
    options.rank.world = WorldSize{3};
    for (auto& text : read_epochs(*mixed, options, OrderState{0, 3, 40, 100}, 1)) ranks.push_back(text);
  }
  std::sort(ranks.begin(), ranks.end());
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(ranks, parts);
}

TEST(MixedSource, rejects_incompatible_datasets) {
  const Texts a("a", 20), b("b", 10);
  EXPECT_EQ(MixedSource::create({}).status().to_string(), "mixture: no datasets");
  const auto mixed = MixedSource::create({a.source(), b.source()}).value();
  EXPECT_EQ(mixed->parts({1}).status().to_string(), "mixture: 1 weight for 2 datasets");
  LoaderOptions options = options_for(*mixed, {});
  options.mixture.pop_back();
  EXPECT_EQ(Loader::open(*mixed, options).status().to_string(),
            "order: 20 samples in mixed datasets, 30 in total");
}

}  // namespace
}  // namespace stoker::loader
