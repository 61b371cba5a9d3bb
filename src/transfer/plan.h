// The files of a dataset that a transfer copies, and the hashes that the manifest lists for them. Plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/shard_source.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "transfer/endpoint.h"

namespace stoker::transfer {

/// A file of a dataset.
struct PlannedFile {
  std::string name;  ///< relative to the dataset's folder
  std::uint64_t bytes = 0;
  /// One for each block, of the kind of `hash`; empty if the manifest has none for the file alone: its blocks
  /// are compared with the source only.
  std::vector<Digest> blocks;
  dataset::BlockHash hash = dataset::BlockHash::sha256;

  std::uint64_t block_count() const { return (bytes + kBlock - 1) / kBlock; }
  std::uint64_t bytes_of(std::uint64_t block) const { return std::min(kBlock, bytes - block * kBlock); }
  /// The blocks' SHA-256 is known without reading them.
  bool has_sha256() const { return !blocks.empty() && hash == dataset::BlockHash::sha256; }
};

struct TransferPlan {
  dataset::OpenDataset dataset;
  std::vector<PlannedFile> files;  ///< shards, index, left-out.csv if it exists, and the manifest
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;    ///< of all files
  std::uint64_t ignored = 0;  ///< entries of the source's folder that are not part of the dataset

  /// All folders of files, without their parents.
  std::vector<std::string> folders() const;
};

/// The plan for the dataset in `folder` of `source`. NotFound or Corrupt without a complete dataset: all
/// files exist with the size that the manifest lists.
Result<TransferPlan> plan_transfer(Endpoint& source, const std::string& folder, dataset::OpenDataset dataset);

/// Compares the shards of several files with the manifest; other shards are compared while they are copied.
/// `folder` is on this machine. Corrupt, Cancelled.
Status check_shards_of_parts(const dataset::OpenDataset& dataset, const Path& folder, Progress& progress);

/// Reads manifest and index of a dataset through an endpoint. `temporary` receives the two files.
Result<dataset::OpenDataset> open_through(Endpoint& source, const std::string& folder, const Path& temporary);

/// All bytes of a file. NotFound if it does not exist; Corrupt above 1 GiB.
Result<std::string> read_through(Endpoint& source, const std::string& file);

}  // namespace stoker::transfer
