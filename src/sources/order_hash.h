// The hash that orders samples and divides them into splits. Depends only on the key. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "sources/source.h"

namespace stoker::sources {

/// Must never change: existing datasets depend on it.
std::uint64_t order_hash(const PackSource& source, const SourceSample& sample, std::uint64_t seed);

}  // namespace stoker::sources
