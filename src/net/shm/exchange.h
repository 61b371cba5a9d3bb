// Collectives of the ranks of one host over memory they share. Used by the backend in room torch; no libtorch
// here. One Exchange belongs to one rank; see collectives.h for who may call it when. A call tells of a rank
// that ended, left, is stopped, or does something else.
//
// Sums are computed in the order of ranks (element.h), once, so all ranks hold the same bits.
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

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/shm/collectives.h"
#include "net/shm/element.h"
#include "net/shm/region.h"

namespace stoker::net::shm {

struct ExchangeOptions {
  /// A rank that another one waits for may be stopped by a signal this long.
  Duration stopped_within = std::chrono::seconds(5);
  /// How long one call may wait for other ranks.
  Duration answer_within = std::chrono::minutes(10);
  /// A call that waited this long tells `on_late` who is missing, once, and goes on waiting.
  Duration named_after = std::chrono::seconds(30);
  /// Called by whatever thread makes the call.
  std::function<void(std::string_view)> on_late = {};
  /// What messages call the ranks, by seat: where these are some of a larger number. Empty: as they sit.
  std::vector<int> names = {};
};

class Exchange final : public Collectives {
 public:
  Exchange(Region region, ExchangeOptions options);
  /// Says that this rank leaves: whoever waits for it then learns so at once.
  ~Exchange() override;

  Seat seat() const override { return region_.seat(); }
  void set_answer_within(Duration duration) override { answer_within_ = duration; }
  void set_named_after(Duration duration) override { named_after_ = duration; }
  void cancel() override { is_cancelled_ = true; }
  void abandon(std::string_view why) override;
  /// Collectives begun so far.
  std::uint64_t calls() const { return call_.number; }

  Status all_reduce(std::span<std::byte> data, Arithmetic arithmetic) override;
  /// The others' data stay as they are.
  Status reduce(std::span<std::byte> data, Arithmetic arithmetic, Rank root) override;
  Status broadcast(std::span<std::byte> data, Element element, Rank root) override;
  Status all_gather(std::span<const std::byte> own, Element element,
                    std::span<const std::span<std::byte>> into) override;
  Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                        Arithmetic arithmetic) override;
  Status barrier() override;

 private:
  struct Wait;
  struct Source;

  Status begin(Operation operation, Arithmetic arithmetic, std::uint64_t bytes, Rank root = Rank(0));
  template <typename Piece>
  Status by_chunks(std::size_t bytes, std::size_t most, const Piece& piece);
  /// After this point this rank's part of the next chunk may be written.
  Status open_chunk();
  /// Gives this rank's part of the chunk to the others.
  void bring();
  /// Waits until all ranks brought the chunk, and compares what they do with what we do.
  Status meet();
  Status compare(Rank peer);
  Status reduce_together(std::span<std::byte> data, Arithmetic arithmetic);
  std::pair<std::size_t, std::size_t> own_share(std::size_t size) const;
  void bring_for_others(std::span<const std::byte> piece);
  void sum_own_share(std::span<const std::byte> piece, Arithmetic arithmetic);
  void fold_chunks(std::span<std::byte> into, const std::byte* own, Arithmetic arithmetic, Source source);
  int cores() const;
  Status await(Rank peer);
  Status await_all();
  Status wait_for(Wait wait);
  Status sleep_until_here(Wait& wait);
  Status missing_because_it_left();
  Status missing_because_it_hangs(Wait& wait);
  std::string process_of(Rank rank) const;
  Rank named(Rank rank) const;
  void tell_who_is_late(Wait& wait);
  Status fail(Rank because_of, Status status);
  std::byte* own_chunk() const { return region_.chunk(seat().rank, chunk_); }
  bool has_come(Rank peer) const;
  bool has_come(const Wait& wait) const;
  Rank first_missing() const;
  void wake_others();

  Region region_;
  const ExchangeOptions options_;
  std::atomic<Duration> answer_within_;
  std::atomic<Duration> named_after_;
  Slot& own_;
  const int size_;
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> is_abandoning_{false};
  Call call_;                ///< the one under way, or the last
  std::uint32_t chunk_ = 0;  ///< number of the one under way; equal on all ranks
  bool met_ = true;          ///< whether all ranks have been seen to have come to `chunk_`
  Deadline deadline_ = Deadline::never();
  std::int64_t spin_ns_ = 0;       ///< how long to look before sleeping: follows what waiting was like so far
  std::int64_t most_spin_ns_ = 0;  ///< 0 where ranks share cores
  std::optional<Status> failure_;
  std::vector<const std::byte*> from_;  ///< one place per rank, filled in by fold_chunks
};

}  // namespace stoker::net::shm
