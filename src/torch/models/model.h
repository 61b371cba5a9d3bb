// Image classifiers that stoker-train can train, by name. Their state has PyTorch's names and order: those of
// torchvision load into torchvision's with strict=True and give the same logits. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "torch/models/layers.h"
#include "torch/named_tensor.h"

namespace stoker::torch {

class Model {
 public:
  virtual ~Model() = default;
  /// Logits of a batch of float32 images, N x 3 x H x W. Throws what libtorch throws.
  virtual at::Tensor forward(const at::Tensor& images) = 0;

  /// Batch norm uses and updates batch statistics in training, and its running ones in evaluation.
  void set_mode(Mode mode) { mode_ = mode; }
  /// In the order of PyTorch's state_dict(); tensors are shared with the model.
  const ModelState& state() const { return state_; }
  /// Pixels on a side of what the last stage sees of images of that size: with 1, batch norm cannot learn
  /// from a batch of one image.
  virtual std::int64_t last_stage_size(std::int64_t image_size) const = 0;
  /// Overwrites the model's tensors. All names must be there, with the same shapes and types, and no others;
  /// otherwise Invalid, and nothing is changed.
  Status load(const NamedTensors& tensors);

 protected:
  Mode mode_ = Mode::train;
  ModelState state_;
};

/// What to build, and from which random numbers.
struct ModelSpec {
  std::string name;
  std::int64_t classes = 10;
  std::uint64_t seed =
      0;  ///< initial weights are those of torch.manual_seed(seed) before torchvision's constructor
};

/// The names make_model knows.
std::vector<std::string_view> model_names();
/// Invalid "model 'x': no such model; did you mean 'y'?".
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec);

}  // namespace stoker::torch
