// Memory shared by the ranks of one host, and its setup. It has no name in any file system, so nothing is
// left behind however the ranks end. Used by Exchange. Thread-compatible.
#pragma once

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "net/shm/element.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::net::shm {

/// A rank's position in the group that shares the memory.
struct GroupPosition {
  Rank rank;
  WorldSize size;
};

/// Identifies the processes that can share memory: equal texts mean that they can. Consists of the kernel's
/// boot id and the network namespace, in which the rendezvous address is valid. Empty if /proc is unreadable
/// or the kernel lacks pidfds (before Linux 5.3).
std::string shared_memory_domain();

enum class CollectiveOp : std::uint32_t {
  none,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  barrier
};
/// "all-reduce", "broadcast", ...
std::string_view to_text(CollectiveOp operation);

/// The call of a rank, which its peers compare with their own.
struct Call {
  std::uint64_t number = 0;  ///< number of this collective, from 1
  std::uint64_t bytes = 0;   ///< of the whole collective
  CollectiveOp operation = CollectiveOp::none;
  Element element = Element::u8;
  Reduction reduction = Reduction::sum;
  std::uint16_t root = 0;

  friend bool operator==(const Call&, const Call&) = default;
};
/// "all-reduce 118 of 4096 B of float32".
std::string to_text(const Call& call);

/// Maximum bytes of one rank per chunk.
constexpr std::size_t kChunk = std::size_t{256} << 10;

/// A rank's part of the shared memory. Only the rank writes it, except `sleepers`.
struct Slot {
  Call& call(std::uint32_t chunk) { return calls[chunk % kCalls]; }
  const Call& call(std::uint32_t chunk) const { return calls[chunk % kCalls]; }

  static constexpr std::uint32_t kPresent = 0;
  static constexpr std::uint32_t kLeft = 1;
  static constexpr std::uint32_t kAbandoned = 2;  ///< `why` contains the reason
  static constexpr std::uint32_t kGaveUp = 3;     ///< plus the rank that it waited for

  alignas(64) std::atomic<std::uint32_t> arrived;   ///< chunks published by this rank; wraps around
  std::atomic<std::uint32_t> presence;              ///< kPresent, kLeft, kAbandoned, or kGaveUp + rank
  alignas(64) std::atomic<std::uint32_t> sleepers;  ///< threads that sleep until this rank advances
  /// The calls at the last chunks, by chunk number. A straggler report may read the latest call of a rank
  /// that is one chunk behind, while that rank advances by up to two chunks.
  static constexpr std::uint32_t kCalls = 4;
  alignas(64) Call calls[kCalls];
  /// The rank's own pid; 0 until it has written the two fields below.
  alignas(64) std::atomic<std::int64_t> pid;
  char host[56];
  cpu_set_t cores;  ///< its CPU affinity
  char why[512];    ///< reason for leaving; written once
};

/// Counter of all ranks, so that a wait for all ranks sleeps once and the last rank wakes it.
struct BarrierState {
  alignas(64) std::atomic<std::uint32_t> arrivals;  ///< chunks published by all ranks; wraps around
  alignas(64) std::atomic<std::uint32_t> sleepers;  ///< threads that sleep until all ranks arrive
};

/// The mapped memory, and a pidfd of each rank that becomes readable when the rank exits.
class Region {
 public:
  Region(Region&&) noexcept;
  Region& operator=(Region&&) = delete;
  ~Region();

  const GroupPosition& position() const { return position_; }
  Slot& slot(Rank rank) const;
  BarrierState& barrier_state() const;
  /// `rank`'s buffer for chunks with even and odd numbers, kChunk bytes.
  std::byte* chunk(Rank rank, std::uint32_t number) const;
  /// The common result buffer for chunks with even and odd numbers, kChunk bytes.
  std::byte* result(std::uint32_t number) const;
  /// Whether the rank's process has exited.
  bool has_ended(Rank rank) const;
  /// Whether it is stopped by a signal or a debugger; false if this process cannot see it.
  bool is_stopped(Rank rank) const;
  /// State of its process: "runs", "sleeps", "waits for storage", "is stopped"; "out of sight" if this
  /// process cannot see it.
  std::string_view activity(Rank rank) const;

 private:
  friend class RegionServer;
  friend Result<Region> join(std::string_view, GroupPosition, Deadline);
  Region(GroupPosition position, std::span<std::byte> memory, std::vector<Fd> processes);
  /// The state letter of /proc/<pid>/stat; 0 if unreadable.
  char state(Rank rank) const;
  static Result<Region> map(GroupPosition position, const Fd& memory, std::vector<Fd> processes);

  GroupPosition position_;
  std::span<std::byte> memory_;
  std::vector<Fd> processes_;  ///< pidfds, by rank
  std::vector<pid_t> pids_;    ///< in this process's pid namespace; 0 if the rank is not visible
};

/// Rank 0's end of the setup.
class RegionServer {
 public:
  static Result<RegionServer> open();
  /// Address for the other ranks of this host.
  const std::string& address() const { return address_; }
  /// Waits for all other ranks and sends each the memory. Timeout names the first missing rank.
  Result<Region> create_region(GroupPosition position, Deadline deadline) &&;

 private:
  RegionServer(Fd listener, std::string address)
      : listener_(std::move(listener)), address_(std::move(address)) {}
  Result<std::vector<std::pair<Fd, Fd>>> accept_ranks(GroupPosition position, Deadline deadline);

  Fd listener_;
  std::string address_;
};

/// The other ranks' end. REQUIRES: position.rank is not 0.
Result<Region> join(std::string_view address, GroupPosition position, Deadline deadline);

}  // namespace stoker::net::shm
