// How chunks move. Every collective consists of chunks, numbered over the lifetime of the group. Each rank
// has two buffers, for chunks with even and odd numbers.
//   1. before a rank writes its buffer for chunk n, all ranks have arrived at chunk n-1
//   2. it writes its part and publishes its arrival at n
//   3. it waits until the ranks whose parts it needs arrive at n, and reads their buffers
// A rank that arrived at n-1 has read all of chunk n-2, whose buffer step 1 reuses. Slot::calls has four
// entries, because a rank may be two chunks ahead of the reader of its call.
// Large sums over more than two ranks are pipelined over three chunks, with one wait per chunk. Before it
// arrives at n, a rank also reduces its share of chunk n-1 into the common result, and copies the whole
// result of n-2. There are two result buffers, too: the result of n-1 replaces that of n-3, which all ranks
// copied before they arrived at n-1.
#include "net/shm/exchange.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <vector>

#include "net/shm/futex.h"

namespace stoker::net::shm {
namespace {

// Up to this size every rank computes the whole sum, because fewer waits matter more than fewer reads.
constexpr std::size_t kShareFrom = std::size_t{32} << 10;
// Approximate cost of a kernel wake-up: spinning longer gains nothing.
constexpr std::int64_t kMaxSpin = 50'000;

// memcpy(3) accepts no null pointer, which an empty span may have.
void copy_bytes(std::byte* into, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(into, from, bytes);
}

// Intervals between liveness checks.
constexpr Duration kFirstSlice = std::chrono::milliseconds(1);
constexpr Duration kSlice = std::chrono::milliseconds(100);
constexpr std::int64_t kLeastSpin = 1'000;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Input of a reduction: all ranks' chunks with this number, from this offset.
struct Exchange::Source {
  std::uint32_t number;
  std::size_t offset;
};

Exchange::Exchange(Region region, ExchangeOptions options)
    : region_(std::move(region)),
      options_(std::move(options)),
      call_timeout_(options_.call_timeout),
      straggler_after_(options_.straggler_after),
      own_(region_.slot(region_.position().rank)),
      size_(region_.position().size.value),
      from_(static_cast<std::size_t>(size_)) {}

Exchange::~Exchange() {
  std::uint32_t here = Slot::kPresent;
  own_.presence.compare_exchange_strong(here, Slot::kLeft);
  wake_peers();
}

void Exchange::abandon(std::string_view why) {
  // The first reason stays, because peers may be reading it.
  if (!is_abandoning_.exchange(true)) {
    const std::size_t size = std::min(why.size(), sizeof own_.why - 1);
    std::memcpy(own_.why, why.data(), size);
    own_.why[size] = '\0';
    std::uint32_t here = Slot::kPresent;
    own_.presence.compare_exchange_strong(here, Slot::kAbandoned);
    wake_peers();
  }
  cancel();
}

// Calls piece(offset, size) for each chunk after opening it. Also opens one chunk for zero bytes, because the
// peers wait for it.
template <typename Piece>
Status Exchange::for_each_chunk(std::size_t bytes, std::size_t most, const Piece& piece) {
  std::size_t offset = 0;
  do {
    const std::size_t size = std::min(most, bytes - offset);
    STOKER_RETURN_IF_ERROR(open_chunk());
    STOKER_RETURN_IF_ERROR(piece(offset, size));
    offset += size;
  } while (offset < bytes);
  return {};
}

Status Exchange::all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::all_reduce, arithmetic, data.size()));
  if (size_ > 2 && data.size() >= kShareFrom) return all_reduce_by_shares(data, arithmetic);
  return for_each_chunk(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    const auto piece = data.subspan(offset, size);
    copy_bytes(own_chunk(), piece.data(), size);
    publish_chunk();
    STOKER_RETURN_IF_ERROR(wait_all());
    fold_chunks(piece, piece.data(), arithmetic, {chunk_, 0});
    return {};
  });
}

Status Exchange::reduce(std::span<std::byte> data, ReduceSpec arithmetic, Rank root) {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::reduce, arithmetic, data.size(), root));
  return for_each_chunk(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    const auto piece = data.subspan(offset, size);
    copy_bytes(own_chunk(), piece.data(), size);
    publish_chunk();
    if (root != position().rank) return {};
    STOKER_RETURN_IF_ERROR(wait_all());
    fold_chunks(piece, piece.data(), arithmetic, {chunk_, 0});
    return {};
  });
}

Status Exchange::broadcast(std::span<std::byte> data, Element element, Rank root) {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::broadcast, {element, Reduction::sum}, data.size(), root));
  return for_each_chunk(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    if (root == position().rank) {
      copy_bytes(own_chunk(), data.data() + offset, size);
      publish_chunk();
      return {};
    }
    publish_chunk();
    STOKER_RETURN_IF_ERROR(await_rank(root));
    STOKER_RETURN_IF_ERROR(compare(root));
    copy_bytes(data.data() + offset, region_.chunk(root, chunk_), size);
    return {};
  });
}

Status Exchange::all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::all_gather, {element, Reduction::sum}, own.size()));
  return for_each_chunk(own.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    copy_bytes(own_chunk(), own.data() + offset, size);
    publish_chunk();
    STOKER_RETURN_IF_ERROR(wait_all());
    for (int rank = 0; rank < size_; ++rank) {
      copy_bytes(into[static_cast<std::size_t>(rank)].data() + offset, region_.chunk(Rank(rank), chunk_),
                 size);
    }
    return {};
  });
}

Status Exchange::reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                ReduceSpec arithmetic) {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::reduce_scatter, arithmetic, own.size()));
  // A chunk contains a piece of each part. 64 is a multiple of every element size.
  const std::size_t step = kChunk / static_cast<std::size_t>(size_) / 64 * 64;
  const std::size_t at = static_cast<std::size_t>(position().rank.value) * step;
  return for_each_chunk(own.size(), step, [&](std::size_t offset, std::size_t size) -> Status {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      copy_bytes(own_chunk() + rank * step, parts[rank].data() + offset, size);
    }
    publish_chunk();
    STOKER_RETURN_IF_ERROR(wait_all());
    fold_chunks(own.subspan(offset, size), own_chunk() + at, arithmetic, {chunk_, at});
    return {};
  });
}

Status Exchange::barrier() {
  STOKER_RETURN_IF_ERROR(begin(CollectiveOp::barrier, {Element::u8, Reduction::sum}, 0));
  STOKER_RETURN_IF_ERROR(open_chunk());
  publish_chunk();
  return wait_all();
}

Status Exchange::begin(CollectiveOp operation, ReduceSpec arithmetic, std::uint64_t bytes, Rank root) {
  if (failure_) return *failure_;
  call_ = {.number = call_.number + 1,
           .bytes = bytes,
           .operation = operation,
           .element = arithmetic.element,
           .reduction = arithmetic.reduction,
           .root = static_cast<std::uint16_t>(root.value)};
  deadline_ = Deadline::after(call_timeout_.load());
  return {};
}

Status Exchange::open_chunk() {
  if (!all_arrived_) STOKER_RETURN_IF_ERROR(wait_all());
  chunk_ += 1;
  all_arrived_ = false;
  own_.call(chunk_) = call_;
  return {};
}

void Exchange::publish_chunk() {
  // Sequentially consistent, like the sleeper's count before it rechecks the word: at least one side sees the
  // other.
  own_.arrived.store(chunk_);
  if (own_.sleepers.load() != 0) wake_all(own_.arrived);
  if (size_ <= 2) return;
  BarrierState& barrier_state = region_.barrier_state();
  const std::uint32_t all = chunk_ * static_cast<std::uint32_t>(size_);
  const std::uint32_t count = barrier_state.arrivals.fetch_add(1) + 1;
  // The last arrival. Between the two updates a faster rank may publish the next chunk and count, too.
  const bool is_last = count == all || count == all - static_cast<std::uint32_t>(size_);
  if (is_last && barrier_state.sleepers.load() != 0) wake_all(barrier_state.arrivals);
}

Status Exchange::wait_all() {
  if (size_ > 2) STOKER_RETURN_IF_ERROR(await_arrivals());
  for (int rank = 0; rank < size_; ++rank) {
    if (Rank(rank) == position().rank) continue;
    STOKER_RETURN_IF_ERROR(await_rank(Rank(rank)));
    STOKER_RETURN_IF_ERROR(compare(Rank(rank)));
  }
  all_arrived_ = true;
  if (chunk_ == 1) max_spin_ns_ = spin_ns_ = cores() < size_ ? 0 : kMaxSpin;
  return {};
}

// A rank in a different collective would access memory beyond its peers' data, so this check comes first.
Status Exchange::compare(Rank peer) {
  const Call& peer_call = region_.slot(peer).call(chunk_);
  const Call& own_call = own_.call(chunk_);
  if (peer_call == own_call) return {};
  return fail(peer, invalid("rank {} ({}) is in {}, rank {} in {}", global_rank(peer), process_of(peer),
                            peer_call, global_rank(position().rank), own_call));
}

Status Exchange::all_reduce_by_shares(std::span<std::byte> data, ReduceSpec arithmetic) {
  const std::size_t chunks = (data.size() + kChunk - 1) / kChunk;
  const auto piece = [&](std::size_t i) {
    return data.subspan(i * kChunk, std::min(kChunk, data.size() - i * kChunk));
  };
  const auto take = [&](std::size_t i, std::uint32_t number) {
    copy_bytes(piece(i).data(), region_.result(number), piece(i).size());
  };
  for (std::size_t i = 0; i <= chunks; ++i) {
    STOKER_RETURN_IF_ERROR(open_chunk());
    if (i < chunks) copy_for_peers(piece(i));
    if (i > 0) reduce_own_share(piece(i - 1), arithmetic);
    if (i > 1) take(i - 2, chunk_ - 2);
    publish_chunk();
  }
  STOKER_RETURN_IF_ERROR(wait_all());
  take(chunks - 1, chunk_ - 1);
  return {};
}

// Offset and size of this rank's share of a chunk. Shares end at cache lines.
std::pair<std::size_t, std::size_t> Exchange::own_share(std::size_t size) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t share = (size + ranks * 64 - 1) / (ranks * 64) * 64;
  const std::size_t begin = std::min(size, share * static_cast<std::size_t>(position().rank.value));
  return {begin, std::min(share, size - begin)};
}

// Copies everything but this rank's share, which no peer reads.
void Exchange::copy_for_peers(std::span<const std::byte> piece) {
  const auto [begin, size] = own_share(piece.size());
  const std::size_t end = begin + size;
  copy_bytes(own_chunk(), piece.data(), begin);
  copy_bytes(own_chunk() + end, piece.data() + end, piece.size() - end);
}

// Reduces the share of the previous chunk.
void Exchange::reduce_own_share(std::span<const std::byte> piece, ReduceSpec arithmetic) {
  const auto [begin, size] = own_share(piece.size());
  const std::uint32_t number = chunk_ - 1;
  fold_chunks({region_.result(number) + begin, size}, piece.data() + begin, arithmetic, {number, begin});
}

// This rank's values are read from `own`, which is more likely cached than its chunk.
void Exchange::fold_chunks(std::span<std::byte> into, const std::byte* own, ReduceSpec arithmetic,
                           Source source) {
  for (int rank = 0; rank < size_; ++rank) {
    from_[static_cast<std::size_t>(rank)] =
        Rank(rank) == position().rank ? own : region_.chunk(Rank(rank), source.number) + source.offset;
  }
  fold(arithmetic, into.data(), from_, into.size());
}

// Number of cores on which at least one rank may run. REQUIRES: all ranks have arrived once.
int Exchange::cores() const {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int rank = 0; rank < size_; ++rank) CPU_OR(&all, &all, &region_.slot(Rank(rank)).cores);
  return CPU_COUNT(&all);
}

// How a rank waits for peers: it spins, then sleeps, and checks periodically whether the missing ranks are
// still alive.

// A wait for one rank or for all ranks.
struct Exchange::Wait {
  std::optional<Rank> peer;
  Duration slept{0};  ///< in the last slice
  Duration slept_so_far{0};
  Duration stopped_for{0};  ///< consecutively
  bool was_reported = false;
};

bool Exchange::has_arrived(Rank peer) const {
  // The numbers wrap around.
  return static_cast<std::int32_t>(region_.slot(peer).arrived.load() - chunk_) >= 0;
}

bool Exchange::has_arrived(const Wait& wait) const {
  return wait.peer ? has_arrived(*wait.peer) : first_missing() == position().rank;
}

// This rank if no rank is missing.
Rank Exchange::first_missing() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (Rank(rank) != position().rank && !has_arrived(Rank(rank))) return Rank(rank);
  }
  return position().rank;
}

Status Exchange::await_rank(Rank peer) { return has_arrived(peer) ? Status() : wait_for({peer}); }
Status Exchange::await_arrivals() { return wait_for({std::nullopt}); }

// Spins, then sleeps. The spin time adapts: spinning pays off if peers answer soon. If ranks are milliseconds
// apart or share cores, it wastes their time.
Status Exchange::wait_for(Wait wait) {
  if (has_arrived(wait)) return {};
  const std::int64_t began = now_ns();
  while (now_ns() - began < spin_ns_) {
    for (int i = 0; i < 32; ++i) {
      pause_briefly();
      if (has_arrived(wait)) return {};
    }
  }
  const Status status = sleep_until_arrived(wait);
  const bool was_soon = now_ns() - began <= max_spin_ns_;
  spin_ns_ = was_soon ? std::min(max_spin_ns_, 2 * spin_ns_)
                      : std::min(max_spin_ns_, std::max(kLeastSpin, spin_ns_ / 2));
  return status;
}

Status Exchange::sleep_until_arrived(Wait& wait) {
  BarrierState& barrier_state = region_.barrier_state();
  std::atomic<std::uint32_t>& word = wait.peer ? region_.slot(*wait.peer).arrived : barrier_state.arrivals;
  std::atomic<std::uint32_t>& sleepers =
      wait.peer ? region_.slot(*wait.peer).sleepers : barrier_state.sleepers;
  for (Duration slice = kFirstSlice;; slice = std::min(kSlice, 2 * slice)) {
    const std::int64_t began = now_ns();
    sleepers.fetch_add(1);
    const std::uint32_t seen = word.load();
    if (!has_arrived(wait)) wait_while(word, seen, std::min(slice, deadline_.left()));
    sleepers.fetch_sub(1);
    if (has_arrived(wait)) return {};
    if (is_cancelled_.load()) return fail(first_missing(), cancelled("{}: cancelled by its own rank", call_));
    wait.slept = std::min(slice, Duration(now_ns() - began));
    wait.slept_so_far += wait.slept;
    STOKER_RETURN_IF_ERROR(check_departed());
    STOKER_RETURN_IF_ERROR(check_hung(wait));
    if (options_.on_straggler && !wait.was_reported && wait.slept_so_far >= straggler_after_.load())
      report_stragglers(wait);
  }
}

void Exchange::report_stragglers(Wait& wait) {
  wait.was_reported = true;
  constexpr int kMaxNamed = 4;
  std::vector<std::string> late;
  int count = 0;
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    if (rank == position().rank || has_arrived(rank) || ++count > kMaxNamed) continue;
    const Slot& slot = region_.slot(rank);
    const std::uint32_t arrived = slot.arrived.load();
    late.push_back(format(
        "rank {} ({}, {}) {}", global_rank(rank), process_of(rank), region_.activity(rank),
        arrived == 0 ? "has not entered any collective yet" : format("was last in {}", slot.call(arrived))));
  }
  if (late.empty()) return;
  if (count > kMaxNamed) late.push_back(format("and {} more", count - kMaxNamed));
  options_.on_straggler(format("rank {} has waited for {} in {}: {}", global_rank(position().rank),
                               rounded_duration(wait.slept_so_far), call_, stoker::join(late, "; ")));
}

// Checks all missing ranks, not only the awaited one, which may itself be waiting. Names a rank that gave up
// only if no other cause is visible.
Status Exchange::check_departed() {
  std::optional<Rank> gave_up;
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    const Slot& slot = region_.slot(rank);
    if (rank == position().rank || has_arrived(rank)) continue;
    const bool has_ended = region_.has_ended(rank);
    const std::uint32_t presence = slot.presence.load();
    if (has_arrived(rank)) continue;  // it arrived and left afterwards
    if (presence == Slot::kAbandoned) {
      return fail(rank, invalid("rank {}: {}", global_rank(rank), std::string_view(slot.why)));
    }
    if (presence >= Slot::kGaveUp) {
      gave_up = gave_up.value_or(rank);
    } else if (has_ended || presence == Slot::kLeft) {
      return fail(rank, unavailable("rank {} left ({}{}; {} waited for it)", global_rank(rank),
                                    process_of(rank), presence == Slot::kLeft ? "" : " has died", call_));
    }
  }
  if (!gave_up) return {};
  const std::uint32_t culprit = region_.slot(*gave_up).presence.load() - Slot::kGaveUp;
  return fail(*gave_up,
              unavailable("rank {} left ({} gave up on rank {}; {} waited for it)", global_rank(*gave_up),
                          process_of(*gave_up), global_rank(Rank(static_cast<int>(culprit))), call_));
}

Status Exchange::check_hung(Wait& wait) {
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    if (rank == position().rank || has_arrived(rank) || !region_.is_stopped(rank)) continue;
    // Only time that this rank slept counts: if a whole job is stopped and continued, no rank is blamed.
    wait.stopped_for += wait.slept;
    if (wait.stopped_for < options_.stopped_timeout && !deadline_.passed()) return {};
    return fail(rank,
                timeout("rank {} is stopped ({}: by a signal, for {}; {} waited for it)", global_rank(rank),
                        process_of(rank), rounded_duration(wait.stopped_for), call_));
  }
  wait.stopped_for = Duration::zero();
  if (!deadline_.passed()) return {};
  const Rank rank = wait.peer.value_or(first_missing());
  return fail(rank, timeout("rank {} did not respond within {} ({}; {} waited for it)", global_rank(rank),
                            rounded_duration(call_timeout_.load()), process_of(rank), call_));
}

// "pid 4242 on node3". A rank that has the memory but has not written its slot yet is still joining.
std::string Exchange::process_of(Rank rank) const {
  const Slot& slot = region_.slot(rank);
  const std::int64_t pid = slot.pid.load();
  return pid == 0 ? "still joining" : format("pid {} on {}", pid, std::string_view(slot.host));
}

Rank Exchange::global_rank(Rank rank) const {
  const auto position = static_cast<std::size_t>(rank.value);
  return position < options_.global_ranks.size() ? Rank(options_.global_ranks[position]) : rank;
}

Status Exchange::fail(Rank because_of, Status status) {
  failure_ = status;
  std::uint32_t here = Slot::kPresent;
  own_.presence.compare_exchange_strong(here, Slot::kGaveUp + static_cast<std::uint32_t>(because_of.value));
  wake_peers();
  return status;
}

// Wakes the ranks that wait for this rank, so that they check its state.
void Exchange::wake_peers() {
  wake_all(own_.arrived);
  wake_all(region_.barrier_state().arrivals);
}

}  // namespace stoker::net::shm
