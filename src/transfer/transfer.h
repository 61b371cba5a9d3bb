// Copies a dataset between this machine and a host, or between folders of this machine: `stoker data push`
// and `pull`. Blocks on the network.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "transfer/location.h"

namespace stoker::transfer {

struct TransferOptions {
  std::string command;        ///< "data push", for cures
  int streams = 4;            ///< connections, or threads between two folders
  ByteCount limit;            ///< bytes per second of all streams together; 0: none
  bool is_dry_run = false;    ///< only compare and plan
  bool is_replacing = false;  ///< a different dataset at the target is moved aside
};

enum class TransferOutcome {
  copied,
  present,  ///< the target has the same version, complete: nothing was sent
  planned,  ///< a dry run
};

struct TransferReport {
  TransferOutcome outcome = TransferOutcome::copied;
  std::string target;   ///< absolute path there
  std::string version;  ///< of the dataset
  std::uint64_t shards = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;        ///< of all files
  std::uint64_t sent_bytes = 0;   ///< in this call; of a dry run: that would be sent
  std::uint64_t found_bytes = 0;  ///< that an earlier call sent, compared again
  std::uint64_t ignored = 0;      ///< entries of the source that are not part of the dataset
  std::string moved_aside;        ///< where a different dataset was moved to; "" without one
  std::string verified_by;        ///< what hashed the blocks at the target
  int streams = 0;                ///< that could be opened
  std::string streams_note;       ///< why some streams could not be opened
  std::uint64_t free_bytes = 0;   ///< at the target, before
  std::string free_limited_by;
  std::string quota_error;  ///< why a quota at the target is unknown
  double seconds = 0;
};

/// Copies the dataset to the folder `target`, which appears when it is complete: every block has been read
/// back there and has the hash in the manifest. A later call continues after an interruption. Exists if a
/// different dataset or other files are there; NoSpace before anything is sent; Corrupt if the source differs
/// from its manifest; Unavailable if the last connection is lost; Cancelled.
Result<TransferReport> transfer_dataset(const Location& source, const Location& target,
                                        const TransferOptions& options, Progress& progress);

}  // namespace stoker::transfer
