// Reads the lines that NCCL logs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL: communicators, and
// collectives with their sizes. Lines of NCCL 2.7 to 2.30 are found by their keys, with any prefix, from
// several processes in one log. They have no durations: a line is logged when a collective is enqueued. An
// object belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "profile/collectives.h"
#include "stoker/status.h"

namespace stoker::profile {

class NcclLog {
 public:
  /// More communicators than this are not named.
  static constexpr std::size_t kMostCommunicators = 65'536;

  /// Adds the collectives of one line, if it has any.
  void add_line(std::string_view line, CollectiveTable& collectives);

  std::uint64_t lines() const { return lines_; }  ///< of NCCL
  std::uint64_t timed() const { return timed_; }  ///< of the Inspector
  std::uint64_t rejected() const {
    return rejected_;
  }  ///< damaged, as when two processes write into one line

 private:
  struct Communicator {
    std::string group;  ///< the same on all of its ranks
    int ranks = 0;
  };
  // Host, process, address. Addresses are reused after a communicator has ended.
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;

  void add_measured(std::string_view line, CollectiveTable& collectives);
  void add_communicator(const Key& key, std::string_view text);
  void add_collective(const Key& key, std::string_view operation, std::string_view text,
                      CollectiveTable& collectives);

  std::map<Key, Communicator> communicators_;
  std::uint64_t lines_ = 0;
  std::uint64_t timed_ = 0;
  std::uint64_t rejected_ = 0;
};

/// What logs had.
struct NcclLines {
  std::uint64_t lines = 0;
  std::uint64_t timed = 0;  ///< of these, lines with a duration
  std::uint64_t rejected = 0;
  std::string problem;  ///< why a log could not be read to its end

  NcclLines& operator+=(const NcclLines& more);
};

/// Whether the first line of the file is from NCCL's Inspector.
bool looks_like_inspector(const Path& file);

/// Reads a log: plain, gzip or zstd. What comes before a damage counts.
NcclLines read_nccl_log(const Path& file, CollectiveTable& collectives);

}  // namespace stoker::profile
