// Several streams that copy the pieces of files and compare them at the target. Used by transfer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "transfer/endpoint.h"
#include "transfer/plan.h"

namespace stoker::transfer {

/// A connection to both sides, for one thread.
struct CopyStream {
  std::unique_ptr<Endpoint> source;
  std::unique_ptr<Endpoint> target;
};

struct CopyRequest {
  const TransferPlan& plan;
  std::string source_folder;
  std::string target_folder;
  std::string source_name;  ///< for messages
  std::string target_name;
  std::vector<std::uint64_t> earlier;  ///< size of each file at the target; 0: to be sent without a look
  int streams = 1;
  std::function<Result<CopyStream>()> open;  ///< for further streams; called from several threads
};

class CopyStreams {
 public:
  /// `streams` has one; further ones are added, and lost ones removed.
  CopyStreams(const CopyRequest& request, std::vector<CopyStream>& streams, Progress& progress);

  /// Copies all files, the manifest last. If a connection is lost, the remaining ones continue.
  Status run();

  std::uint64_t sent_bytes() const { return sent_bytes_; }
  std::uint64_t found_bytes() const { return found_bytes_; }
  int opened_streams() const { return opened_; }
  /// Why a stream could not be opened; "" if all could.
  std::string streams_note();

 private:
  // Blocks of a file.
  struct Piece {
    std::size_t file = 0;
    BlockRange range;
  };

  Status run_round();
  void work(CopyStream& stream, bool* is_lost);
  bool next(Piece* piece);
  Status copy(CopyStream& stream, const Piece& piece);
  Result<std::vector<std::uint64_t>> missing_blocks(CopyStream& stream, const Piece& piece,
                                                    std::vector<Digest>& wanted);
  Status send(CopyStream& stream, const Piece& piece, const std::vector<std::uint64_t>& blocks,
              std::vector<Digest>& wanted);
  Result<std::string> read_block(CopyStream& stream, const PlannedFile& file, std::uint64_t block,
                                 Digest* digest) const;
  void report(std::uint64_t bytes);

  const CopyRequest& request_;
  std::vector<CopyStream>& streams_;
  Progress& progress_;
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::atomic<std::uint64_t> found_bytes_{0};
  std::atomic<std::uint64_t> done_bytes_{0};
  bool has_opened_ = false;
  int opened_ = 1;
  Mutex mutex_;
  std::deque<Piece> waiting_ STOKER_GUARDED_BY(mutex_);
  Status problem_ STOKER_GUARDED_BY(mutex_);
  Status lost_ STOKER_GUARDED_BY(mutex_);  // why the last lost stream ended
  std::string note_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::transfer
