// Version of Stoker, as stored in runs, datasets and reports.
#pragma once

#include <string_view>

namespace stoker {

/// "0.1.0": content of the file VERSION at build time.
std::string_view version();

}  // namespace stoker
