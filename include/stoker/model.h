// Built-in models by name. Their state has PyTorch's names and order. Models that torchvision has load into
// torchvision's with strict=True and compute the same logits. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/model_state.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::train {

/// Input of a model.
enum class Input {
  images,   ///< float32, N x 3 x H x W; logits N x classes
  tokens,   ///< int64, N x length; logits N x length x classes
  numbers,  ///< float32, N x columns; logits N x classes
};

/// Random seeds of one forward pass. All random choices in it depend on them.
struct RandomSeeds {
  std::uint64_t shared = 0;  ///< equal on all ranks
  std::uint64_t own = 0;     ///< different for every rank and pass
};

class Model {
 public:
  virtual ~Model() = default;
  /// Computes the logits of a batch. Throws libtorch's exceptions.
  virtual at::Tensor forward(const at::Tensor& batch) = 0;
  virtual Input input() const { return Input::images; }

  /// Seeds the random choices of the next training passes: heads and blocks.
  virtual void reseed(const RandomSeeds&) {}
  /// Whether a training pass may skip parameters.
  virtual bool may_skip_parameters() const { return false; }

  /// In training, batch norm uses and updates batch statistics; in evaluation it uses the running ones.
  void set_mode(Mode mode) { mode_ = mode; }
  /// In the order of PyTorch's state_dict(); tensors are shared with the model.
  const ModelState& state() const { return state_; }
  /// Width in pixels of the last stage's input for images of this size. If it is 1, batch norm cannot learn
  /// from a single image. Models without batch norm return the image size.
  virtual std::int64_t last_stage_size(std::int64_t image_size) const { return image_size; }
  /// Overwrites the model's tensors. Names, shapes and types must match exactly. Otherwise Invalid, and
  /// nothing changes.
  Status load(const NamedTensors& tensors);

 protected:
  Mode mode_ = Mode::train;
  ModelState state_;
};

/// Layers of the language model `gpt`.
struct GptShape {
  std::int64_t layers = 6, heads = 6, width = 384, length = 256;
};

/// Architecture and seed of a model.
struct ModelSpec {
  std::string name;
  std::int64_t classes = 10;
  /// Initial weights equal torchvision's after torch.manual_seed(seed).
  std::uint64_t seed = 0;
  std::int64_t image_size = 224;  ///< for `vit-s16` only
  std::int64_t heads = 1;         ///< residual networks: number of classifiers; a training pass uses one
  double drop = 0;  ///< residual networks: probability to drop the last block; lower for earlier ones
  GptShape gpt;
  Path file;                      ///< `torchscript`: file of torch.jit.save
  std::vector<std::int64_t> mlp;  ///< `mlp`: columns, then the width of each hidden layer
};

std::vector<std::string_view> model_names();
/// Invalid "model 'x': no such model; did you mean 'y'?", or if the shape is invalid.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec);

}  // namespace stoker::train
