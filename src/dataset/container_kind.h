// The file formats of shards. Used by readers and writers of shards. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker::dataset {

enum class ContainerKind {
  tar,       ///< any tool opens it; about 770 bytes of header and padding per file
  tfrecord,  ///< TensorFlow, DALI and other tools read it; about 60 bytes per file
  parquet,   ///< tables: every data tool reads it; about 12 bytes per sample
  hdf5,      ///< arrays: h5py, MATLAB and other tools read it; about 40 bytes per sample
  zarr,      ///< the same arrays, in a zip archive; written as version 3
  mds,       ///< MosaicML's: read in place, never written
  npy,       ///< NumPy's files with windows as samples: read in place, never written
  zarr_2,    ///< Zarr version 2, when written
};

/// "tar", "tfrecord", "parquet", "hdf5", "mds", "npy", and "zarr" of both versions.
std::string_view to_text(ContainerKind kind);
/// The extension of shard names: "zarr.zip" for zarr, otherwise the kind.
std::string_view shard_extension(ContainerKind kind);

}  // namespace stoker::dataset
