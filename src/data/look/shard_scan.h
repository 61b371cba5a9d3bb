// The samples of a shard, whoever wrote it. In tar by WebDataset's rules: files side by side that share a
// name up to its first dot. In TFRecord a sample is a record, in Parquet a row, in HDF5, Zarr and
// NumPy's files a row of arrays, in MDS one of its samples. Used to index foreign shards and to write other
// readers' indexes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/tables/paths/table_path.h"
#include "data/look/tables/table_options.h"
#include "data/pack/shard/container.h"
#include "format/chunked/chunk_map.h"

namespace stoker::data {

struct ShardMember {
  std::string name;       ///< as stored
  std::string extension;  ///< behind the first dot of the last part, in lower case
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t bytes = 0;
  bool is_made = false;  ///< lies in what was made of its value: UnpackedShard::made
};

struct ShardSample {
  std::string key;
  std::optional<std::int64_t> label;  ///< that the container itself has (all but tar)
  std::uint64_t offset = 0;           ///< of its record (TFRecord)
  std::uint64_t bytes = 0;            ///< of its record (TFRecord)
  std::vector<ShardMember> members;
};

/// What there is and makes no file, label or key of a sample, by its name; and in how many samples.
using NotTaken = std::map<std::string, std::uint64_t>;

struct ShardScan {
  std::vector<ShardSample> samples;
  NotTaken not_taken;
  std::vector<std::string> only_in_copies;  ///< what is not taken where it lies, and would be by a copy
  std::uint64_t end = 0;                    ///< behind the last member
  std::uint64_t bytes = 0;                  ///< of the file
  /// Of a shard that is packed: members lie among its unpacked bytes. Shared by copies.
  std::shared_ptr<const formats::ChunkMap> chunks;
  std::vector<std::string> classes;  ///< labels that were text: samples have their numbers in it
  std::optional<TableFacts> table;   ///< of rows that were chosen
};

/// Whether a file is called as TFRecord shards are: `.tfrecord`, or by its number of how many
/// (`train-00000-of-01024`).
bool is_tfrecord(std::string_view file);
/// Whether it is called as Parquet files are: `.parquet`.
bool is_parquet(std::string_view file);
/// Whether it is called as HDF5 files are: `.h5`, `.hdf5`.
bool is_hdf5(std::string_view file);
/// Whether it is called as a Zarr store: a folder `.zarr`, a file `.zarr.zip`.
bool is_zarr(std::string_view file);
/// Whether it is called as MDS shards are: `.mds`, packed or not. LitData's chunks are told by their index
/// only.
bool is_mds(std::string_view file);
/// Whether it is called as NumPy's files are: `.npy`, and archives of them: `.npz`. They are shards where a
/// folder has none of another kind, several files a shard perhaps: NpySet.
bool is_npy(std::string_view file);
bool is_npz(std::string_view file);
/// Either of them.
bool is_numpys(std::string_view file);
/// Whether it is called as a shard of any other kind: `.tar` or one of the above.
bool is_shard(std::string_view file);
/// What kind such a name is of.
ContainerKind kind_of_shard(std::string_view file);
/// "train" of "train-00000-of-01024"; empty for a name of another form.
std::string_view without_count(std::string_view file);

/// What the file's name has before its number: "train-000000.tar" and "train.tfrecord-00000-of-01024" →
/// "train"; "000000.tar" → "all".
std::string split_of_shard(std::string_view file);

/// A shard that is packed as a whole, unpacked: places are in that file, which has no name.
struct UnpackedShard {
  ShardScan scan;
  std::optional<File> file;  ///< none: the shard itself can be read at any place
  std::optional<File> made;  ///< files that values were turned into, where there are any
};
/// Of Parquet alone: what is taken of tables, and what a file's path says. Both must outlive what they are
/// given to.
struct TableChoice {
  const TableOptions& options;
  const TablePath& path;
};

/// What scan_shard() tells, of shards that nothing can be read from by itself too: gzip or zstd around a tar
/// or TFRecord file, compressed Parquet, HDF5 and Zarr, tables of numbers. These are unpacked in the folder
/// `scratch`. What `choice` chooses is always unpacked.
Result<UnpackedShard> scan_or_unpack(const Path& file, const Path& scratch, const TableChoice& choice,
                                     Progress& progress);

/// Reads headers only; which container it is, its name says. Members that WebDataset skips (folders, links,
/// names without a dot, `__..__`) are skipped. Invalid for a name that leaves the folder and for two files of
/// one sample with one extension, Corrupt for a damaged archive.
Result<ShardScan> scan_shard(const Path& file);

/// The same, and of HDF5, Zarr and Parquet files whose samples lie in packed chunks, in rows of arrays or in
/// columns of numbers the places among their unpacked bytes.
Result<ShardScan> scan_for_index(const Path& file, const TableChoice& choice);

}  // namespace stoker::data
