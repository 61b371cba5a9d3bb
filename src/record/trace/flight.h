// The latest collectives of a rank, in a small mapped file that outlives the rank: shows after a hang or a
// crash how far each rank had come and what took long. Written by room train during training: a few stores
// and two clock reads per collective, no system call. Layout: docs/formats/flight.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread.h"
#include "stoker/status.h"

namespace stoker::record {

/// State of a collective. The last two are in progress, in a collective that combines the ranks within each
/// host first.
enum class CollectiveOutcome : std::uint32_t {
  under_way = 0,
  done = 1,
  failed = 2,
  intra_node = 3,
  inter_node = 4
};

/// A collective as its rank started it.
struct Collective {
  std::string operation;                 ///< "all-reduce"; at most 15 characters are stored
  std::string element;                   ///< "float32"; at most 15 characters are stored
  std::uint64_t bytes = 0;               ///< of this rank's data
  std::array<std::uint32_t, 4> shape{};  ///< sizes of the first four dimensions, 0 after the last
  std::int32_t root = -1;                ///< of a broadcast or reduce
};

/// The writer, for one rank. Default-constructed recorders ignore every call. Thread-safe: collectives start
/// and end on different threads.
class FlightRecorder {
 public:
  /// Number of latest collectives that a file keeps.
  static constexpr std::size_t kRecords = 1024;

  FlightRecorder() = default;
  /// Creates or takes over the file. Its blocks are allocated first, so a full disk is an error here and
  /// never a later SIGBUS.
  static Result<FlightRecorder> create(const Path& file, int rank, std::string_view host);
  FlightRecorder(FlightRecorder&& other) noexcept;
  FlightRecorder& operator=(FlightRecorder&& other) noexcept;
  ~FlightRecorder();

  /// Returns its number, from 1.
  std::uint64_t begin(const Collective& collective) noexcept;
  void end(std::uint64_t number, CollectiveOutcome outcome) noexcept;
  /// Sets the state of a collective in progress.
  void mark(std::uint64_t number, CollectiveOutcome level) noexcept;

 private:
  struct File;
  explicit FlightRecorder(File* file) : file_(file) {}

  Mutex mutex_;
  File* file_ STOKER_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t number_ STOKER_GUARDED_BY(mutex_) = 0;
};

/// One collective as read from the file.
struct FlightEntry {
  std::uint64_t number = 0;  ///< from 1; equal numbers of two ranks denote the same collective
  Collective collective;
  CollectiveOutcome outcome = CollectiveOutcome::under_way;
  double begun_unix_s = 0;
  double seconds = 0;      ///< 0 while it is in progress
  std::string place = {};  ///< "train.py:88", where the program started it; only torch records it
  double measured_s = 0;   ///< on the GPU; only torch records it, with TORCH_NCCL_ENABLE_TIMING=1

  bool has_ended() const {
    return outcome == CollectiveOutcome::done || outcome == CollectiveOutcome::failed;
  }
  /// "all-reduce 118 of float32 [272474]"
  std::string describe() const;
};

/// The contents of a rank's file.
struct FlightDump {
  int rank = 0;
  std::int64_t pid = 0;              ///< 0: unknown
  std::string host;                  ///< "": unknown
  std::vector<FlightEntry> entries;  ///< sorted by number
  std::string group = {};            ///< name of the process group; "" for the one of all ranks
};

/// NotFound if it does not exist, Corrupt if the bytes are not a complete flight file of this version.
Result<FlightDump> read_flight_dump(const Path& file);
/// Same, from bytes; `name` is used in errors.
Result<FlightDump> parse_flight_dump(std::string_view name, std::span<const std::byte> bytes);

}  // namespace stoker::record
