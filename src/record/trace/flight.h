// What a rank's latest collectives were, in one small mapped file that outlives the rank: for finding out,
// after a hang or a crash, which rank had come how far, and what took how long. Written by room torch while
// it trains: a few stores per collective and two readings of the clock, no system call. Layout:
// docs/formats/flight.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace stoker::record {

/// What became of a collective. The last two are under way, too, where ranks meet within their hosts first.
enum class CollectiveOutcome : std::uint32_t {
  under_way = 0,
  done = 1,
  failed = 2,
  within_host = 3,
  between_hosts = 4
};

/// A collective as its rank began it.
struct Collective {
  std::string operation;                 ///< "all-reduce", at most 15 letters count
  std::string element;                   ///< "float32", at most 15 letters count
  std::uint64_t bytes = 0;               ///< of this rank's part
  std::array<std::uint32_t, 4> shape{};  ///< sizes of the first four dimensions, 0 behind the last
  std::int32_t root = -1;                ///< of a broadcast or reduce
};

/// The writing side, of one rank. Default-made ones swallow every call. Thread-safe: collectives begin and
/// end on different threads.
class FlightRecorder {
 public:
  /// Latest collectives that a file keeps.
  static constexpr std::size_t kRecords = 1024;

  FlightRecorder() = default;
  /// Creates (or takes over) the file. Its blocks are allocated first: a full disk is an error here and never
  /// a SIGBUS later.
  static Result<FlightRecorder> create(const Path& file, int rank, std::string_view host);
  FlightRecorder(FlightRecorder&& other) noexcept;
  FlightRecorder& operator=(FlightRecorder&& other) noexcept;
  ~FlightRecorder();

  /// Its number, from 1.
  std::uint64_t begin(const Collective& collective) noexcept;
  void end(std::uint64_t number, CollectiveOutcome outcome) noexcept;
  /// Where one that has not ended is.
  void mark(std::uint64_t number, CollectiveOutcome level) noexcept;

 private:
  struct File;
  explicit FlightRecorder(File* file) : file_(file) {}

  Mutex mutex_;
  File* file_ GUARDED_BY(mutex_) = nullptr;
  std::uint64_t number_ GUARDED_BY(mutex_) = 0;
};

/// One collective as the file tells it.
struct FlightEntry {
  std::uint64_t number = 0;  ///< from 1; equal numbers of two ranks are the same collective
  Collective collective;
  CollectiveOutcome outcome = CollectiveOutcome::under_way;
  double begun_unix_s = 0;
  double seconds = 0;  ///< 0 while it is under way

  /// "all-reduce 118 of float32 [272474]"
  std::string describe() const;
};

/// What a rank's file says.
struct Flight {
  int rank = 0;
  std::int64_t pid = 0;
  std::string host;
  std::vector<FlightEntry> entries;  ///< in the order of their numbers
};

/// NotFound when there is none, Corrupt when the bytes are no flight of this version or are cut short.
Result<Flight> read_flight(const Path& file);
/// The same from bytes; `name` is how errors call them.
Result<Flight> parse_flight(std::string_view name, std::span<const std::byte> bytes);

/// Why ranks that wait for each other do: for each rank whose latest collectives are not those of the others,
/// a line such as "rank 1 (pid 42 on node3) has not come to all-reduce 118 of float32 [272474]: its last was
/// broadcast 117 of uint8 [6016], done". When all came to the same one, the ranks that wait for other hosts
/// in it, or that it did not end. Empty when it did.
std::vector<std::string> differences(std::span<const Flight> flights);

/// The collective that ranks waited longest for another one in, as after a hang that passed: "rank 2 (pid 42
/// on n2) came to all-reduce 15 of float32 [272474] 7.1 s after rank 0", or "all 3 ranks were in all-reduce
/// 15 of float32 [272474] for 7.1 s". "" when nobody waited for `least` seconds.
std::string longest_wait(std::span<const Flight> flights, double least);

}  // namespace stoker::record
