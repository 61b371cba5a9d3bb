// Models that stoker-train can train, by name. Their state has PyTorch's names and order: those that
// torchvision has load into torchvision's with strict=True and give the same logits. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "torch/models/layers.h"
#include "torch/named_tensor.h"

namespace stoker::torch {

/// What a model is fed with.
enum class Input {
  images,   ///< float32, N x 3 x H x W; logits N x classes
  tokens,   ///< int64, N x length; logits N x length x classes
  numbers,  ///< float32, N x columns; logits N x classes
};

/// The random numbers of one pass, from which all chance in it follows.
struct Chance {
  std::uint64_t common = 0;  ///< the same on all ranks
  std::uint64_t own = 0;     ///< another one on every rank and in every pass
};

class Model {
 public:
  virtual ~Model() = default;
  /// Logits of a batch. Throws what libtorch throws.
  virtual at::Tensor forward(const at::Tensor& batch) = 0;
  virtual Input input() const { return Input::images; }

  /// Decides what the next passes in training do by chance: which head, which blocks.
  virtual void draw(const Chance&) {}
  /// Whether a pass in training may leave parameters out.
  virtual bool leaves_out() const { return false; }

  /// Batch norm uses and updates batch statistics in training, and its running ones in evaluation.
  void set_mode(Mode mode) { mode_ = mode; }
  /// In the order of PyTorch's state_dict(); tensors are shared with the model.
  const ModelState& state() const { return state_; }
  /// Pixels on a side of what the last stage sees of images of that size: with 1, batch norm cannot learn
  /// from a batch of one image. Models without batch norm answer the size itself.
  virtual std::int64_t last_stage_size(std::int64_t image_size) const { return image_size; }
  /// Overwrites the model's tensors. All names must be there, with the same shapes and types, and no others;
  /// otherwise Invalid, and nothing is changed.
  Status load(const NamedTensors& tensors);

 protected:
  Mode mode_ = Mode::train;
  ModelState state_;
};

/// The layers of the language model `gpt`.
struct GptShape {
  std::int64_t layers = 6, heads = 6, width = 384, length = 256;
};

/// What to build, and from which random numbers.
struct ModelSpec {
  std::string name;
  std::int64_t classes = 10;
  /// Initial weights are those of torch.manual_seed(seed) before torchvision's constructor.
  std::uint64_t seed = 0;
  std::int64_t image_size = 224;  ///< `vit-s16` alone needs to know
  std::int64_t heads = 1;         ///< residual networks: classifiers, of which each pass in training uses one
  double drop = 0;  ///< residual networks: how often the last block is left out; earlier ones less
  GptShape gpt;
  Path file;                      ///< `torchscript`: what torch.jit saved
  std::vector<std::int64_t> mlp;  ///< `mlp`: columns, then the width of each hidden layer
};

/// The names make_model knows.
std::vector<std::string_view> model_names();
/// Invalid "model 'x': no such model; did you mean 'y'?", or when the shape makes no sense.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec);

}  // namespace stoker::torch
