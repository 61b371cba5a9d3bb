// A writer updates the block as a sequence lock:
//   1. Make the sequence odd.
//   2. Write the fields.
//   3. Make the sequence even again, with release order.
// A reader reads sequence, block and sequence with three pread(2) calls, which cannot be reordered, and
// retries if the two sequences differ or are odd. A writer that dies between 1 and 3 leaves an odd sequence
// forever; after some retries the reader returns the fields unchanged and marks them torn.
#include "record/beacon.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"

namespace stoker::record {

namespace {

constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'B', 'E', 'A', 'C', 'N'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFileBytes = 4096;
constexpr std::size_t kSequenceOffset = 24;

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// The bytes of docs/formats/run.md#beacon, as a reader copies them.
struct BeaconImage {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::int64_t pid;
  std::uint64_t sequence;
  std::uint64_t phase_and_epoch;  // phase in the low half
  std::uint64_t step;
  std::uint64_t count;
  std::int64_t seen_monotonic_ns;
  std::int64_t seen_unix_ns;
};
static_assert(sizeof(BeaconImage) == 72 && offsetof(BeaconImage, sequence) == kSequenceOffset);

}  // namespace

struct Beacon::Block {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::int64_t pid;
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> phase_and_epoch;
  std::atomic<std::uint64_t> step;
  std::atomic<std::uint64_t> count;
  std::atomic<std::int64_t> seen_monotonic_ns;
  std::atomic<std::int64_t> seen_unix_ns;
};

std::string_view to_text(Phase phase) {
  constexpr std::string_view kNames[] = {"start",     "data",       "forward",  "backward", "communication",
                                         "optimizer", "checkpoint", "validate", "done"};
  const auto index = static_cast<std::uint32_t>(phase);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Result<Beacon> Beacon::create(const Path& file, int rank) {
  static_assert(sizeof(Block) == sizeof(BeaconImage) && std::atomic<std::uint64_t>::is_always_lock_free);
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read_write(file));
  // Written, not only resized: a store into a hole of a full filesystem would raise SIGBUS.
  const std::vector<std::byte> zeros(kFileBytes);
  STOKER_RETURN_IF_ERROR(opened.write_at(0, zeros));
  STOKER_RETURN_IF_ERROR(opened.truncate(kFileBytes));
  void* address = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened.fd(), 0);
  if (address == MAP_FAILED) return posix_error(printable(file.string()), errno);
  auto* block = static_cast<Block*>(address);
  block->version = kVersion;
  block->rank = static_cast<std::uint32_t>(rank);
  block->pid = ::getpid();
  Beacon beacon(block);
  beacon.publish();
  block->magic = kMagic;
  return beacon;
}

Beacon::Beacon(Beacon&& other) noexcept { *this = std::move(other); }

Beacon& Beacon::operator=(Beacon&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(phase_, other.phase_);
  std::swap(epoch_, other.epoch_);
  std::swap(step_, other.step_);
  std::swap(count_, other.count_);
  return *this;
}

Beacon::~Beacon() {
  if (block_ != nullptr) ::munmap(block_, kFileBytes);
}

void Beacon::enter(Phase phase) noexcept {
  phase_ = phase;
  publish();
}

void Beacon::at(std::uint32_t epoch, std::uint64_t step) noexcept {
  epoch_ = epoch;
  step_ = step;
  publish();
}

void Beacon::publish() noexcept {
  if (block_ == nullptr) return;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const std::uint64_t sequence = 2 * count_++;
  block_->sequence.store(sequence + 1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  block_->phase_and_epoch.store(static_cast<std::uint64_t>(phase_) | static_cast<std::uint64_t>(epoch_) << 32,
                                kRelaxed);
  block_->step.store(step_, kRelaxed);
  block_->count.store(count_, kRelaxed);
  block_->seen_monotonic_ns.store(nanoseconds(CLOCK_MONOTONIC), kRelaxed);
  block_->seen_unix_ns.store(nanoseconds(CLOCK_REALTIME), kRelaxed);
  block_->sequence.store(sequence + 2, std::memory_order_release);
}

Result<BeaconState> read_beacon(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(file));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  if (size < sizeof(BeaconImage)) {
    return corrupt("{}: {} bytes, a beacon has {}", printable(file.string()), size, sizeof(BeaconImage));
  }
  BeaconImage image{};
  std::uint64_t before = 0;
  std::uint64_t after = 1;
  for (int tries = 0; tries < 100 && (before != after || before % 2 != 0); ++tries) {
    STOKER_RETURN_IF_ERROR(opened.read_at(kSequenceOffset, std::as_writable_bytes(std::span(&before, 1))));
    STOKER_RETURN_IF_ERROR(opened.read_at(0, std::as_writable_bytes(std::span(&image, 1))));
    STOKER_RETURN_IF_ERROR(opened.read_at(kSequenceOffset, std::as_writable_bytes(std::span(&after, 1))));
  }
  if (image.magic != kMagic) return corrupt("{}: not a beacon (its first 8 bytes)", printable(file.string()));
  if (image.version != kVersion) {
    return corrupt("{}: beacon version {}, this Stoker version reads {}", printable(file.string()),
                   image.version, kVersion);
  }
  BeaconState state;
  state.rank = static_cast<int>(image.rank & 0x7FFF'FFFFu);
  state.pid = image.pid;
  state.phase = static_cast<Phase>(image.phase_and_epoch & 0xFFFF'FFFFu);
  state.epoch = static_cast<std::uint32_t>(image.phase_and_epoch >> 32);
  state.step = image.step;
  state.count = image.count;
  state.seen_monotonic_s = static_cast<double>(image.seen_monotonic_ns) * 1e-9;
  state.seen_unix_s = static_cast<double>(image.seen_unix_ns) * 1e-9;
  state.torn = before != after || before % 2 != 0;
  return state;
}

std::string describe(const BeaconState& state) {
  return format("epoch {} step {}, phase {}", state.epoch + std::uint64_t{1}, state.step,
                to_text(state.phase));
}

}  // namespace stoker::record
