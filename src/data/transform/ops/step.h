// One operation of a transform, made from its parameters and applied to every sample. Used by Transform only.
// Steps are immutable and thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/transform/canvas.h"
#include "data/transform/ops/parameters.h"
#include "data/transform/randomness.h"

namespace stoker::data {

class Step {
 public:
  virtual ~Step() = default;
  /// Fails with Invalid when the image does not fit.
  virtual Status apply(Canvas& canvas, Dice& dice) const = 0;
};

/// The size all images have at a point of the list; nothing while it differs from image to image.
using Extent = std::optional<Size>;

/// Makes a step, and says in `extent` what size images have after it. What is wrong with the parameters is
/// left for Parameters::status() to tell.
using StepMaker = std::unique_ptr<Step> (*)(Parameters& parameters, Extent& extent);

struct StepKind {
  std::string_view name;
  StepMaker make;
};
/// The operations of each file.
std::vector<StepKind> augment_steps();
std::vector<StepKind> colour_steps();
std::vector<StepKind> crop_steps();
std::vector<StepKind> flip_steps();

}  // namespace stoker::data
