#include "train/loss/objective.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "train/test_golden.h"

namespace stoker::train {
namespace {

// The logits and labels of tests/golden/losses.json.
struct Reference {
  nlohmann::json file = golden("losses.json");
  at::Tensor logits, labels;

  Reference() {
    std::vector<float> numbers;
    for (const auto& row : file.at("logits")) {
      for (const auto& value : row) numbers.push_back(value.get<float>());
    }
    auto targets = file.at("targets").get<std::vector<std::int64_t>>();
    const auto samples = static_cast<std::int64_t>(targets.size());
    logits = at::from_blob(numbers.data(), {samples, 10}, at::kFloat).clone();
    labels = at::from_blob(targets.data(), {samples}, at::kLong).clone();
  }
};

bool is_plain(const nlohmann::json& row) {
  for (const char* key : {"weight", "ignore_index", "soft_targets", "mixup"}) {
    if (row.contains(key)) return false;
  }
  return true;
}

TEST(Objective, smoothed_losses_and_gradients_match_python) {
  const Reference reference;
  int compared = 0;
  for (const auto& row : reference.file.at("rows")) {
    if (!is_plain(row) || row.at("reduction") != "mean") continue;
    const at::Tensor logits = reference.logits.clone().set_requires_grad(true);
    const at::Tensor loss = training_loss(logits, {.labels = reference.labels}, row.at("label_smoothing"));
    EXPECT_NEAR(loss.item<double>(), row.at("loss")[0].get<double>(), 1e-6);
    if (!row.contains("grad_row0")) continue;
    loss.backward();
    for (int k = 0; k < 10; ++k) {
      EXPECT_NEAR((logits.grad()[0][k].item<double>()),
                  row.at("grad_row0")[static_cast<std::size_t>(k)].get<double>(), 1e-6);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(Objective, the_loss_of_mixed_labels_matches_python) {
  const Reference reference;
  for (const auto& row : reference.file.at("rows")) {
    if (!row.contains("mixup")) continue;  // 0.3*CE(y)+0.7*CE(y.flip(0))
    const MixedTargets targets{
        .labels = reference.labels.flip(0), .second_labels = reference.labels, .share = 0.7};
    EXPECT_NEAR(training_loss(reference.logits, targets, 0.1).item<double>(), row.at("loss")[0].get<double>(),
                1e-6);
    return;
  }
  FAIL() << "no row with mixup";
}

// Validation uses libtorch's function directly.
TEST(Objective, sums_without_smoothing_match_python) {
  const Reference reference;
  for (const auto& row : reference.file.at("rows")) {
    if (!is_plain(row) || row.at("reduction") != "sum" || row.at("label_smoothing") != 0.0) continue;
    EXPECT_NEAR(
        at::cross_entropy_loss(reference.logits, reference.labels, {}, at::Reduction::Sum).item<double>(),
        row.at("loss")[0].get<double>(), 1e-5);
    return;
  }
  FAIL() << "no row of a sum";
}

constexpr std::int64_t kImages = 4, kSize = 8;

// All pixels of image i are i, and its label is i.
at::Tensor numbered_images() {
  std::vector<at::Tensor> images;
  for (std::int64_t i = 0; i < kImages; ++i)
    images.push_back(at::full({3, kSize, kSize}, static_cast<double>(i), at::kFloat));
  return at::stack(images);
}

TEST(Objective, mixup_blends_adjacent_images_by_the_label_shares) {
  for (std::uint64_t random = 0; random < 20; ++random) {
    MixedTargets targets{.labels = at::arange(kImages)};
    const at::Tensor mixed = numbered_images();
    ASSERT_TRUE(mix(mixed, targets, {.mixup = 0.4}, random).ok());
    EXPECT_GE(targets.share, 0.5);
    EXPECT_LE(targets.share, 1);
    for (std::int64_t i = 0; i < kImages; ++i) {
      const double expected =
          targets.share * static_cast<double>(targets.labels[i].item<std::int64_t>()) +
          (1 - targets.share) * static_cast<double>(targets.second_labels[i].item<std::int64_t>());
      EXPECT_NEAR(mixed[i].min().item<double>(), expected, 1e-5);
      EXPECT_NEAR(mixed[i].max().item<double>(), expected, 1e-5);
    }
  }
}

TEST(Objective, cutmix_pastes_a_box_of_the_label_share_in_both_layouts) {
  int cut = 0;
  for (const auto layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (std::uint64_t random = 0; random < 20; ++random) {
      MixedTargets targets{.labels = at::arange(kImages)};
      const at::Tensor mixed = numbered_images().contiguous(layout);
      ASSERT_TRUE(mix(mixed, targets, {.cutmix = 1}, random).ok());
      for (std::int64_t i = 0; i < kImages; ++i) {
        const double kept =
            mixed[i].eq(targets.labels[i]).sum().item<double>() / static_cast<double>(3 * kSize * kSize);
        EXPECT_NEAR(kept, targets.share, 1e-6) << random;
        cut += kept < 1;
      }
    }
  }
  EXPECT_GT(cut, 40);
}

TEST(Objective, tensor_operations_mix_as_the_loader_does) {
  for (const MixupOptions& options : {MixupOptions{.mixup = 0.4}, MixupOptions{.cutmix = 1}}) {
    for (std::uint64_t random = 0; random < 20; ++random) {
      MixedTargets targets{.labels = at::arange(kImages)};
      const at::Tensor expected = numbered_images(), found = numbered_images();
      ASSERT_TRUE(mix(expected, targets, options, random).ok());
      const image::MixKind kind = options.mixup > 0 ? image::MixKind::mixup : image::MixKind::cutmix;
      const image::MixOptions drawn_from{kind, options.mixup > 0 ? options.mixup : options.cutmix};
      const auto drawn = image::draw_mix(drawn_from, {.seed = random}, {kImages, kSize, kSize});
      ASSERT_TRUE(drawn.ok());
      mix_on_device(found, kind, *drawn);
      EXPECT_LT((found.sub(expected).abs().max().item<double>()), 1e-6) << random;
    }
  }
}

TEST(Objective, mixing_depends_only_on_the_random_number) {
  const MixupOptions both{.mixup = 0.2, .cutmix = 1};
  MixedTargets a{.labels = at::arange(kImages)}, b = a, c = a;
  const at::Tensor first = numbered_images(), again = numbered_images();
  ASSERT_TRUE(mix(first, a, both, 7).ok() && mix(again, b, both, 7).ok());
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_EQ(a.share, b.share);
  ASSERT_TRUE(mix(numbered_images(), c, both, 8).ok());
  EXPECT_NE(a.share, c.share);
}

TEST(Objective, without_mixing_images_are_unchanged) {
  MixedTargets targets{.labels = at::arange(kImages)};
  const at::Tensor images = numbered_images();
  ASSERT_TRUE(mix(images, targets, {}, 3).ok());
  EXPECT_TRUE(at::equal(images, numbered_images()));
  EXPECT_FALSE(targets.second_labels.defined());
}

}  // namespace
}  // namespace stoker::train
