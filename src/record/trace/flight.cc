// A record is written so that the file of a dead writer is always readable:
//   1. Set its number to 0: invalid.
//   2. Write the fields.
//   3. Set its number, with release order.
// The end of a collective writes its time, then its outcome with release order.
#include "record/trace/flight.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"

namespace stoker::record {

namespace {

constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'F', 'L', 'G', 'H', 'T'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 4096;
constexpr std::uint32_t kMaxRecords = 1 << 20;

struct Head {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::int64_t pid;
  std::int64_t unix_less_monotonic_ns;
  std::uint32_t records;
  std::uint32_t record_bytes;
  std::array<char, 64> host;
};
static_assert(sizeof(Head) == 104);

struct Record {
  std::uint64_t number;
  std::int64_t begun_ns;
  std::int64_t ended_ns;
  std::uint64_t bytes;
  std::array<char, 16> operation;
  std::array<char, 16> element;
  std::array<std::uint32_t, 4> shape;
  std::int32_t root;
  std::uint32_t outcome;
};
static_assert(sizeof(Record) == 88);

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

template <std::size_t N>
void put(std::array<char, N>& field, std::string_view text) {
  field.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), N - 1), field.begin());
}

template <std::size_t N>
std::string read_field(const std::array<char, N>& field) {
  return printable(std::string_view(field.begin(), std::find(field.begin(), field.end(), '\0')));
}

template <typename T>
T copied(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

struct FlightRecorder::File {
  union {
    Head head;
    std::array<std::byte, kHeadBytes> all;
  };
  Record records[kRecords];

  Record& record_at(std::uint64_t number) { return records[(number - 1) % kRecords]; }
};

Result<FlightRecorder> FlightRecorder::create(const Path& path, int rank, std::string_view host) {
  STOKER_ASSIGN_OR_RETURN(opened, ::stoker::File::open_read_write(path));
  // Written, not only resized: a store into a hole of a full filesystem would raise SIGBUS.
  const std::vector<std::byte> zeros(sizeof(File));
  STOKER_RETURN_IF_ERROR(opened.write_at(0, zeros));
  STOKER_RETURN_IF_ERROR(opened.truncate(sizeof(File)));
  void* address = ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, opened.fd(), 0);
  if (address == MAP_FAILED) return posix_error(printable(path.string()), errno);
  auto* file = static_cast<File*>(address);
  file->head.version = kVersion;
  file->head.rank = static_cast<std::uint32_t>(rank);
  file->head.pid = ::getpid();
  file->head.unix_less_monotonic_ns = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
  file->head.records = kRecords;
  file->head.record_bytes = sizeof(Record);
  put(file->head.host, host);
  file->head.magic = kMagic;
  return FlightRecorder(file);
}

FlightRecorder::FlightRecorder(FlightRecorder&& other) noexcept { *this = std::move(other); }

// No need for both locks: the thread that moves a recorder is its only user.
FlightRecorder& FlightRecorder::operator=(FlightRecorder&& other) noexcept {
  File* file = nullptr;
  std::uint64_t number = 0;
  {
    const MutexLock lock(other.mutex_);
    file = std::exchange(other.file_, nullptr);
    number = other.number_;
  }
  const MutexLock lock(mutex_);
  if (file_ != nullptr) ::munmap(file_, sizeof(File));
  file_ = file;
  number_ = number;
  return *this;
}

FlightRecorder::~FlightRecorder() {
  const MutexLock lock(mutex_);
  if (file_ != nullptr) ::munmap(file_, sizeof(File));
}

std::uint64_t FlightRecorder::begin(const Collective& collective) noexcept {
  const MutexLock lock(mutex_);
  number_ += 1;
  if (file_ == nullptr) return number_;
  Record& record = file_->record_at(number_);
  std::atomic_ref<std::uint64_t>(record.number).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record.begun_ns = nanoseconds(CLOCK_MONOTONIC);
  record.ended_ns = 0;
  record.bytes = collective.bytes;
  put(record.operation, collective.operation);
  put(record.element, collective.element);
  record.shape = collective.shape;
  record.root = collective.root;
  record.outcome = static_cast<std::uint32_t>(CollectiveOutcome::under_way);
  std::atomic_ref<std::uint64_t>(record.number).store(number_, std::memory_order_release);
  return number_;
}

void FlightRecorder::end(std::uint64_t number, CollectiveOutcome outcome) noexcept {
  const MutexLock lock(mutex_);
  if (file_ == nullptr || number + kRecords <= number_) return;  // overwritten in the meantime
  Record& record = file_->record_at(number);
  record.ended_ns = nanoseconds(CLOCK_MONOTONIC);
  std::atomic_ref<std::uint32_t>(record.outcome)
      .store(static_cast<std::uint32_t>(outcome), std::memory_order_release);
}

void FlightRecorder::mark(std::uint64_t number, CollectiveOutcome level) noexcept {
  const MutexLock lock(mutex_);
  if (file_ == nullptr || number > number_ || number + kRecords <= number_) return;
  Record& record = file_->record_at(number);
  if (record.ended_ns != 0) return;
  std::atomic_ref<std::uint32_t>(record.outcome)
      .store(static_cast<std::uint32_t>(level), std::memory_order_release);
}

std::string FlightEntry::describe() const {
  std::string text = format("{} {}", collective.operation, number);
  if (collective.element.empty()) return text;
  std::vector<std::string> sizes;
  for (const std::uint32_t size : collective.shape) {
    if (size != 0) sizes.push_back(std::to_string(size));
  }
  text += format(" of {} [{}]", collective.element, join(sizes, ", "));
  if (collective.root >= 0) text += format(" from rank {}", collective.root);
  return text;
}

Result<FlightDump> parse_flight_dump(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes) {
    return corrupt("{}: {} bytes, a flight has at least {}", name, bytes.size(), kHeadBytes);
  }
  const Head head = copied<Head>(bytes, 0);
  if (head.magic != kMagic) return corrupt("{}: not a flight (its first 8 bytes)", name);
  if (head.version != kVersion) {
    return corrupt("{}: flight version {}, this Stoker version reads {}", name, head.version, kVersion);
  }
  if (head.record_bytes != sizeof(Record) || head.records > kMaxRecords ||
      bytes.size() != kHeadBytes + std::size_t{head.records} * sizeof(Record)) {
    return corrupt("{}: {} bytes, not {} records of {}", name, bytes.size(), head.records, head.record_bytes);
  }
  FlightDump flight{
      .rank = static_cast<int>(head.rank & 0x7FFF'FFFFU), .pid = head.pid, .host = read_field(head.host)};
  for (std::size_t i = 0; i < head.records; ++i) {
    const auto record = copied<Record>(bytes, kHeadBytes + i * sizeof(Record));
    if (record.number == 0) continue;
    FlightEntry entry{.number = record.number,
                      .collective = {read_field(record.operation), read_field(record.element), record.bytes,
                                     record.shape, record.root}};
    entry.outcome =
        record.outcome <= 4 ? static_cast<CollectiveOutcome>(record.outcome) : CollectiveOutcome::failed;
    entry.begun_unix_s =
        1e-9 * (static_cast<double>(record.begun_ns) + static_cast<double>(head.unix_less_monotonic_ns));
    const bool has_ended =
        entry.outcome == CollectiveOutcome::done || entry.outcome == CollectiveOutcome::failed;
    if (record.ended_ns != 0 && has_ended) {
      entry.seconds = 1e-9 * (static_cast<double>(record.ended_ns) - static_cast<double>(record.begun_ns));
    }
    flight.entries.push_back(std::move(entry));
  }
  std::sort(flight.entries.begin(), flight.entries.end(),
            [](const FlightEntry& a, const FlightEntry& b) { return a.number < b.number; });
  return flight;
}

Result<FlightDump> read_flight_dump(const Path& file) {
  constexpr ByteCount kMost{kHeadBytes + std::size_t{kMaxRecords} * sizeof(Record)};
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kMost));
  return parse_flight_dump(printable(file.string()), std::as_bytes(std::span(text.data(), text.size())));
}

std::vector<std::string> describe_desync(std::span<const FlightDump> flights) {
  // The latest collective of any rank, as its first rank started it: the one in which ranks wait for others.
  const FlightEntry* latest = nullptr;
  for (const FlightDump& flight : flights) {
    if (!flight.entries.empty() && (latest == nullptr || flight.entries.back().number > latest->number)) {
      latest = &flight.entries.back();
    }
  }
  std::vector<std::string> lines;
  if (latest == nullptr) return lines;
  constexpr std::string_view kOutcomes[] = {"under way", "done", "failed", "within the host",
                                            "between hosts"};
  for (const FlightDump& flight : flights) {
    const std::string who = format("rank {} (pid {} on {})", flight.rank, flight.pid, flight.host);
    if (flight.entries.empty()) {
      lines.push_back(
          format("{} has started no collective; its peers have reached {}", who, latest->describe()));
      continue;
    }
    const FlightEntry& last = flight.entries.back();
    if (last.number < latest->number) {
      lines.push_back(format("{} has not reached {}: its last collective was {}, {}", who, latest->describe(),
                             last.describe(), kOutcomes[static_cast<std::size_t>(last.outcome)]));
    } else if (last.describe() != latest->describe()) {
      lines.push_back(format("{} is in {}, others in {}", who, last.describe(), latest->describe()));
    }
  }
  if (!lines.empty()) return lines;
  // All ranks reached the same one: if the first ranks of the hosts wait for each other, the network is the
  // cause.
  for (const FlightDump& flight : flights) {
    if (flight.entries.empty() || flight.entries.back().outcome != CollectiveOutcome::inter_node) continue;
    lines.push_back(format("rank {} (pid {} on {}) waits for other hosts in {}, which all ranks have reached",
                           flight.rank, flight.pid, flight.host, flight.entries.back().describe()));
  }
  const bool is_under_way = std::any_of(flights.begin(), flights.end(), [](const FlightDump& flight) {
    return flight.entries.back().outcome != CollectiveOutcome::done;
  });
  if (lines.empty() && is_under_way && flights.size() > 1)
    lines.push_back(
        format("all {} ranks have reached {}, but it has not completed", flights.size(), latest->describe()));
  return lines;
}

std::string longest_wait(std::span<const FlightDump> flights, double least) {
  struct CollectiveWait {
    const FlightDump* first = nullptr;
    const FlightDump* last = nullptr;
    const FlightEntry* of_first = nullptr;
    const FlightEntry* of_last = nullptr;
    std::size_t ranks = 0;
    double shortest = 0;  // minimum of the ranks' times in it
    double wait() const { return of_last->begun_unix_s - of_first->begun_unix_s; }
  };
  std::map<std::uint64_t, CollectiveWait> collective_waits;
  for (const FlightDump& flight : flights) {
    for (const FlightEntry& entry : flight.entries) {
      CollectiveWait& collective_wait = collective_waits[entry.number];
      collective_wait.shortest =
          collective_wait.ranks == 0 ? entry.seconds : std::min(collective_wait.shortest, entry.seconds);
      ++collective_wait.ranks;
      if (collective_wait.first == nullptr || entry.begun_unix_s < collective_wait.of_first->begun_unix_s) {
        collective_wait.first = &flight;
        collective_wait.of_first = &entry;
      }
      if (collective_wait.last == nullptr || entry.begun_unix_s > collective_wait.of_last->begun_unix_s) {
        collective_wait.last = &flight;
        collective_wait.of_last = &entry;
      }
    }
  }
  const auto text = [](double seconds) {
    return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
  };
  const CollectiveWait* latest = nullptr;
  const CollectiveWait* longest = nullptr;
  for (const auto& [number, collective_wait] : collective_waits) {
    if (collective_wait.wait() >= least && (latest == nullptr || collective_wait.wait() > latest->wait()))
      latest = &collective_wait;
    const bool is_long = collective_wait.ranks == flights.size() && collective_wait.shortest >= least;
    if (is_long && (longest == nullptr || collective_wait.shortest > longest->shortest))
      longest = &collective_wait;
  }
  // A rank that was stopped in the middle of a collective delayed its peers there without arriving late
  // anywhere.
  if (longest != nullptr && (latest == nullptr || latest->wait() < longest->shortest)) {
    return format("all {} ranks were in {} for {}", longest->ranks, longest->of_last->describe(),
                  text(longest->shortest));
  }
  if (latest == nullptr) return "";
  return format("rank {} (pid {} on {}) reached {} {} after rank {}", latest->last->rank, latest->last->pid,
                latest->last->host, latest->of_last->describe(), text(latest->wait()), latest->first->rank);
}

}  // namespace stoker::record
