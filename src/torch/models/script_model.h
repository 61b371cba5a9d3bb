// A model of somebody's own, as torch.jit.script or torch.jit.trace saved it: what stoker-train trains for
// `train: {model: torchscript, file: FILE}`. It takes images and gives logits, has its own weights to begin
// with, and runs without Python. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/text.h"
#include "torch/models/model.h"

namespace stoker::torch {

/// Errors: not_found without the file, invalid when it is no such model or has no parameters to train.
/// Whether its logits are as many as `classes`, or more, shows in the first pass.
Result<std::unique_ptr<Model>> load_script_model(const Path& file, std::int64_t classes);

}  // namespace stoker::torch
