// The hash that orders samples and divides them into splits: of the key, so that it depends on nothing else.
// Thread-safe: no state.
#pragma once

#include <cstdint>

#include "data/pack/source.h"

namespace stoker::data {

/// The same for ever: shards of existing datasets were made with it.
std::uint64_t order_hash(const Source& source, const SourceSample& sample, std::uint64_t seed);

}  // namespace stoker::data
