// How a rank waits for others: it looks for a while, sleeps then, and finds out now and then whether those
// that have not come still can.
#include <algorithm>
#include <ctime>
#include <vector>

#include "net/shm/exchange.h"
#include "net/shm/futex.h"

namespace stoker::net::shm {

namespace {

// Between looks at whether a rank that is waited for still lives.
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

// One wait, for a rank or for all.
struct Exchange::Wait {
  std::optional<Rank> peer;
  Duration slept{0};  ///< in the last slice
  Duration slept_so_far{0};
  Duration stopped_for{0};  ///< seen in a row
  bool was_told = false;
};

bool Exchange::has_come(Rank peer) const {
  // The numbers wrap around.
  return static_cast<std::int32_t>(region_.slot(peer).arrived.load() - chunk_) >= 0;
}

bool Exchange::has_come(const Wait& wait) const {
  return wait.peer ? has_come(*wait.peer) : first_missing() == seat().rank;
}

// This rank when nobody is missing.
Rank Exchange::first_missing() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (Rank(rank) != seat().rank && !has_come(Rank(rank))) return Rank(rank);
  }
  return seat().rank;
}

Status Exchange::await(Rank peer) { return has_come(peer) ? Status() : wait_for({peer}); }
Status Exchange::await_all() { return wait_for({std::nullopt}); }

// First looks, then sleeps. How long to look follows experience: where answers come soon it is worth it,
// where ranks are milliseconds apart, or share cores, it only burns what others could use.
Status Exchange::wait_for(Wait wait) {
  if (has_come(wait)) return {};
  const std::int64_t began = now_ns();
  while (now_ns() - began < spin_ns_) {
    for (int i = 0; i < 32; ++i) {
      pause_briefly();
      if (has_come(wait)) return {};
    }
  }
  const Status status = sleep_until_here(wait);
  const bool was_soon = now_ns() - began <= most_spin_ns_;
  spin_ns_ = was_soon ? std::min(most_spin_ns_, 2 * spin_ns_)
                      : std::min(most_spin_ns_, std::max(kLeastSpin, spin_ns_ / 2));
  return status;
}

Status Exchange::sleep_until_here(Wait& wait) {
  Crowd& crowd = region_.crowd();
  std::atomic<std::uint32_t>& word = wait.peer ? region_.slot(*wait.peer).arrived : crowd.arrivals;
  std::atomic<std::uint32_t>& sleepers = wait.peer ? region_.slot(*wait.peer).sleepers : crowd.sleepers;
  for (Duration slice = kFirstSlice;; slice = std::min(kSlice, 2 * slice)) {
    const std::int64_t began = now_ns();
    sleepers.fetch_add(1);
    const std::uint32_t seen = word.load();
    if (!has_come(wait)) wait_while(word, seen, std::min(slice, deadline_.left()));
    sleepers.fetch_sub(1);
    if (has_come(wait)) return {};
    if (is_cancelled_.load()) return fail(first_missing(), cancelled("{}: given up by its own rank", call_));
    wait.slept = std::min(slice, Duration(now_ns() - began));
    wait.slept_so_far += wait.slept;
    RETURN_IF_ERROR(missing_because_it_left());
    RETURN_IF_ERROR(missing_because_it_hangs(wait));
    if (options_.on_late && !wait.was_told && wait.slept_so_far >= named_after_.load())
      tell_who_is_late(wait);
  }
}

void Exchange::tell_who_is_late(Wait& wait) {
  wait.was_told = true;
  constexpr int kMostNamed = 4;
  std::vector<std::string> late;
  int count = 0;
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    if (rank == seat().rank || has_come(rank) || ++count > kMostNamed) continue;
    const Slot& slot = region_.slot(rank);
    const std::uint32_t arrived = slot.arrived.load();
    late.push_back(
        format("rank {} ({}, {}) {}", named(rank), process_of(rank), region_.activity(rank),
               arrived == 0 ? "has come to nothing yet" : format("was last in {}", slot.call(arrived))));
  }
  if (late.empty()) return;
  if (count > kMostNamed) late.push_back(format("and {} more", count - kMostNamed));
  options_.on_late(format("rank {} has waited for {} in {}: {}", named(seat().rank),
                          rounded_duration(wait.slept_so_far), call_, stoker::join(late, "; ")));
}

// Looks at all ranks that have not come, not only at the one that is waited for: that one may wait itself. A
// rank that gave up is named only when there is none that it can have given up for.
Status Exchange::missing_because_it_left() {
  std::optional<Rank> gave_up;
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    const Slot& slot = region_.slot(rank);
    if (rank == seat().rank || has_come(rank)) continue;
    const bool has_ended = region_.has_ended(rank);
    const std::uint32_t presence = slot.presence.load();
    if (has_come(rank)) continue;  // it came, and left after that
    if (presence == Slot::kAbandoned) {
      return fail(rank, invalid("rank {}: {}", named(rank), std::string_view(slot.why)));
    }
    if (presence >= Slot::kGaveUp) {
      gave_up = gave_up.value_or(rank);
    } else if (has_ended || presence == Slot::kLeft) {
      return fail(rank, unavailable("rank {} left ({}{}; {} waited for it)", named(rank), process_of(rank),
                                    presence == Slot::kLeft ? "" : " has died", call_));
    }
  }
  if (!gave_up) return {};
  const std::uint32_t culprit = region_.slot(*gave_up).presence.load() - Slot::kGaveUp;
  return fail(*gave_up, unavailable("rank {} left ({} gave up on rank {}; {} waited for it)", named(*gave_up),
                                    process_of(*gave_up), named(Rank(static_cast<int>(culprit))), call_));
}

Status Exchange::missing_because_it_hangs(Wait& wait) {
  for (int number = 0; number < size_; ++number) {
    const Rank rank(number);
    if (rank == seat().rank || has_come(rank) || !region_.is_stopped(rank)) continue;
    // Only what this rank slept through counts: when a whole job is stopped and goes on, nobody is blamed.
    wait.stopped_for += wait.slept;
    if (wait.stopped_for < options_.stopped_within && !deadline_.passed()) return {};
    return fail(rank, timeout("rank {} is stopped ({}: by a signal, for {}; {} waited for it)", named(rank),
                              process_of(rank), rounded_duration(wait.stopped_for), call_));
  }
  wait.stopped_for = Duration::zero();
  if (!deadline_.passed()) return {};
  const Rank rank = wait.peer.value_or(first_missing());
  return fail(rank, timeout("rank {} gave no answer within {} ({}; {} waited for it)", named(rank),
                            rounded_duration(answer_within_.load()), process_of(rank), call_));
}

// "pid 4242 on node3". A rank that was given the memory and has done nothing with it yet has not said so.
std::string Exchange::process_of(Rank rank) const {
  const Slot& slot = region_.slot(rank);
  const std::int64_t pid = slot.pid.load();
  return pid == 0 ? "still joining" : format("pid {} on {}", pid, std::string_view(slot.host));
}

Rank Exchange::named(Rank rank) const {
  const auto seat = static_cast<std::size_t>(rank.value);
  return seat < options_.names.size() ? Rank(options_.names[seat]) : rank;
}

Status Exchange::fail(Rank because_of, Status status) {
  failure_ = status;
  std::uint32_t here = Slot::kHere;
  own_.presence.compare_exchange_strong(here, Slot::kGaveUp + static_cast<std::uint32_t>(because_of.value));
  wake_others();
  return status;
}

// Those who wait for this rank, so that they look what has become of it.
void Exchange::wake_others() {
  wake_all(own_.arrived);
  wake_all(region_.crowd().arrivals);
}

}  // namespace stoker::net::shm
