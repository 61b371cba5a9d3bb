// Collectives of ranks on several hosts, of which those of one host share memory: they meet there, the first
// rank of each host meets the other hosts' over the network, and what that gives goes to the others of its
// host. So each byte crosses the network once per host and not once per rank. Used by room torch. A TwoLevel
// belongs to one rank; see collectives.h for who may call it when.
//
// What a sum is: the values of a host's ranks are added in the order of ranks, then the hosts' sums as the
// network adds them (with two hosts: to each other). All ranks hold the same bits, and the next time the same
// ones. 16-bit floating point is rounded once per host, and by each addition of the network.
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

/// What the first ranks of the hosts do together. Calls as in collectives.h: blocking, one thread at a time,
/// after an error no more of them. `host` is a number of Hosts.
class Between {
 public:
  Between() = default;
  virtual ~Between() = default;
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;

  /// Begins to sum `data`, which must stay where it is until finish_all_reduce(). Does not block.
  virtual Status begin_all_reduce(std::span<std::byte> data, Arithmetic arithmetic) = 0;
  /// Waits for the one begun first.
  virtual Status finish_all_reduce() = 0;
  virtual Status broadcast(std::span<std::byte> data, std::size_t host) = 0;
  /// `all` becomes every host's `own`, in the order of hosts.
  virtual Status all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  virtual Status barrier() = 0;
  /// Takes part no more, so that the others learn it now, with the reason. Blocks until nothing uses memory
  /// that was given.
  virtual void leave(std::string_view why) = 0;

  /// As in Collectives. Any thread.
  virtual void set_named_after(Duration duration) = 0;
  /// Makes a call that waits, and all later ones, fail as Cancelled soon. Any thread.
  virtual void cancel() = 0;
};

/// Where a call is.
enum class Level { within_host, between_hosts };

struct TwoLevelParts {
  Hosts hosts;
  Rank rank;
  std::unique_ptr<Exchange> inside;  ///< the ranks of this host; null when it has no other
  std::unique_ptr<Between> between;  ///< on the first rank of a host; null on others
  /// Told where the call under way is, by the thread that makes it; may be empty.
  std::function<void(Level)> on_level = {};
};

class TwoLevel final : public Collectives {
 public:
  explicit TwoLevel(TwoLevelParts parts);

  Seat seat() const override { return {parts_.rank, parts_.hosts.ranks()}; }
  void set_answer_within(Duration duration) override;
  void set_named_after(Duration duration) override;
  void cancel() override;
  void abandon(std::string_view why) override;

  Status all_reduce(std::span<std::byte> data, Arithmetic arithmetic) override;
  Status reduce(std::span<std::byte> data, Arithmetic arithmetic, Rank root) override;
  /// Waits for the network, if not for the other ranks.
  Status broadcast(std::span<std::byte> data, Element element, Rank root) override;
  Status all_gather(std::span<const std::byte> own, Element element,
                    std::span<const std::span<std::byte>> into) override;
  Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                        Arithmetic arithmetic) override;
  Status barrier() override;

  /// How much longer than its first rank, which waits for the network, the others of a host wait for that
  /// one: so that it is the one that says what is wrong.
  static constexpr Duration kLonger = std::chrono::seconds(10);

 private:
  template <typename Call>
  Status within(const Call& call);
  template <typename Call>
  Status across(const Call& call);
  Status bring(std::span<std::byte> piece, Arithmetic arithmetic);
  Status spread(std::span<std::byte> piece, Arithmetic arithmetic);
  void tell(Level level);

  const TwoLevelParts parts_;
  const Seat inner_;
  std::optional<Status> failure_;
};

}  // namespace stoker::net::shm
