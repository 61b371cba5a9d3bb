// Which Stoker this is, as written into runs, datasets and reports.
#pragma once

#include <string_view>

namespace stoker {

/// "0.1.0": the file VERSION at build time.
std::string_view version();

}  // namespace stoker
