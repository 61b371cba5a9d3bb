// Transformers for images and text from the same blocks. Used by model.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/model.h"

namespace stoker::train {

struct VisionShape {
  std::int64_t image = 224, patch = 16, layers = 12, heads = 6, width = 384, hidden = 1536;
};

/// torchvision's VisionTransformer; weights are drawn from `random` in the order of its constructor.
/// REQUIRES: image is a multiple of patch, width of heads.
std::unique_ptr<Model> make_vision_transformer(const VisionShape& shape, std::int64_t classes,
                                               const at::Generator& random);

/// A language model that predicts the next token: token and position embeddings ("wte", "wpe"), the same
/// blocks with a causal mask ("blocks.<n>"), a norm ("ln_f") and a head without bias. REQUIRES: width is a
/// multiple of heads.
std::unique_ptr<Model> make_gpt(const GptShape& shape, std::int64_t vocabulary, const at::Generator& random);

}  // namespace stoker::train
