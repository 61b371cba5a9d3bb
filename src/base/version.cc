#include "base/version.h"

namespace stoker {

std::string_view version() { return STOKER_VERSION; }

}  // namespace stoker
