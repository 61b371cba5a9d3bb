// Measures what compressing a source would save and cost, on a sample of its files. Shards store files
// without further compression, so that each sample is one read. Used by `data pack --compression auto`.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

/// One compression method, in blocks of 1 MiB, on one core.
struct CompressionTrial {
  std::string name;       ///< "none", "zstd 3", "gzip 6"
  double ratio = 1;       ///< compressed size / original size
  double write_mb_s = 0;  ///< original megabytes per second of CPU time
  double read_mb_s = 0;   ///< original megabytes per second of CPU time
};

/// Files of one extension.
struct CompressionKind {
  std::string extension;
  double share = 0;  ///< of the source's bytes
  double ratio = 1;  ///< by zstd 3
};

struct CompressionAdvice {
  std::uint64_t sampled_bytes = 0;
  std::vector<CompressionTrial> trials;
  std::vector<CompressionKind> kinds;  ///< largest share first
  std::string verdict = "none";
  std::string why;
};

/// Reads some tens of megabytes from all samples. Fails like reading them; Cancelled on stop_requested().
Result<CompressionAdvice> advise_compression(const sources::PackSource& source, const Progress& progress);

}  // namespace stoker::pack
