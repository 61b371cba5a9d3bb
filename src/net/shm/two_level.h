// Two-level collectives of ranks on several hosts. Ranks of one host reduce in shared memory, the first rank
// of each host exchanges the results over the network, and broadcasts them to its host. So each byte crosses
// the network once per host instead of once per rank. Used by room train. A TwoLevel belongs to one rank; see
// collectives.h for threads.
//
// Sums: the values of a host's ranks are added in rank order, then the network adds the hosts' sums. All
// ranks have the same bits, in every run. 16-bit floating point is rounded once per host, and by each
// addition of the network.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "net/shm/collectives.h"
#include "net/shm/exchange.h"
#include "net/shm/hosts.h"

namespace stoker::net::shm {

/// Collectives of the first ranks of the hosts. Calls as in collectives.h: blocking, one thread at a time,
/// none after an error. `host` is a number of Hosts.
class InterNode {
 public:
  InterNode() = default;
  virtual ~InterNode() = default;
  InterNode(const InterNode&) = delete;
  InterNode& operator=(const InterNode&) = delete;

  /// Begins to sum `data`, which must stay valid until finish_all_reduce(). Does not block.
  virtual Status begin_all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) = 0;
  /// Waits for the oldest all-reduce that was begun.
  virtual Status finish_all_reduce() = 0;
  virtual Status broadcast(std::span<std::byte> data, std::size_t host) = 0;
  /// Fills `all` with every host's `own`, in host order.
  virtual Status all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  virtual Status barrier() = 0;
  /// Leaves the group and sends the peers the reason. Blocks until no operation uses the caller's memory.
  virtual void leave(std::string_view why) = 0;

  /// As in Collectives. Any thread.
  virtual void set_straggler_after(Duration duration) = 0;
  /// Fails the current and all later calls as Cancelled. Any thread.
  virtual void cancel() = 0;
};

/// Where a call is in progress.
enum class CommunicationLevel { intra_node, inter_node };

struct TwoLevelParts {
  Hosts hosts;
  Rank rank;
  std::unique_ptr<Exchange> intra_node;   ///< the ranks of this host; null for a host's only rank
  std::unique_ptr<InterNode> inter_node;  ///< on the first rank of a host; null on the other ranks
  /// Called with the level of the current call, by the calling thread; may be empty.
  std::function<void(CommunicationLevel)> on_level = {};
};

class TwoLevel final : public Collectives {
 public:
  explicit TwoLevel(TwoLevelParts parts);

  GroupPosition position() const override { return {parts_.rank, parts_.hosts.ranks()}; }
  void set_call_timeout(Duration duration) override;
  void set_straggler_after(Duration duration) override;
  void cancel() override;
  void abandon(std::string_view why) override;

  Status all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) override;
  Status reduce(std::span<std::byte> data, ReduceSpec arithmetic, Rank root) override;
  /// Waits for the network, but not for the other ranks.
  Status broadcast(std::span<std::byte> data, Element element, Rank root) override;
  Status all_gather(std::span<const std::byte> own, Element element,
                    std::span<const std::span<std::byte>> into) override;
  Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                        ReduceSpec arithmetic) override;
  Status barrier() override;

  /// The ranks of a host wait this much longer than the first rank, which waits for the network. So the first
  /// rank reports the cause.
  static constexpr Duration kPeerTimeoutMargin = std::chrono::seconds(10);

 private:
  template <typename Call>
  Status run_intra_node(const Call& call);
  template <typename Call>
  Status run_inter_node(const Call& call);
  Status start_all_reduce(std::span<std::byte> piece, ReduceSpec arithmetic);
  Status broadcast_result(std::span<std::byte> piece, ReduceSpec arithmetic);
  void report_level(CommunicationLevel level);

  const TwoLevelParts parts_;
  const GroupPosition inner_;
  std::optional<Status> failure_;
};

}  // namespace stoker::net::shm
