// Options of an image transform: operations by name with parameters, recipes (named lists of operations), the
// layout of samples, and mixing of batches. Names and parameters are torchvision's: docs/transforms.md. Used
// by the job and by Python to configure a loader. Values; thread-compatible.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::image {

/// A parameter's value as the user writes it: true, 4, "bicubic" or [0.08, 1].
using Parameter = std::variant<bool, double, std::string, std::vector<double>>;

/// One operation of a transform: {"random_crop", {{"size", 32.0}, {"padding", 4.0}}}.
struct TransformOperation {
  /// torchvision's class name, in either case: "RandomCrop", "random_crop".
  std::string name;
  std::map<std::string, Parameter> parameters = {};

  bool operator==(const TransformOperation&) const = default;
};

/// "random_crop(padding=4, size=32)".
std::string to_text(const TransformOperation& operation);
/// "RandomCrop" and "random_crop" are both "random_crop".
std::string canonical_name(std::string_view name);

/// "cifar-eval", "cifar-train", "imagenet-eval", "imagenet-train".
const std::vector<std::string_view>& recipe_names();
/// The operations of a recipe. Fails with Invalid, with a suggestion, for an unknown name.
Result<std::vector<TransformOperation>> recipe(std::string_view name);

/// The layout of the colours of a sample: three planes, or interleaved in every pixel.
enum class ImageLayout { nchw, nhwc };

struct TransformOptions {
  /// In the order they are applied; `normalize` may only be the last. See recipe().
  std::vector<TransformOperation> operations = {};
  /// f32, bf16 and f16 hold values in 0..1, or normalised values; u8 holds bytes, never normalised.
  DType element = DType::f32;
  ImageLayout layout = ImageLayout::nchw;
};

enum class MixKind {
  mixup,   ///< each value is share x the sample's + (1 - share) x the partner's
  cutmix,  ///< one rectangle, the same in all samples, comes from the partner
};

struct MixOptions {
  MixKind kind = MixKind::mixup;
  double alpha = 1;  ///< the share is drawn from Beta(alpha, alpha); 0.05 to 100
};

}  // namespace stoker::image
