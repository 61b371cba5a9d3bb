// One operation of a transform, built from its parameters and applied to every sample. Used by Transform
// only. Immutable and thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "image/transform/canvas.h"
#include "image/transform/ops/parameters.h"
#include "image/transform/philox.h"
#include "stoker/status.h"

namespace stoker::image {

class Step {
 public:
  virtual ~Step() = default;
  /// Fails with Invalid when the image does not fit.
  virtual Status apply(Canvas& canvas, PhiloxStream& rng) const = 0;
};

/// The size of all images at a point of the list; empty while it differs between images.
using Extent = std::optional<Size>;

/// Builds an operation, and sets `extent` to the size of images after it. Errors in the parameters are
/// reported by Parameters::status().
using StepMaker = std::unique_ptr<Step> (*)(Parameters& parameters, Extent& extent);

struct StepKind {
  std::string_view name;
  StepMaker make;
};
/// The operations of each source.
std::vector<StepKind> augment_steps();
std::vector<StepKind> colour_steps();
std::vector<StepKind> crop_steps();
std::vector<StepKind> flip_steps();

}  // namespace stoker::image
