// Packs a folder, list or archive of images, or of files grouped by basename, into a dataset: shards (tar,
// TFRecord, Parquet, HDF5, Zarr), side index and manifest. Invalid images are left out, listed and counted.
// Resumable after any crash; the bytes do not depend on the number of threads, processes and nodes. Used by
// `stoker data pack` and `data merge`. Format: docs/formats/dataset.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "pack/compression.h"
#include "pack/container/container.h"
#include "pack/dataset_plan.h"
#include "pack/images/reencode.h"
#include "pack/shard_plan.h"
#include "sources/source.h"
#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

/// How thoroughly images are checked.
enum class ImageCheck {
  scan,         ///< header, then to the last marker (JPEG), every chunk's CRC (PNG), the length (WebP)
  decode,       ///< every pixel, like the loader; about 14 us for 32x32, 2 ms for a photograph
  keep_broken,  ///< as scan, but keeps broken images
};

/// Where labels are written, in addition to the index.
enum class LabelMembers {
  index,  ///< only in the index: the smallest shards
  cls,    ///< also a member "<key>.cls" with the number: webdataset, DALI
  json,   ///< also a member "<key>.json" with number and class name: webdataset, Energon
};

/// How JPEG files are converted.
enum class JpegMode {
  keep,      ///< keeps the bytes
  baseline,  ///< converts progressive files to baseline with the same pixels: three times faster to decode
  restart,   ///< adds restart markers to all files for partial decoding, with the same pixels
};

/// How a source is compared with its .dvc file before packing.
enum class DvcCheck {
  sizes,  ///< number and size of its files
  full,   ///< also their MD5: reads everything once more
  off,    ///< not compared and not recorded in the manifest
};

/// The format of the shards.
enum class ShardFormat {
  automatic,  ///< tar, or tfrecord where tar's headers and padding would add over a quarter
  tar,
  tfrecord,
  parquet,
  hdf5,
  zarr,    ///< version 3
  zarr_2,  ///< version 2, for zarr-python before 3 and similar readers
};

/// One of several processes that pack the same source.
struct PackPart {
  std::uint32_t number = 1;  ///< from 1
  std::uint32_t count = 1;
};

struct PackOptions {
  sources::SourceOptions source;
  Path out;
  SampleOrder order = SampleOrder::shuffle;
  ImageCheck check = ImageCheck::scan;
  LabelMembers labels = LabelMembers::index;
  JpegMode jpeg = JpegMode::keep;
  dataset::BlockHash hash = dataset::BlockHash::sha256;
  ReencodeOptions reencode;  ///< lossy; `jpeg` then applies to the result
  ShardFormat format = ShardFormat::tar;
  DvcCheck dvc = DvcCheck::sizes;
  bool tries_compression = false;  ///< only measures it; shards stay uncompressed
  ShardSizing sizing;
  bool is_strict = false;           ///< any file left out is an error
  double max_left_out_percent = 1;  ///< a higher percentage is an error
  int threads = 1;
  std::optional<PackPart> part;  ///< writes only the shards of this part; merge_parts() completes the dataset
};

/// The plan: known after listing the source, before reading any file.
struct PackPlan {
  PackOptions options;
  sources::PackSource source;
  std::optional<dataset::SourceVersion> version;  ///< of the source, from DVC
  std::optional<CompressionAdvice> compression;   ///< if measured
  dataset::ContainerKind container = dataset::ContainerKind::tar;
  std::string why_container;        ///< "as tar: ..."; empty for the default with little overhead
  parquet::ParquetColumns columns;  ///< for parquet, hdf5 and zarr
  std::vector<ShardSpec> shards;
  std::vector<SplitSizing> sizing;  ///< per split: number of shards and the reason
  DatasetPlan dataset_plan;
};

/// The result of packing.
struct PackSummary {
  dataset::Manifest manifest;
  std::uint64_t left_out = 0;     ///< files, without hidden ones
  std::uint64_t shards_kept = 0;  ///< finished by an earlier, interrupted call
  std::uint64_t shards_done = 0;  ///< with `part`: shards of this part; the manifest is then empty
  bool was_restarted = false;     ///< an unfinished pack of different input or options was discarded
};

/// Lists the source and plans the shards. Writes nothing. Cancelled on stop_requested().
Result<PackPlan> plan_pack(const PackOptions& options, Progress& progress);

/// Packs, or continues an interrupted call of the same plan. An error leaves no dataset; finished shards stay
/// for the next call. Cancelled on stop_requested().
Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress);

/// Makes a dataset of the shards of all parts in `out`, without the source. NotFound lists the missing parts.
Result<PackSummary> merge_parts(const Path& out);

/// Whether all shards in `out` are finished and only merge_parts() remains. Takes no lock: parts may start
/// concurrently.
bool is_ready_to_merge(const Path& out);

}  // namespace stoker::pack
