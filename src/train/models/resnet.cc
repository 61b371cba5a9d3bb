#include "train/models/resnet.h"

#include <optional>
#include <utility>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

namespace stoker::train {

namespace {

// Two or three convolutions and a shortcut.
struct Residual {
  std::vector<ConvNorm> path;
  std::optional<ConvNorm> projection;
  std::int64_t zero_channels = 0;  ///< added on each side of a shortcut without parameters
  std::int64_t stride = 1;
  double drop = 0;

  at::Tensor shortcut(const at::Tensor& x, Mode mode) const {
    if (projection) return (*projection)(x, mode);
    if (zero_channels == 0) return x;
    const at::Tensor strided = x.slice(2, 0, std::nullopt, stride).slice(3, 0, std::nullopt, stride);
    return at::constant_pad_nd(strided, {0, 0, 0, 0, zero_channels, zero_channels});
  }

  at::Tensor operator()(const at::Tensor& x, Mode mode, const at::Generator& random) const {
    at::Tensor out = x;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (i > 0) at::relu_(out);
      out = path[i](out, mode);
    }
    if (mode == Mode::train && drop > 0) out = masked(out, random);
    out.add_(shortcut(x, mode));
    return at::relu_(out);
  }

  // Drops the residual of some samples and scales the remaining ones to the same mean.
  at::Tensor masked(const at::Tensor& residual, const at::Generator& random) const {
    // Drawn on the CPU: the same samples on every device.
    at::Tensor mask = at::empty({residual.size(0), 1, 1, 1}, residual.options().device(at::kCPU));
    mask.bernoulli_(1 - drop, random);
    if (drop < 1) mask.div_(1 - drop);
    return residual.mul(mask.to(residual.device()));
  }

  void add_to(ModelState& state, const std::string& prefix) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      path[i].add_to(state, prefix + ".conv" + number, prefix + ".bn" + number);
    }
    if (projection) projection->add_to(state, prefix + ".downsample.0", prefix + ".downsample.1");
  }
};

struct BlockGeometry {
  Block block;
  Stem stem;
  std::int64_t in, width, stride;
  std::int64_t out() const { return block == Block::bottleneck ? 4 * width : width; }
};

// Draws random numbers in torchvision's order: the projection before the path.
Residual make_block(const BlockGeometry& g, const at::Generator& random) {
  Residual block;
  block.stride = g.stride;
  if (g.stride != 1 || g.in != g.out()) {
    if (g.stem == Stem::imagenet) {
      block.projection.emplace(Conv::Geometry{g.in, g.out(), 1, g.stride}, random);
    } else {
      block.zero_channels = (g.out() - g.in) / 2;
    }
  }
  if (g.block == Block::basic) {
    block.path.emplace_back(Conv::Geometry{g.in, g.width, 3, g.stride}, random);
    block.path.emplace_back(Conv::Geometry{g.width, g.width, 3, 1}, random);
  } else {
    block.path.emplace_back(Conv::Geometry{g.in, g.width, 1, 1}, random);
    block.path.emplace_back(Conv::Geometry{g.width, g.width, 3, g.stride}, random);
    block.path.emplace_back(Conv::Geometry{g.width, g.out(), 1, 1}, random);
  }
  return block;
}

class ResNet final : public Model {
 public:
  ResNet(const ResNetShape& shape, const ResNetVariant& variant, const at::Generator& random)
      : stem_(shape.stem), entry_(entry_geometry(shape.stem), random), mask_random_(random.clone()) {
    BlockGeometry g{shape.block, shape.stem, entry_.conv.geometry.out, entry_.conv.geometry.out, 1};
    for (std::size_t stage = 0; stage < shape.stages.size(); ++stage) {
      for (int i = 0; i < shape.stages[stage]; ++i) {
        g.stride = stage > 0 && i == 0 ? 2 : 1;
        stages_.resize(stage + 1);
        stages_[stage].push_back(make_block(g, random));
        g.in = g.out();
      }
      g.width *= 2;
    }
    for (std::int64_t i = 0; i < variant.heads; ++i) heads_.emplace_back(g.in, variant.classes, random);
    spread_drop(variant.drop);
    initialise(random);
    register_state();
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = entry_(images, mode_);
    at::relu_(x);
    if (stem_ == Stem::imagenet) x = at::max_pool2d(x, 3, 2, 1);
    for (const auto& stage : stages_) {
      for (const Residual& block : stage) x = block(x, mode_, mask_random_);
    }
    return classified(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  void reseed(const RandomSeeds& seeds) override {
    head_ = static_cast<std::size_t>(seeds.shared % heads_.size());
    mask_random_.set_current_seed(seeds.own);
  }
  bool may_skip_parameters() const override { return heads_.size() > 1; }

  std::int64_t last_stage_size(std::int64_t image_size) const override {
    const auto halved = [](std::int64_t size) { return (size + 1) / 2; };
    std::int64_t size = stem_ == Stem::imagenet ? halved(halved(image_size)) : image_size;
    for (std::size_t stage = 1; stage < stages_.size(); ++stage) size = halved(size);
    return size;
  }

 private:
  static Conv::Geometry entry_geometry(Stem stem) {
    return stem == Stem::imagenet ? Conv::Geometry{3, 64, 7, 2} : Conv::Geometry{3, 16, 3, 1};
  }

  at::Tensor classified(const at::Tensor& features) const {
    if (mode_ == Mode::train || heads_.size() == 1) return heads_[head_](features);
    at::Tensor sum = heads_[0](features);
    for (std::size_t i = 1; i < heads_.size(); ++i) sum = sum.add(heads_[i](features));
    return sum.div(static_cast<double>(heads_.size()));
  }

  void spread_drop(double drop) {
    std::size_t blocks = 0, block = 0;
    for (const auto& stage : stages_) blocks += stage.size();
    for (auto& stage : stages_) {
      for (Residual& residual : stage)
        residual.drop = drop * static_cast<double>(++block) / static_cast<double>(blocks);
    }
  }

  // In the order of nn.Module.modules(): a block's projection after its path.
  void initialise(const at::Generator& random) {
    entry_.conv.initialise_for_relu(random);
    for (auto& stage : stages_) {
      for (Residual& block : stage) {
        for (ConvNorm& layer : block.path) layer.conv.initialise_for_relu(random);
        if (block.projection) block.projection->conv.initialise_for_relu(random);
      }
    }
  }

  void register_state() {
    entry_.add_to(state_, "conv1", "bn1");
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      for (std::size_t i = 0; i < stages_[stage].size(); ++i) {
        stages_[stage][i].add_to(state_, format("layer{}.{}", stage + 1, i));
      }
    }
    for (std::size_t i = 0; i < heads_.size(); ++i)
      heads_[i].add_to(state_, heads_.size() == 1 ? "fc" : format("fc.{}", i));
  }

  const Stem stem_;
  ConvNorm entry_;
  std::vector<std::vector<Residual>> stages_;
  std::vector<Linear> heads_;
  std::size_t head_ = 0;
  at::Generator mask_random_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(const ResNetShape& shape, const ResNetVariant& variant,
                                   const at::Generator& random) {
  return std::make_unique<ResNet>(shape, variant, random);
}

}  // namespace stoker::train
