// A record is written so that the file of a dead writer is always readable:
//   1. Set its number to 0: invalid.
//   2. Write the fields.
//   3. Set its number, with release order.
// The end of a collective writes its time, then its outcome with release order.
#include "record/trace/flight.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
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
  std::string text = collective.operation.empty() ? format("number {}", number)
                                                  : format("{} {}", collective.operation, number);
  if (collective.element.empty()) return text;
  std::vector<std::string> sizes;
  for (const std::uint32_t size : collective.shape) {
    if (size != 0) sizes.push_back(std::to_string(size));
  }
  text += format(" of {}", collective.element);
  if (!sizes.empty()) text += format(" [{}]", join(sizes, ", "));
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
    if (record.ended_ns != 0 && entry.has_ended()) {
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

}  // namespace stoker::record
