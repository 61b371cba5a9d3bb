// Where a rank is right now, in one small file that is mapped into the trainer: entering a phase costs a few
// plain stores and one reading of the clock, no system call. Written by the trainer, read by the supervisor
// when something is late or dead. Layout: docs/formats/run.md#beacon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::record {

/// What a rank is doing. The numbers are on disk: add at the end only.
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

/// The writing side: one thread of one rank. Moved-from and default-made beacons swallow every call, so that
/// a trainer without a run folder needs no `if`.
class Beacon {
 public:
  Beacon() = default;
  /// Creates (or takes over) the file. Its blocks are allocated first: a full disk is an error here and never
  /// a SIGBUS later.
  static Result<Beacon> create(const Path& file, int rank);
  Beacon(Beacon&& other) noexcept;
  Beacon& operator=(Beacon&& other) noexcept;
  ~Beacon();

  void enter(Phase phase) noexcept;
  /// The step (global) and epoch that the following phases belong to; counts as a sign of life.
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

/// What a beacon said.
struct Sighting {
  int rank = 0;
  std::int64_t pid = 0;  ///< of the process that writes it
  Phase phase = Phase::start;
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t count = 0;      ///< grows with every sign of life: unchanged means no progress
  double seen_monotonic_s = 0;  ///< CLOCK_MONOTONIC of its host at the last sign of life
  double seen_unix_s = 0;       ///< the same moment on the wall clock
  bool torn = false;            ///< the writer died or was stopped inside an update: fields may be mixed
};

/// Reads a beacon without mapping it, so that a file cut short under us cannot raise SIGBUS. NotFound when
/// there is none (a command that knows nothing of Stoker), Corrupt when the bytes are not a beacon of this
/// version.
Result<Sighting> read_beacon(const Path& file);

/// "epoch 3 step 118, phase backward": how messages name the place, the first epoch being 1.
std::string describe(const Sighting& sighting);

}  // namespace stoker::record
