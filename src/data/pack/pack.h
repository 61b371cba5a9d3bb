// Turns a folder of images, or of files grouped by basename, into a dataset: tar shards, side index and
// manifest. What is no image or broken is left out, listed and counted. Resumable after any kind of death,
// and the same bytes for any number of threads. Used by `stoker data pack`. Format: docs/formats/dataset.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/pack/shard_plan.h"
#include "data/pack/source.h"
#include "format/manifest.h"

namespace stoker::data {

/// How closely images are looked at.
enum class ImageCheck {
  scan,    ///< header by its library, then to the last marker (JPEG), every chunk's CRC (PNG), the length
           ///< (WebP)
  decode,  ///< every pixel, as the loader does; about 14 us for 32x32, 2 ms for a photograph
};

struct PackOptions {
  Path source;
  Path out;
  SourceLayout layout = SourceLayout::images;
  SampleOrder order = SampleOrder::shuffled;
  ImageCheck check = ImageCheck::scan;
  ShardSizing sizing;
  bool is_strict = false;            ///< any file left out is an error
  double most_left_out_percent = 1;  ///< more is an error
  int threads = 1;
};

/// What will be packed: known after the source was listed, before any file is read.
struct PackPlan {
  PackOptions options;
  Source source;
  std::vector<ShardSpec> shards;
  std::vector<SplitSizing> sizing;  ///< per split: how many shards and why
  std::uint64_t shard_bytes = 0;    ///< what the shards will take, about
  std::string fingerprint;          ///< of everything that decides the result
};

/// What came out.
struct PackSummary {
  formats::Manifest manifest;
  std::uint64_t left_out = 0;     ///< files, hidden ones not counted
  std::uint64_t shards_kept = 0;  ///< done by an earlier, interrupted call
  bool was_restarted = false;     ///< an unfinished packing of other input or options was thrown away
};

/// Lists the source and decides the shards. Touches nothing. Cancelled when `progress` says stop.
Result<PackPlan> plan_pack(const PackOptions& options, const Progress& progress);

/// Packs. Goes on where an interrupted call of the same plan stopped. On error nothing is left that reads as
/// a dataset; finished shards stay for the next call. Cancelled when `progress` says stop.
Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress);

/// "2 not an image, 1 truncated"; empty if there is nothing.
std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out);

}  // namespace stoker::data
