// How chunks move. Every collective is a number of chunks, numbered through the life of the group; each rank
// keeps two buffers, for chunks of even and odd number.
//   1. before a rank writes its buffer for chunk n, it has seen all ranks arrive at chunk n-1
//   2. it writes its part and says "arrived at n"
//   3. it waits for those whose part it needs to arrive at n, and reads their buffers
// A rank that arrived at n-1 has read all of chunk n-2, whose buffer is the one that 1 frees. What a rank
// says about its call (Slot::calls) lies in four places: it may be two chunks ahead of who reads about it.
// A sum of more than two ranks' large data goes through two more hands, each a chunk later, so that there is
// one wait a chunk: before it arrives at n, a rank also sums its share of chunk n-1, which all have brought,
// into the common result, and copies all of the result of n-2, to which all have added their shares. There
// are two results as well: that of n-1 takes the place of n-3, which all have copied before they arrived at
// n-1.
#include "net/shm/exchange.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

#include "net/shm/futex.h"

namespace stoker::net::shm {

namespace {

// Sums of up to so many bytes are computed by every rank for itself: fewer waits matter more than fewer
// reads.
constexpr std::size_t kShareFrom = std::size_t{32} << 10;
// What a wake-up by the kernel costs about: to look longer than that for an answer gains nothing.
constexpr std::int64_t kMostSpin = 50'000;

// memcpy(3) takes no null pointer, which an empty span may have.
void copy_bytes(std::byte* into, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(into, from, bytes);
}

}  // namespace

// What is summed up: of all ranks' chunks of this number, from here on.
struct Exchange::Source {
  std::uint32_t number;
  std::size_t offset;
};

Exchange::Exchange(Region region, ExchangeOptions options)
    : region_(std::move(region)),
      options_(std::move(options)),
      answer_within_(options_.answer_within),
      named_after_(options_.named_after),
      own_(region_.slot(region_.seat().rank)),
      size_(region_.seat().size.value),
      from_(static_cast<std::size_t>(size_)) {}

Exchange::~Exchange() {
  std::uint32_t here = Slot::kHere;
  own_.presence.compare_exchange_strong(here, Slot::kLeft);
  wake_others();
}

void Exchange::abandon(std::string_view why) {
  // The first reason stays: others may be reading it.
  if (!is_abandoning_.exchange(true)) {
    const std::size_t size = std::min(why.size(), sizeof own_.why - 1);
    std::memcpy(own_.why, why.data(), size);
    own_.why[size] = '\0';
    std::uint32_t here = Slot::kHere;
    own_.presence.compare_exchange_strong(here, Slot::kAbandoned);
    wake_others();
  }
  cancel();
}

// Calls piece(offset, size) for one chunk after the other, each opened; once also for no bytes at all, since
// the others wait for that.
template <typename Piece>
Status Exchange::by_chunks(std::size_t bytes, std::size_t most, const Piece& piece) {
  std::size_t offset = 0;
  do {
    const std::size_t size = std::min(most, bytes - offset);
    RETURN_IF_ERROR(open_chunk());
    RETURN_IF_ERROR(piece(offset, size));
    offset += size;
  } while (offset < bytes);
  return {};
}

Status Exchange::all_reduce(std::span<std::byte> data, Arithmetic arithmetic) {
  RETURN_IF_ERROR(begin(Operation::all_reduce, arithmetic, data.size()));
  if (size_ > 2 && data.size() >= kShareFrom) return reduce_together(data, arithmetic);
  return by_chunks(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    const auto piece = data.subspan(offset, size);
    copy_bytes(own_chunk(), piece.data(), size);
    bring();
    RETURN_IF_ERROR(meet());
    fold_chunks(piece, piece.data(), arithmetic, {chunk_, 0});
    return {};
  });
}

Status Exchange::reduce(std::span<std::byte> data, Arithmetic arithmetic, Rank root) {
  RETURN_IF_ERROR(begin(Operation::reduce, arithmetic, data.size(), root));
  return by_chunks(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    const auto piece = data.subspan(offset, size);
    copy_bytes(own_chunk(), piece.data(), size);
    bring();
    if (root != seat().rank) return {};
    RETURN_IF_ERROR(meet());
    fold_chunks(piece, piece.data(), arithmetic, {chunk_, 0});
    return {};
  });
}

Status Exchange::broadcast(std::span<std::byte> data, Element element, Rank root) {
  RETURN_IF_ERROR(begin(Operation::broadcast, {element, Reduction::sum}, data.size(), root));
  return by_chunks(data.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    if (root == seat().rank) {
      copy_bytes(own_chunk(), data.data() + offset, size);
      bring();
      return {};
    }
    bring();
    RETURN_IF_ERROR(await(root));
    RETURN_IF_ERROR(compare(root));
    copy_bytes(data.data() + offset, region_.chunk(root, chunk_), size);
    return {};
  });
}

Status Exchange::all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) {
  RETURN_IF_ERROR(begin(Operation::all_gather, {element, Reduction::sum}, own.size()));
  return by_chunks(own.size(), kChunk, [&](std::size_t offset, std::size_t size) -> Status {
    copy_bytes(own_chunk(), own.data() + offset, size);
    bring();
    RETURN_IF_ERROR(meet());
    for (int rank = 0; rank < size_; ++rank) {
      copy_bytes(into[static_cast<std::size_t>(rank)].data() + offset, region_.chunk(Rank(rank), chunk_),
                 size);
    }
    return {};
  });
}

Status Exchange::reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                Arithmetic arithmetic) {
  RETURN_IF_ERROR(begin(Operation::reduce_scatter, arithmetic, own.size()));
  // A chunk holds a piece of each part; 64 is a multiple of every element's size.
  const std::size_t step = kChunk / static_cast<std::size_t>(size_) / 64 * 64;
  const std::size_t at = static_cast<std::size_t>(seat().rank.value) * step;
  return by_chunks(own.size(), step, [&](std::size_t offset, std::size_t size) -> Status {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      copy_bytes(own_chunk() + rank * step, parts[rank].data() + offset, size);
    }
    bring();
    RETURN_IF_ERROR(meet());
    fold_chunks(own.subspan(offset, size), own_chunk() + at, arithmetic, {chunk_, at});
    return {};
  });
}

Status Exchange::barrier() {
  RETURN_IF_ERROR(begin(Operation::barrier, {Element::u8, Reduction::sum}, 0));
  RETURN_IF_ERROR(open_chunk());
  bring();
  return meet();
}

Status Exchange::begin(Operation operation, Arithmetic arithmetic, std::uint64_t bytes, Rank root) {
  if (failure_) return *failure_;
  call_ = {.number = call_.number + 1,
           .bytes = bytes,
           .operation = operation,
           .element = arithmetic.element,
           .reduction = arithmetic.reduction,
           .root = static_cast<std::uint16_t>(root.value)};
  deadline_ = Deadline::after(answer_within_.load());
  return {};
}

Status Exchange::open_chunk() {
  if (!met_) RETURN_IF_ERROR(meet());
  chunk_ += 1;
  met_ = false;
  own_.call(chunk_) = call_;
  return {};
}

void Exchange::bring() {
  // Sequentially consistent, as is the sleeper's count before its last look at the word: one of both sees
  // the other.
  own_.arrived.store(chunk_);
  if (own_.sleepers.load() != 0) wake_all(own_.arrived);
  if (size_ <= 2) return;
  Crowd& crowd = region_.crowd();
  const std::uint32_t all = chunk_ * static_cast<std::uint32_t>(size_);
  const std::uint32_t count = crowd.arrivals.fetch_add(1) + 1;
  // The last one. Between its two words it may be overtaken by one that brings the next chunk already, and
  // counts for it.
  const bool is_last = count == all || count == all - static_cast<std::uint32_t>(size_);
  if (is_last && crowd.sleepers.load() != 0) wake_all(crowd.arrivals);
}

Status Exchange::meet() {
  if (size_ > 2) RETURN_IF_ERROR(await_all());
  for (int rank = 0; rank < size_; ++rank) {
    if (Rank(rank) == seat().rank) continue;
    RETURN_IF_ERROR(await(Rank(rank)));
    RETURN_IF_ERROR(compare(Rank(rank)));
  }
  met_ = true;
  if (chunk_ == 1) most_spin_ns_ = spin_ns_ = cores() < size_ ? 0 : kMostSpin;
  return {};
}

// A rank that does something else would read or write beyond what the others have: so it is found first.
Status Exchange::compare(Rank peer) {
  const Call& theirs = region_.slot(peer).call(chunk_);
  const Call& ours = own_.call(chunk_);
  if (theirs == ours) return {};
  return fail(peer, invalid("rank {} ({}) is in {}, rank {} in {}", named(peer), process_of(peer), theirs,
                            named(seat().rank), ours));
}

Status Exchange::reduce_together(std::span<std::byte> data, Arithmetic arithmetic) {
  const std::size_t chunks = (data.size() + kChunk - 1) / kChunk;
  const auto piece = [&](std::size_t i) {
    return data.subspan(i * kChunk, std::min(kChunk, data.size() - i * kChunk));
  };
  const auto take = [&](std::size_t i, std::uint32_t number) {
    copy_bytes(piece(i).data(), region_.result(number), piece(i).size());
  };
  for (std::size_t i = 0; i <= chunks; ++i) {
    RETURN_IF_ERROR(open_chunk());
    if (i < chunks) bring_for_others(piece(i));
    if (i > 0) sum_own_share(piece(i - 1), arithmetic);
    if (i > 1) take(i - 2, chunk_ - 2);
    bring();
  }
  RETURN_IF_ERROR(meet());
  take(chunks - 1, chunk_ - 1);
  return {};
}

// Where this rank's share of a chunk begins, and its size. Shares end at cache lines.
std::pair<std::size_t, std::size_t> Exchange::own_share(std::size_t size) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t share = (size + ranks * 64 - 1) / (ranks * 64) * 64;
  const std::size_t begin = std::min(size, share * static_cast<std::size_t>(seat().rank.value));
  return {begin, std::min(share, size - begin)};
}

// All but its own share, which nobody else reads.
void Exchange::bring_for_others(std::span<const std::byte> piece) {
  const auto [begin, size] = own_share(piece.size());
  const std::size_t end = begin + size;
  copy_bytes(own_chunk(), piece.data(), begin);
  copy_bytes(own_chunk() + end, piece.data() + end, piece.size() - end);
}

// Of the chunk before the one under way.
void Exchange::sum_own_share(std::span<const std::byte> piece, Arithmetic arithmetic) {
  const auto [begin, size] = own_share(piece.size());
  const std::uint32_t number = chunk_ - 1;
  fold_chunks({region_.result(number) + begin, size}, piece.data() + begin, arithmetic, {number, begin});
}

// This rank's own values are read from `own`, which is warmer than its chunk.
void Exchange::fold_chunks(std::span<std::byte> into, const std::byte* own, Arithmetic arithmetic,
                           Source source) {
  for (int rank = 0; rank < size_; ++rank) {
    from_[static_cast<std::size_t>(rank)] =
        Rank(rank) == seat().rank ? own : region_.chunk(Rank(rank), source.number) + source.offset;
  }
  fold(arithmetic, into.data(), from_, into.size());
}

// Cores on which at least one of the ranks may run. REQUIRES: all ranks have arrived once.
int Exchange::cores() const {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int rank = 0; rank < size_; ++rank) CPU_OR(&all, &all, &region_.slot(Rank(rank)).cores);
  return CPU_COUNT(&all);
}

}  // namespace stoker::net::shm
