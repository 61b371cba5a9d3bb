// Memory that the ranks of one host share, and how they come to share it. Nothing of it has a name in any
// file system: whatever the ranks die of, nothing is left behind. Used by Exchange. Thread-compatible.
#pragma once

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/shm/element.h"

namespace stoker::net::shm {

/// A rank's place among those that share the memory.
struct Seat {
  Rank rank;
  WorldSize size;
};

/// Where this process is, as far as shared memory goes: two processes with the same text can share it. Made
/// of the kernel's boot id and the network namespace, in which addresses of meetings are known. Empty where
/// /proc does not tell, or where the kernel lacks pidfds (before Linux 5.3).
std::string place();

enum class Operation : std::uint32_t {
  none,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  barrier
};
/// "all-reduce", "broadcast", ...
std::string_view to_text(Operation operation);

/// What a rank is doing, for the others to compare with what they do.
struct Call {
  std::uint64_t number = 0;  ///< of this collective, from 1
  std::uint64_t bytes = 0;   ///< of the whole collective
  Operation operation = Operation::none;
  Element element = Element::u8;
  Reduction reduction = Reduction::sum;
  std::uint16_t root = 0;

  friend bool operator==(const Call&, const Call&) = default;
};
/// "all-reduce 118 of 4096 B of float32".
std::string to_text(const Call& call);

/// Most bytes of one rank that are on their way at once.
constexpr std::size_t kChunk = std::size_t{256} << 10;

/// A rank's part of the shared memory: written by it alone but for `sleepers`.
struct Slot {
  Call& call(std::uint32_t chunk) { return calls[chunk % kCalls]; }
  const Call& call(std::uint32_t chunk) const { return calls[chunk % kCalls]; }

  static constexpr std::uint32_t kHere = 0;
  static constexpr std::uint32_t kLeft = 1;
  static constexpr std::uint32_t kAbandoned = 2;  ///< `why` says the reason
  static constexpr std::uint32_t kGaveUp = 3;     ///< plus the rank it waited for

  alignas(64) std::atomic<std::uint32_t> arrived;   ///< chunks that this rank has brought, wraps around
  std::atomic<std::uint32_t> presence;              ///< kHere, kLeft, kAbandoned, or kGaveUp + rank
  alignas(64) std::atomic<std::uint32_t> sleepers;  ///< threads that sleep until this rank moves on
  /// The call under way at each of the last chunks, by the chunk's number. Who tells of a rank that is one
  /// chunk late reads its latest while that rank may come and go on to the next but one.
  static constexpr std::uint32_t kCalls = 4;
  alignas(64) Call calls[kCalls];
  /// As the rank knows itself; 0 until it has written the two below.
  alignas(64) std::atomic<std::int64_t> pid;
  char host[56];
  cpu_set_t cores;  ///< where it may run
  char why[512];    ///< it abandons the others; written once
};

/// What all ranks count up together, so that who waits for all sleeps once and is woken by the last of them.
struct Crowd {
  alignas(64) std::atomic<std::uint32_t> arrivals;  ///< chunks that ranks have brought, wraps around
  alignas(64) std::atomic<std::uint32_t> sleepers;  ///< threads that sleep until all are here
};

/// The mapped memory, and a descriptor of each rank's process that becomes readable when it ends.
class Region {
 public:
  Region(Region&&) noexcept;
  Region& operator=(Region&&) = delete;
  ~Region();

  const Seat& seat() const { return seat_; }
  Slot& slot(Rank rank) const;
  Crowd& crowd() const;
  /// Where `rank` puts its chunks of even and odd number, kChunk bytes.
  std::byte* chunk(Rank rank, std::uint32_t number) const;
  /// Where the ranks together put the sum of chunks of even and odd number, kChunk bytes.
  std::byte* result(std::uint32_t number) const;
  /// Whether the rank's process has ended.
  bool has_ended(Rank rank) const;
  /// Whether it is stopped by a signal or a debugger; false where this process may not see it.
  bool is_stopped(Rank rank) const;
  /// What its process does: "runs", "sleeps", "waits for storage", "is stopped"; "out of sight" where this
  /// process may not see it.
  std::string_view activity(Rank rank) const;

 private:
  friend class Host;
  friend Result<Region> join(std::string_view, Seat, Deadline);
  Region(Seat seat, std::span<std::byte> memory, std::vector<Fd> processes);
  /// The letter of /proc/<pid>/stat; 0 where it cannot be read.
  char state(Rank rank) const;
  static Result<Region> map(Seat seat, const Fd& memory, std::vector<Fd> processes);

  Seat seat_;
  std::span<std::byte> memory_;
  std::vector<Fd> processes_;  ///< pidfds, by rank
  std::vector<pid_t> pids_;    ///< in this process's own namespace; 0 where it cannot see the rank
};

/// Rank 0's end of the meeting.
class Host {
 public:
  static Result<Host> open();
  /// What the other ranks of this host need to join.
  const std::string& address() const { return address_; }
  /// Waits for all others and gives each the memory. Timeout names the first rank that did not come.
  Result<Region> gather(Seat seat, Deadline deadline) &&;

 private:
  Host(Fd listener, std::string address) : listener_(std::move(listener)), address_(std::move(address)) {}
  Result<std::vector<std::pair<Fd, Fd>>> admit_all(Seat seat, Deadline deadline);

  Fd listener_;
  std::string address_;
};

/// The others' end. REQUIRES: seat.rank is not 0.
Result<Region> join(std::string_view address, Seat seat, Deadline deadline);

}  // namespace stoker::net::shm
