// Collectives over a ring of TCP connections, as gloo and NCCL do them between hosts: to see that all ranks
// together can, and how fast. Used by `stoker hello`, not by trainings. Each object belongs to one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/probe/peer.h"

namespace stoker::net {

enum class Operation { all_reduce, reduce_scatter, all_gather, broadcast };
inline constexpr Operation kOperations[] = {Operation::all_reduce, Operation::reduce_scatter,
                                            Operation::all_gather, Operation::broadcast};
/// "all-reduce", "reduce-scatter", "all-gather", "broadcast".
std::string_view to_text(Operation operation);
/// Invalid for another word.
Result<Operation> parse_operation(std::string_view text);

/// What a link moves and how late.
struct Link {
  double bytes_per_s = 0;
  double latency_s = 0;  ///< one way
};
/// The shortest time in which a ring of `size` ranks whose slowest link is `link` can do it with `bytes` in
/// all, one after another.
double shortest_time(Operation operation, WorldSize size, std::uint64_t bytes, const Link& link);

/// One rank's place in the ring.
class Ring {
 public:
  /// `next` is written, `previous` is read. REQUIRES: at least two ranks.
  Ring(Rank own, WorldSize size, Fd next, Fd previous);

  /// One collective over `values`, as long on each rank. all_reduce: sums. reduce_scatter: sums, of which
  /// part `own` is whole. all_gather: part r is rank r's on all. broadcast: rank 0's. Timeout names the
  /// neighbour: "rank 1 sent nothing more within 30 s".
  Status run(Operation operation, std::span<float> values, Deadline deadline, const KeepGoing& keep_going);

 private:
  struct Wait {
    Deadline deadline;
    const KeepGoing& keep_going;
  };
  std::span<float> part(std::span<float> values, int index) const;
  Status exchange(std::span<const float> out, std::span<float> in, const Wait& wait);
  Status reduce_parts(std::span<float> values, const Wait& wait);
  Status gather_parts(std::span<float> values, const Wait& wait);
  Status pass_on(std::span<float> values, const Wait& wait);

  Rank own_;
  WorldSize size_;
  Fd next_;
  Fd previous_;
  std::vector<float> incoming_;
};

/// Fills `values` as rank `own` and checks what `operation` made of such values on all ranks: Corrupt
/// "all-reduce: element 7 is 3, not 6". Small whole numbers, so that sums are exact.
void fill_for(Operation operation, Rank own, WorldSize size, std::span<float> values);
Status check_result(Operation operation, Rank own, WorldSize size, std::span<const float> values);

}  // namespace stoker::net
