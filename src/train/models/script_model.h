// A user model saved by torch.jit.script or torch.jit.trace, for `train: {model: torchscript, file: FILE}`.
// It maps images to logits, has initial weights and runs without Python. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/model.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::train {

/// Errors: not_found if the file is missing, invalid if it is no such model or has no parameters to train.
/// The first pass checks the number of logits.
Result<std::unique_ptr<Model>> load_script_model(const Path& file, std::int64_t classes);

}  // namespace stoker::train
