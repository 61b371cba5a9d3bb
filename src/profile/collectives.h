// The collectives of a run by operation, size and process group, with the bandwidths of nccl-tests. Sources:
// traces, flight recorders and NCCL's log. An object belongs to one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/parts.h"

namespace stoker::profile {

/// What collectives of one row have in common.
struct CollectiveKind {
  std::string operation;  ///< "all-reduce"; names of NCCL, gloo and torch become one spelling
  std::string element;    ///< "float32"; "" if unknown
  std::string group;      ///< name of the process group; "" if unknown
  int ranks = 0;          ///< of the group; 0: unknown
  std::uint64_t bytes =
      0;  ///< as nccl-tests counts: of an all-gather and a reduce-scatter the data of all ranks

  auto operator<=>(const CollectiveKind&) const = default;
};

/// The collectives of one kind, over all ranks.
struct CollectiveRow {
  CollectiveKind kind;
  std::uint64_t count = 0;
  std::uint64_t timed = 0;  ///< number of collectives with a duration
  Nanos total = 0;          ///< of the timed ones; includes the wait for peers
  Nanos shortest = 0;

  double mean_s() const {
    return timed > 0 ? 1e-9 * static_cast<double>(total) / static_cast<double>(timed) : 0;
  }
  /// Bytes per second of the shortest, which waited least for peers; nullopt if unknown.
  std::optional<double> algorithm_bandwidth() const;
  /// Scaled to the traffic of one link, comparable between operations and numbers of ranks.
  std::optional<double> bus_bandwidth() const;
};

class CollectiveTable {
 public:
  /// More kinds than this count as one kind of their operation, without a size.
  static constexpr std::size_t kMostKinds = 4096;

  void add(CollectiveKind kind, std::optional<Nanos> duration, std::uint64_t count = 1);
  bool empty() const { return rows_.empty(); }
  /// Longest total time first, then most bytes.
  std::vector<CollectiveRow> rows() const;

 private:
  std::map<CollectiveKind, CollectiveRow> rows_;
};

/// "all-reduce" for "AllReduce", "all_reduce", "gloo:all_reduce", "allreduce", ...; unknown names unchanged.
std::string operation_name(std::string_view name);
/// Bytes of an element: "float32", "Float", "bf16", ...; 0 if unknown.
int element_bytes(std::string_view element);
/// Bytes as nccl-tests counts, for `count` elements on each rank.
std::uint64_t collective_bytes(std::string_view operation, std::uint64_t count, int element_bytes, int ranks);

}  // namespace stoker::profile
