// Turns a folder, list or archive of images, or of files grouped by basename, into a dataset: shards (tar,
// TFRecord, Parquet, HDF5, Zarr), side index and manifest. What is no image or broken is left out, listed and
// counted. Resumable after any kind of death, and the same bytes for any number of threads, processes and
// nodes. Used by `stoker data pack` and `data merge`. Format: docs/formats/dataset.md.
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
#include "data/pack/compression.h"
#include "data/pack/outline.h"
#include "data/pack/shard/container.h"
#include "data/pack/shard/shrink.h"
#include "data/pack/shard_plan.h"
#include "data/pack/source.h"
#include "format/manifest.h"

namespace stoker::data {

/// How closely images are looked at.
enum class ImageCheck {
  scan,    ///< header, then to the last marker (JPEG), every chunk's CRC (PNG), the length (WebP)
  decode,  ///< every pixel, as the loader does; about 14 us for 32x32, 2 ms for a photograph
  carry,   ///< as scan, but what is broken is packed as it is
};

/// Where labels are written. They are in the index in any case.
enum class LabelMembers {
  index,  ///< there alone: the smallest shards
  cls,    ///< also a member "<key>.cls" with the number: webdataset, DALI
  json,   ///< also a member "<key>.json" with number and class name: webdataset, Energon
};

/// What becomes of JPEG files.
enum class JpegMode {
  keep,      ///< their bytes as they are
  baseline,  ///< progressive ones become baseline, their pixels unchanged: three times faster to decode
  restart,   ///< all get restart markers, so that a part can be decoded by itself; pixels unchanged
};

/// How a source is compared with a .dvc file beside it, before anything is packed.
enum class DvcUse {
  sizes,  ///< number and size of its files
  full,   ///< their MD5 too: reads everything once more
  off,    ///< not at all, and the manifest does not name it
};

/// What kind of file shards are.
enum class ShardFormat {
  automatic,  ///< tar, or tfrecord where tar's headers and padding would add over a quarter
  tar,
  tfrecord,
  parquet,
  hdf5,
  zarr,    ///< version 3
  zarr_2,  ///< version 2, for zarr-python before 3 and its relatives
};

/// One of several processes that pack the same source.
struct PackPart {
  std::uint32_t number = 1;  ///< from 1
  std::uint32_t of = 1;
};

struct PackOptions {
  SourceOptions source;
  Path out;
  SampleOrder order = SampleOrder::shuffle;
  ImageCheck check = ImageCheck::scan;
  LabelMembers labels = LabelMembers::index;
  JpegMode jpeg = JpegMode::keep;
  formats::BlockHash hash = formats::BlockHash::sha256;
  Shrinking shrink;  ///< lossy; `jpeg` then applies to what comes out
  ShardFormat format = ShardFormat::tar;
  DvcUse dvc = DvcUse::sizes;
  bool tries_compression = false;  ///< for who asks what it would save; shards stay as they are
  ShardSizing sizing;
  bool is_strict = false;            ///< any file left out is an error
  double most_left_out_percent = 1;  ///< more is an error
  int threads = 1;
  std::optional<PackPart> part;  ///< only its shards are written, and `merge_parts` ends the packing
};

/// What will be packed: known after the source was listed, before any file is read.
struct PackPlan {
  PackOptions options;
  Source source;
  std::optional<formats::SourceVersion> version;  ///< of the source, as a .dvc file says
  std::optional<CompressionAdvice> compression;   ///< where it was tried
  ContainerKind container = ContainerKind::tar;
  std::string why_container;      ///< "as tar: ..."; empty where nobody asked and it costs little
  formats::ParquetShape columns;  ///< of shards that are parquet, hdf5 or zarr
  std::vector<ShardSpec> shards;
  std::vector<SplitSizing> sizing;  ///< per split: how many shards and why
  Outline outline;
};

/// What came out.
struct PackSummary {
  formats::Manifest manifest;
  std::uint64_t left_out = 0;     ///< files, hidden ones not counted
  std::uint64_t shards_kept = 0;  ///< done by an earlier, interrupted call
  std::uint64_t shards_done = 0;  ///< with `part`: of this part; the manifest is then empty
  bool was_restarted = false;     ///< an unfinished packing of other input or options was thrown away
};

/// Lists the source and decides the shards. Touches nothing. Cancelled when `progress` says stop.
Result<PackPlan> plan_pack(const PackOptions& options, Progress& progress);

/// Packs. Goes on where an interrupted call of the same plan stopped. On error nothing is left that reads as
/// a dataset; finished shards stay for the next call. Cancelled when `progress` says stop.
Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress);

/// Makes a dataset of what all parts have written into `out`. Needs the source no more. NotFound names the
/// parts that are missing.
Result<PackSummary> merge_parts(const Path& out);

/// Whether every shard of the packing in `out` is finished and nothing is left to do but merge_parts(). Takes
/// no lock: parts may begin meanwhile.
bool is_ready_to_merge(const Path& out);

/// "2 not an image, 1 truncated"; empty if there is nothing.
std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out);

}  // namespace stoker::data
