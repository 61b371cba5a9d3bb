// What compressing a source's files would save and cost, measured on some of them. Shards hold files as they
// are, so that each sample is one read; this says what that leaves lying. Used by `data pack --compression
// auto`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "data/pack/source.h"

namespace stoker::data {

/// One way to compress, in blocks of 1 MiB, on one core.
struct CompressionTrial {
  std::string name;       ///< "none", "zstd 3", "gzip 6"
  double ratio = 1;       ///< of the bytes that it leaves
  double write_mb_s = 0;  ///< megabytes of files that it takes in a second of CPU time
  double read_mb_s = 0;   ///< that come out of it
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
  std::vector<CompressionKind> kinds;  ///< the largest shares first
  std::string verdict = "none";
  std::string why;
};

/// Reads some tens of megabytes, spread over all samples. Fails as reading them does; Cancelled when
/// `progress` says stop.
Result<CompressionAdvice> advise_compression(const Source& source, const Progress& progress);

}  // namespace stoker::data
