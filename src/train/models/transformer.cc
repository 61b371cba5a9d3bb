#include "train/models/transformer.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

namespace stoker::train {

namespace {

constexpr double kEmbeddingDeviation = 0.02;

enum class AttentionMask { none, causal };

struct BlockShape {
  std::int64_t width, heads, hidden;
  AttentionMask mask;
};

// torch.nn.MultiheadAttention of a sequence with itself, batch first.
struct Attention {
  at::Tensor in_weight, in_bias;
  Linear out;
  std::int64_t heads;
  AttentionMask mask;

  Attention(const BlockShape& shape, const at::Generator& random)
      : in_weight(at::empty({3 * shape.width, shape.width}, at::kFloat)),
        in_bias(at::zeros({3 * shape.width})),
        out(shape.width, shape.width, random),
        heads(shape.heads),
        mask(shape.mask) {
    xavier_uniform(in_weight, random);
    out.bias.zero_();
  }

  // The operations of PyTorch's multi_head_attention_forward, in its memory layouts: other layouts, which
  // save copies, have other roundings.
  at::Tensor operator()(const at::Tensor& x) const {
    const std::int64_t samples = x.size(0), length = x.size(1), width = x.size(2);
    const at::Tensor projected = at::linear(x.transpose(0, 1), in_weight, in_bias)
                                     .view({1, length, samples, 3, width})
                                     .transpose(0, 3)
                                     .squeeze(3)
                                     .contiguous();
    const auto split_heads = [&](const at::Tensor& one) {
      return one.view({length, samples * heads, width / heads})
          .transpose(0, 1)
          .view({samples, heads, length, width / heads});
    };
    const at::Tensor attended =
        at::scaled_dot_product_attention(split_heads(projected[0]), split_heads(projected[1]),
                                         split_heads(projected[2]), {}, 0, mask == AttentionMask::causal);
    const at::Tensor merged = attended.permute({2, 0, 1, 3}).contiguous().view({length * samples, width});
    return out(merged).view({length, samples, width}).transpose(0, 1);
  }

  void add_to(ModelState& state, const std::string& prefix) {
    state.add_parameter(prefix + ".in_proj_weight", in_weight);
    state.add_parameter(prefix + ".in_proj_bias", in_bias);
    out.add_to(state, prefix + ".out_proj");
  }
};

// torchvision's EncoderBlock without dropout.
struct EncoderBlock {
  LayerNorm attention_norm;
  Attention attention;
  LayerNorm norm;
  Linear mlp_in, mlp_out;

  EncoderBlock(const BlockShape& shape, const at::Generator& random)
      : attention_norm(shape.width),
        attention(shape, random),
        norm(shape.width),
        mlp_in(shape.width, shape.hidden, random),
        mlp_out(shape.hidden, shape.width, random) {
    for (Linear* layer : {&mlp_in, &mlp_out}) {
      xavier_uniform(layer->weight, random);
      layer->bias.normal_(0, 1e-6, random);
    }
  }

  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor x = attention(attention_norm(input)).add(input);
    return x.add(mlp_out(at::gelu(mlp_in(norm(x)))));
  }

  void add_to(ModelState& state, const std::string& prefix) {
    attention_norm.add_to(state, prefix + ".ln_1");
    attention.add_to(state, prefix + ".self_attention");
    norm.add_to(state, prefix + ".ln_2");
    mlp_in.add_to(state, prefix + ".mlp.0");
    mlp_out.add_to(state, prefix + ".mlp.3");
  }
};

class VisionTransformer final : public Model {
 public:
  VisionTransformer(const VisionShape& shape, std::int64_t classes, const at::Generator& random)
      : shape_(shape),
        patches_({3, shape.width, shape.patch, shape.patch}, random),
        patch_bias_(at::empty({shape.width}, at::kFloat)) {
    // nn.Conv2d draws a bias that is then overwritten: drawn here for the numbers after it.
    const double fan_in = static_cast<double>(3 * shape.patch * shape.patch);
    patch_bias_.uniform_(-1 / std::sqrt(fan_in), 1 / std::sqrt(fan_in), random).zero_();
    class_token_ = at::zeros({1, 1, shape.width});
    const std::int64_t side = shape.image / shape.patch;
    positions_ = at::empty({1, side * side + 1, shape.width}, at::kFloat);
    positions_.normal_(0, kEmbeddingDeviation, random);
    for (std::int64_t i = 0; i < shape.layers; ++i)
      blocks_.emplace_back(BlockShape{shape.width, shape.heads, shape.hidden, AttentionMask::none}, random);
    norm_.emplace_back(shape.width);
    head_.emplace_back(shape.width, classes, random);
    // trunc_normal_: values of this deviation never reach its bounds of 2.
    patches_.weight.normal_(0, std::sqrt(1 / fan_in), random);
    head_[0].weight.zero_();
    head_[0].bias.zero_();
    register_state();
  }

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor patches = at::conv2d(images, patches_.weight, patch_bias_, shape_.patch);
    const at::Tensor sequence = patches.flatten(2).permute({0, 2, 1});
    at::Tensor x = at::cat({class_token_.expand({images.size(0), -1, -1}), sequence}, 1).add(positions_);
    for (const EncoderBlock& block : blocks_) x = block(x);
    return head_[0](norm_[0](x).select(1, 0));
  }

 private:
  void register_state() {
    state_.add_parameter("class_token", class_token_);
    state_.add_parameter("conv_proj.weight", patches_.weight);
    state_.add_parameter("conv_proj.bias", patch_bias_);
    state_.add_parameter("encoder.pos_embedding", positions_);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].add_to(state_, format("encoder.layers.encoder_layer_{}", i));
    norm_[0].add_to(state_, "encoder.ln");
    head_[0].add_to(state_, "heads.head");
  }

  const VisionShape shape_;
  Conv patches_;
  at::Tensor patch_bias_, class_token_, positions_;
  std::vector<EncoderBlock> blocks_;
  std::vector<LayerNorm> norm_;  // one element
  std::vector<Linear> head_;     // one element
};

class Gpt final : public Model {
 public:
  Gpt(const GptShape& shape, std::int64_t vocabulary, const at::Generator& random)
      : tokens_(at::empty({vocabulary, shape.width}, at::kFloat)),
        positions_(at::empty({shape.length, shape.width}, at::kFloat)),
        norm_(shape.width),
        head_(at::empty({vocabulary, shape.width}, at::kFloat)) {
    tokens_.normal_(0, kEmbeddingDeviation, random);
    positions_.normal_(0, kEmbeddingDeviation, random);
    for (std::int64_t i = 0; i < shape.layers; ++i)
      blocks_.emplace_back(BlockShape{shape.width, shape.heads, 4 * shape.width, AttentionMask::causal},
                           random);
    head_.normal_(0, kEmbeddingDeviation, random);
    state_.add_parameter("wte.weight", tokens_);
    state_.add_parameter("wpe.weight", positions_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].add_to(state_, format("blocks.{}", i));
    norm_.add_to(state_, "ln_f");
    state_.add_parameter("head.weight", head_);
  }

  at::Tensor forward(const at::Tensor& tokens) override {
    at::Tensor x = at::embedding(tokens_, tokens).add(positions_.slice(0, 0, tokens.size(1)));
    for (const EncoderBlock& block : blocks_) x = block(x);
    return at::linear(norm_(x), head_);
  }
  Input input() const override { return Input::tokens; }

 private:
  at::Tensor tokens_, positions_;
  std::vector<EncoderBlock> blocks_;
  LayerNorm norm_;
  at::Tensor head_;
};

}  // namespace

std::unique_ptr<Model> make_vision_transformer(const VisionShape& shape, std::int64_t classes,
                                               const at::Generator& random) {
  return std::make_unique<VisionTransformer>(shape, classes, random);
}

std::unique_ptr<Model> make_gpt(const GptShape& shape, std::int64_t vocabulary, const at::Generator& random) {
  return std::make_unique<Gpt>(shape, vocabulary, random);
}

}  // namespace stoker::train
