// The current position of a rank, in a small file mapped into the trainer. Entering a phase costs a few
// stores and one clock read, no system call. Written by the trainer, read by the supervisor when a rank is
// late or dead. Layout: docs/formats/run.md#beacon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::record {

/// What a rank is doing. The numbers are stored on disk: only append.
enum class Phase : std::uint32_t {
  start = 0,
  data = 1,
  forward = 2,
  backward = 3,
  communication = 4,
  optimizer = 5,
  checkpoint = 6,
  validate = 7,
  done = 8,
};

/// "start", "data", ...; "unknown" for a number that this version does not know.
std::string_view to_text(Phase phase);

/// The writer: one thread of one rank. Moved-from and default-constructed beacons ignore every call, so a
/// trainer without a run folder needs no `if`.
class Beacon {
 public:
  Beacon() = default;
  /// Creates or takes over the file. Its blocks are allocated first, so a full disk is an error here and
  /// never a later SIGBUS.
  static Result<Beacon> create(const Path& file, int rank);
  Beacon(Beacon&& other) noexcept;
  Beacon& operator=(Beacon&& other) noexcept;
  ~Beacon();

  void enter(Phase phase) noexcept;
  /// Sets the global step and the epoch of the following phases; counts as a heartbeat.
  void at(std::uint32_t epoch, std::uint64_t step) noexcept;

 private:
  struct Block;
  explicit Beacon(Block* block) : block_(block) {}
  void publish() noexcept;

  Block* block_ = nullptr;
  Phase phase_ = Phase::start;
  std::uint32_t epoch_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t count_ = 0;
};

/// The contents of a beacon.
struct BeaconState {
  int rank = 0;
  std::int64_t pid = 0;  ///< process ID of the writer
  Phase phase = Phase::start;
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t count = 0;      ///< increases with every heartbeat; unchanged means no progress
  double seen_monotonic_s = 0;  ///< CLOCK_MONOTONIC of its host at the last heartbeat
  double seen_unix_s = 0;       ///< wall-clock time of the same moment
  bool torn = false;  ///< the writer died or was stopped during an update: the fields may be inconsistent
};

/// Reads a beacon without mapping it, so that truncation of the file cannot raise SIGBUS. NotFound if it does
/// not exist (a command without Stoker support), Corrupt if the bytes are not a beacon of this version.
Result<BeaconState> read_beacon(const Path& file);

/// "epoch 3 step 118, phase backward", as messages show it; epochs count from 1.
std::string describe(const BeaconState& state);

}  // namespace stoker::record
