// Cures for Python modules that are missing: the name of their package often differs from the module's.
// Internal to this folder. Thread-safe: no state.
#pragma once

#include <string_view>

#include "base/language/message.h"
#include "diagnose/failure.h"

namespace stoker::diagnose {

/// The rule for a missing module. Its cure depends on the module.
inline constexpr std::string_view kModuleMissing = "module-missing";

/// How to provide `module`: "cv2", "torch._six". Never suggests to install a package of an unrelated project.
Message module_cure(std::string_view module, StartKind start);

}  // namespace stoker::diagnose
