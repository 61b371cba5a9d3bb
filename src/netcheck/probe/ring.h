// Collectives over a ring of TCP connections, as gloo and NCCL run them between hosts. Test whether all
// ranks together work, and how fast. Used by `stoker hello`, not for training. Each object belongs to one
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "netcheck/probe/peer.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::netcheck {

enum class Operation { all_reduce, reduce_scatter, all_gather, broadcast };
inline constexpr Operation kOperations[] = {Operation::all_reduce, Operation::reduce_scatter,
                                            Operation::all_gather, Operation::broadcast};
/// "all-reduce", "reduce-scatter", "all-gather", "broadcast".
std::string_view to_text(Operation operation);
/// Invalid for other text.
Result<Operation> parse_operation(std::string_view text);

/// Bandwidth and latency of a link.
struct Link {
  double bytes_per_s = 0;
  double latency_s = 0;  ///< one way
};
/// A lower bound for the time of a collective of `bytes` in total, in a ring of `size` ranks whose
/// slowest link is `link`.
double shortest_time(Operation operation, WorldSize size, std::uint64_t bytes, const Link& link);

/// One rank of the ring.
class Ring {
 public:
  /// Writes to `next` and reads from `previous`. REQUIRES: at least two ranks.
  Ring(Rank own, WorldSize size, Fd next, Fd previous);

  /// Runs one collective over `values`, which have the same length on each rank. all_reduce sums.
  /// reduce_scatter sums; only part `own` is complete. all_gather collects part r from rank r.
  /// broadcast copies from rank 0. Timeout names the neighbor: "rank 1 sends no more data within 30 s".
  Status run(Operation operation, std::span<float> values, Deadline deadline, const KeepGoing& keep_going);

 private:
  struct Wait {
    Deadline deadline;
    const KeepGoing& keep_going;
  };
  std::span<float> part(std::span<float> values, int index) const;
  Status exchange(std::span<const float> out, std::span<float> in, const Wait& wait);
  Status reduce_scatter_parts(std::span<float> values, const Wait& wait);
  Status all_gather_parts(std::span<float> values, const Wait& wait);
  Status relay_broadcast(std::span<float> values, const Wait& wait);

  Rank own_;
  WorldSize size_;
  Fd next_;
  Fd previous_;
  std::vector<float> incoming_;
};

/// Fills `values` for rank `own`, and checks the result of `operation` on such values: Corrupt
/// "all-reduce: element 7 is 3, not 6". Uses small integers, so that sums are exact.
void fill_test_values(Operation operation, Rank own, WorldSize size, std::span<float> values);
Status check_result(Operation operation, Rank own, WorldSize size, std::span<const float> values);

}  // namespace stoker::netcheck
