// Collectives of the ranks of one host over shared memory. Used by the backend in room train, without
// libtorch. One Exchange belongs to one rank; see collectives.h for threads. Errors name the rank that
// exited, left, is stopped or calls a different collective.
//
// Sums are computed once in rank order (element.h), so all ranks have the same bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/shm/collectives.h"
#include "net/shm/element.h"
#include "net/shm/region.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::net::shm {

struct ExchangeOptions {
  /// A rank stopped by a signal for this long fails the call of its peers.
  Duration stopped_timeout = std::chrono::seconds(5);
  /// Maximum wait of one call.
  Duration call_timeout = std::chrono::minutes(10);
  /// A call that waited this long reports the missing ranks to `on_straggler`, once.
  Duration straggler_after = std::chrono::seconds(30);
  /// Called by the thread that makes the call.
  std::function<void(std::string_view)> on_straggler = {};
  /// Ranks in messages, by position in the group, if the group is a subset of the ranks. Empty: the
  /// positions.
  std::vector<int> global_ranks = {};
};

class Exchange final : public Collectives {
 public:
  Exchange(Region region, ExchangeOptions options);
  /// Leaves the group. Waiting peers learn it at once.
  ~Exchange() override;

  GroupPosition position() const override { return region_.position(); }
  void set_call_timeout(Duration duration) override { call_timeout_ = duration; }
  void set_straggler_after(Duration duration) override { straggler_after_ = duration; }
  void cancel() override { is_cancelled_ = true; }
  void abandon(std::string_view why) override;
  /// Number of collectives begun.
  std::uint64_t calls() const { return call_.number; }

  Status all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) override;
  /// `data` of the other ranks is unchanged.
  Status reduce(std::span<std::byte> data, ReduceSpec arithmetic, Rank root) override;
  Status broadcast(std::span<std::byte> data, Element element, Rank root) override;
  Status all_gather(std::span<const std::byte> own, Element element,
                    std::span<const std::span<std::byte>> into) override;
  Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                        ReduceSpec arithmetic) override;
  Status barrier() override;

 private:
  struct Wait;
  struct Source;

  Status begin(CollectiveOp operation, ReduceSpec arithmetic, std::uint64_t bytes, Rank root = Rank(0));
  template <typename Piece>
  Status for_each_chunk(std::size_t bytes, std::size_t most, const Piece& piece);
  /// After this, this rank's part of the next chunk may be written.
  Status open_chunk();
  /// Publishes this rank's part of the chunk.
  void publish_chunk();
  /// Waits until all ranks have published the chunk, and compares their calls with this rank's call.
  Status wait_all();
  Status compare(Rank peer);
  Status all_reduce_by_shares(std::span<std::byte> data, ReduceSpec arithmetic);
  std::pair<std::size_t, std::size_t> own_share(std::size_t size) const;
  void copy_for_peers(std::span<const std::byte> piece);
  void reduce_own_share(std::span<const std::byte> piece, ReduceSpec arithmetic);
  void fold_chunks(std::span<std::byte> into, const std::byte* own, ReduceSpec arithmetic, Source source);
  int cores() const;
  Status await_rank(Rank peer);
  Status await_arrivals();
  Status wait_for(Wait wait);
  Status sleep_until_arrived(Wait& wait);
  Status check_departed();
  Status check_hung(Wait& wait);
  std::string process_of(Rank rank) const;
  Rank global_rank(Rank rank) const;
  void report_stragglers(Wait& wait);
  Status fail(Rank because_of, Status status);
  std::byte* own_chunk() const { return region_.chunk(position().rank, chunk_); }
  bool has_arrived(Rank peer) const;
  bool has_arrived(const Wait& wait) const;
  Rank first_missing() const;
  void wake_peers();

  Region region_;
  const ExchangeOptions options_;
  std::atomic<Duration> call_timeout_;
  std::atomic<Duration> straggler_after_;
  Slot& own_;
  const int size_;
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> is_abandoning_{false};
  Call call_;                ///< the current or last call
  std::uint32_t chunk_ = 0;  ///< number of the current chunk; equal on all ranks
  bool all_arrived_ = true;  ///< whether all ranks have arrived at `chunk_`
  Deadline deadline_ = Deadline::never();
  std::int64_t spin_ns_ = 0;      ///< how long to spin before sleeping; adapts to previous waits
  std::int64_t max_spin_ns_ = 0;  ///< 0 if ranks share cores
  std::optional<Status> failure_;
  std::vector<const std::byte*> from_;  ///< one input per rank, set by fold_chunks
};

}  // namespace stoker::net::shm
