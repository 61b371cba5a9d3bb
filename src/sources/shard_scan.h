// Scans the samples of a shard from any tool. In tar by WebDataset's rules: adjacent files that share a name
// up to the first dot. In TFRecord a sample is a record, in Parquet a row, in HDF5, Zarr and NumPy files a
// row of arrays, in MDS one of its samples. Used to index foreign shards and to export indexes. Thread-safe:
// no state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "codec/chunks/chunk_map.h"
#include "dataset/container_kind.h"
#include "sources/table_options.h"
#include "sources/table_path.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

struct ShardMember {
  std::string name;       ///< as stored
  std::string extension;  ///< after the first dot of the file name, in lower case
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t bytes = 0;
  bool is_converted = false;  ///< in UnpackedShard::converted instead of the shard
};

struct ShardSample {
  std::string key;
  std::optional<std::int64_t> label;  ///< stored in the container itself (all except tar)
  std::uint64_t offset = 0;           ///< of its record (TFRecord)
  std::uint64_t bytes = 0;            ///< of its record (TFRecord)
  std::vector<ShardMember> members;
};

/// Fields that become no file, label or key of a sample, with the number of samples.
using SkippedFields = std::map<std::string, std::uint64_t>;

struct ShardScan {
  std::vector<ShardSample> samples;
  SkippedFields skipped_fields;
  std::map<std::string, std::uint64_t> skipped_members;  ///< of a tar: members without a sample, by reason
  std::vector<std::string> copy_only;                    ///< fields that only a converted copy can include
  std::uint64_t end = 0;                                 ///< after the last member
  std::uint64_t bytes = 0;                               ///< of the file
  /// For a packed shard: members are offsets in its unpacked bytes. Shared by copies.
  std::shared_ptr<const codec::ChunkMap> chunks;
  std::vector<std::string> classes;  ///< text labels: samples have their index
  /// Names of number labels in the metadata of a table: name i is that of label i.
  std::vector<std::string> class_names;
  /// Of a table whose keys are file names: the options that name rows by file and number instead.
  std::string row_keys_option;
  std::optional<TableFacts> table;  ///< of selected rows
};

/// Whether the file name is a TFRecord shard's: `.tfrecord`, or number and count (`train-00000-of-01024`).
bool is_tfrecord(std::string_view file);
/// `.parquet`
bool is_parquet(std::string_view file);
/// `.h5`, `.hdf5`
bool is_hdf5(std::string_view file);
/// A folder `.zarr`, a file `.zarr.zip`.
bool is_zarr(std::string_view file);
/// `.mds`, compressed or not. LitData's chunks are only recognized by their index.
bool is_mds(std::string_view file);
/// `.npy`, and archives `.npz`. They are shards only in a folder without other shards, several files a shard
/// perhaps: NpySet.
bool is_npy(std::string_view file);
bool is_npz(std::string_view file);
/// Either of them.
bool is_numpy_file(std::string_view file);
/// Any other shard: `.tar` or one of the above.
bool is_shard(std::string_view file);
/// The format of a shard by its name.
dataset::ContainerKind kind_of_shard(std::string_view file);
/// A compressed shard, unpacked: places are offsets in `file`, which is unnamed.
struct UnpackedShard {
  ShardScan scan;
  std::optional<File> file;       ///< none: the shard itself is readable at any offset
  std::optional<File> converted;  ///< files converted from values, if any
};
/// Options and partition keys of Parquet. Both must outlive it.
struct TableSelection {
  const TableOptions& options;
  const TablePath& path;
};

/// Like scan_shard(), also for shards without random access: gzip or zstd around tar or TFRecord, compressed
/// Parquet, HDF5 and Zarr, tables of numbers. Unpacks them into the folder `scratch`, and always with
/// `choice`.
Result<UnpackedShard> scan_or_unpack(const Path& file, const Path& scratch, const TableSelection& choice,
                                     Progress& progress);

/// Reads headers only; the format is known by name. Skips the members that WebDataset skips (folders, links,
/// names without a dot, `__..__`). Invalid for a name outside the folder and for two files of one sample with
/// one extension, Corrupt for a damaged archive.
Result<ShardScan> scan_shard(const Path& file);

/// Like scan_shard(), and for HDF5, Zarr and Parquet with packed chunks, rows of arrays or columns of
/// numbers: places are offsets in the unpacked bytes.
Result<ShardScan> scan_for_index(const Path& file, const TableSelection& choice);

}  // namespace stoker::sources
