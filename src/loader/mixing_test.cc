#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/test_pictures.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kValues = 3 * kSide * kSide;
constexpr std::size_t kClasses = 7;

// A copy of a mixed batch.
struct Mixed {
  ReceivedBatch got;
  std::vector<float> soft;
  bool operator==(const Mixed&) const = default;
};

Mixed take_mixed(Loader& loader) {
  auto next = loader.next(soon());
  Mixed mixed;
  if (!next.ok()) {
    ADD_FAILURE() << next.status().to_string();
    return mixed;
  }
  mixed.got.is_epoch_end = !next->has_value();
  mixed.got.after = loader.state();
  if (mixed.got.is_epoch_end) return mixed;
  Batch& batch = **next;
  mixed.got.samples.assign(batch.samples().begin(), batch.samples().end());
  mixed.got.labels.assign(batch.labels().begin(), batch.labels().end());
  mixed.got.images.assign(batch.images().begin(), batch.images().end());
  const MutableTensorView soft = batch.soft_labels();
  EXPECT_EQ(soft.shape, (Shape{batch.count(), kClasses}));
  const auto* values = reinterpret_cast<const float*>(soft.data.data());
  mixed.soft.assign(values, values + soft.data.size() / sizeof(float));
  return mixed;
}

std::vector<Mixed> take_mixed_epoch(Loader& loader) {
  std::vector<Mixed> all;
  do {
    all.push_back(take_mixed(loader));
  } while (!all.back().got.is_epoch_end && !::testing::Test::HasFailure());
  return all;
}

LoaderOptions mixing(std::vector<image::MixOptions> kinds) {
  LoaderOptions options = options_of(10);
  options.mixing = std::move(kinds);
  return options;
}

// The weight of sample 0's label; its partner, the last sample, must have a different class.
double share_in(const Mixed& mixed) { return mixed.soft[static_cast<std::size_t>(mixed.got.labels[0])]; }

// Mixes `plain` with the shares in the soft labels of `mixed`.
void expect_mixup_of(const ReceivedBatch& plain, const Mixed& mixed) {
  const std::size_t count = plain.samples.size();
  ASSERT_EQ(mixed.got.samples, plain.samples);
  ASSERT_NE(plain.labels.front(), plain.labels.back());
  const auto share = static_cast<float>(share_in(mixed));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t partner = (i > 0 ? i : count) - 1;
    for (std::size_t v = 0; v < kValues; ++v) {
      EXPECT_NEAR(mixed.got.images[i * kValues + v],
                  share * plain.images[i * kValues + v] + (1 - share) * plain.images[partner * kValues + v],
                  1e-5);
    }
    std::vector<float> label(kClasses);
    label[static_cast<std::size_t>(plain.labels[i])] += share;
    label[static_cast<std::size_t>(plain.labels[partner])] += 1 - share;
    for (std::size_t c = 0; c < kClasses; ++c) EXPECT_NEAR(mixed.soft[i * kClasses + c], label[c], 1e-6);
  }
}

TEST(LoaderMixing, mixup_mixes_images_and_labels_by_one_share) {
  const PictureDataset dataset(40);
  auto plain = Loader::open(dataset.source(), options_of(10)).value();
  auto mixed = Loader::open(dataset.source(), mixing({{image::MixKind::mixup, 1}})).value();
  for (int batch = 0; batch < 4; ++batch) {
    const ReceivedBatch got = next_batch(*plain);
    const Mixed other = take_mixed(*mixed);
    if (got.labels.front() != got.labels.back()) expect_mixup_of(got, other);
  }
}

TEST(LoaderMixing, cutmix_weights_labels_by_the_pixels_of_each_sample) {
  const PictureDataset dataset(40);
  auto plain = Loader::open(dataset.source(), options_of(10)).value();
  auto mixed = Loader::open(dataset.source(), mixing({{image::MixKind::cutmix, 1}})).value();
  int with_a_box = 0;
  for (int batch = 0; batch < 4; ++batch) {
    const ReceivedBatch got = next_batch(*plain);
    const Mixed other = take_mixed(*mixed);
    if (got.labels.front() == got.labels.back()) continue;
    std::size_t taken = 0;  // pixels of sample 0 from its partner: red and green distinguish samples
    for (std::size_t v = 0; v < kSide * kSide; ++v) {
      const float now = other.got.images[v];
      EXPECT_TRUE(now == got.images[v] || now == got.images[9 * kValues + v]);
      taken += now != got.images[v] ? 1 : 0;
    }
    // Black pixels of both samples are ambiguous: the box is at least as large as the visible part.
    EXPECT_LE(static_cast<double>(taken) / (kSide * kSide), 1 - share_in(other) + 1e-6);
    with_a_box += share_in(other) < 1 ? 1 : 0;
  }
  EXPECT_GT(with_a_box, 0);
}

TEST(LoaderMixing, is_the_same_for_any_threads_and_after_resuming) {
  const PictureDataset dataset(45);
  const std::vector<image::MixOptions> both = {{image::MixKind::mixup, 0.2}, {image::MixKind::cutmix, 1}};
  LoaderOptions options = mixing(both);
  auto reference = Loader::open(dataset.source(), options).value();
  const std::vector<Mixed> first = take_mixed_epoch(*reference);
  const std::vector<Mixed> second = take_mixed_epoch(*reference);
  EXPECT_NE(first[0].soft, second[0].soft);
  for (std::uint32_t threads : {2, 5}) {
    options.threads = threads;
    auto loader = Loader::open(dataset.source(), options).value();
    EXPECT_EQ(take_mixed_epoch(*loader), first) << threads;
    EXPECT_EQ(take_mixed_epoch(*loader), second) << threads;
  }
  auto resumed = Loader::open(dataset.source(), options, first[1].got.after).value();
  EXPECT_EQ(take_mixed_epoch(*resumed), std::vector<Mixed>(first.begin() + 2, first.end()));
}

TEST(LoaderMixing, a_damaged_sample_is_mixed_into_no_other) {
  PictureDataset dataset(20);
  dataset.corrupt_payload(4);
  LoaderOptions options = mixing({{image::MixKind::mixup, 1}});
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  auto loader = Loader::open(dataset.source(), options).value();
  const Mixed mixed = take_mixed(*loader);
  EXPECT_THAT(mixed.got.samples, ::testing::ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 9));
  options.mixing.clear();
  auto plain = Loader::open(dataset.source(), options).value();
  expect_mixup_of(next_batch(*plain), mixed);
  ASSERT_EQ(loader->skipped().size(), 1u);
  EXPECT_EQ(loader->skipped()[0].sample, 4u);
}

TEST(LoaderMixing, batches_without_it_have_no_soft_labels) {
  const PictureDataset dataset(20);
  auto loader = Loader::open(dataset.source(), options_of(10)).value();
  std::optional<Batch> batch = loader->next(soon()).value();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->soft_labels().data.empty());
}

std::string refusal(const dataset::ShardSource& source, const LoaderOptions& options) {
  return Loader::open(source, options).status().to_string();
}

TEST(LoaderMixing, rejects_invalid_options) {
  const PictureDataset dataset(20);
  LoaderOptions options = mixing({{image::MixKind::mixup, 0}});
  EXPECT_EQ(refusal(dataset.source(), options), "mixup: alpha 0 is not between 0.05 and 100");
  options = mixing({{image::MixKind::cutmix, 1}, {image::MixKind::mixup, 1}});
  options.transform.element = DType::f16;
  EXPECT_EQ(refusal(dataset.source(), options), "mixup: batches of F16 are not supported (F32 is)");
  options = mixing({{image::MixKind::mixup, 1}});
  options.content = Content::bytes;
  EXPECT_EQ(refusal(dataset.source(), options), "loader: mixup and cutmix need images");
}

TEST(LoaderMixing, refuses_samples_without_a_class) {
  TempDirectory folder;
  const auto refused = [&](std::int64_t label) {
    dataset::write_test_dataset(folder.path(),
                                {{{"a", 0, {{"png", picture(0)}}}}, {{"b", label, {{"png", picture(1)}}}}});
    const auto source = dataset::LocalShardSource::open(folder.path(), "").value();
    return refusal(*source, mixing({{image::MixKind::cutmix, 1}}));
  };
  EXPECT_EQ(refused(-1),
            "loader: sample 'b' (in shard 'all-000001.tar') has no label to mix (mixup, cutmix)");
  EXPECT_EQ(refused(std::int64_t{1} << 40),
            "loader: labels of over 1000000 classes are too many to mix (mixup, cutmix)");
}

}  // namespace
}  // namespace stoker::loader
