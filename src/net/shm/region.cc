// Setup of the shared memory:
//   1. rank 0 listens on a socket in the abstract namespace (no file) with a random name
//   2. each other rank connects and sends its position and a pidfd of itself
//   3. when all ranks have connected, rank 0 creates the memory (a memfd, no file) and seals its size
//   4. rank 0 sends each rank the memory's descriptor, then the pidfds of all ranks
// From then on all shared objects are descriptors: the kernel frees them with the last process, whichever
// step failed.
#include "net/shm/region.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/language/counted.h"
#include "base/sanitizers.h"
#include "base/thread.h"
#include "net/port.h"

namespace stoker::net::shm {

namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

constexpr int kMaxRanks = 1024;
constexpr std::size_t kFdsAtOnce = 64;  // the kernel's maximum is 253
constexpr std::uint64_t kMagic = 0x314d4853524b5453;

struct JoinRequest {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};
struct JoinReply {
  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;
};

std::size_t slots_bytes(int ranks) {
  constexpr std::size_t kPage = 4096;
  return (sizeof(BarrierState) + static_cast<std::size_t>(ranks) * sizeof(Slot) + kPage - 1) / kPage * kPage;
}

std::size_t region_bytes(int ranks) {
  return slots_bytes(ranks) + 2 * kChunk * (1 + static_cast<std::size_t>(ranks));
}

// The address of a socket without a file: a zero byte, then the name.
std::pair<sockaddr_un, socklen_t> abstract(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size)};
}

Result<Fd> own_pidfd() {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!fd) return posix_error("shared memory: pidfd of this process", errno);
  return fd;
}

Status wait_until_readable(const Fd& fd, Deadline deadline) {
  pollfd entry{fd.get(), POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, deadline.poll_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return posix_error("shared memory: poll", errno);
    if (deadline.passed()) return timeout("shared memory: no response in time");
  }
}

// Sends one message with descriptors. Does not block for long, because the peers read at once.
Status send_with_fds(const Fd& to, std::span<const std::byte> body, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(body.data()), body.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsAtOnce * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
  if (::sendmsg(to.get(), &message, MSG_NOSIGNAL) < 0) return posix_error("shared memory: sendmsg", errno);
  return {};
}

Result<std::vector<Fd>> receive_with_fds(const Fd& from, std::span<std::byte> body, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(wait_until_readable(from, deadline));
  iovec part{body.data(), body.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsAtOnce * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(from.get(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return posix_error("shared memory: recvmsg", errno);
  std::vector<Fd> fds;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  if (static_cast<std::size_t>(size) != body.size() || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return unavailable("shared memory: the peer disconnected during setup");
  }
  return fds;
}

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Abstract names have no permissions: both sides reject other users.
bool is_same_user(const Fd& connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

Result<Fd> make_memory(std::size_t bytes) {
  Fd fd(::memfd_create("stoker-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return posix_error("shared memory: memfd_create", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return posix_error(format("shared memory: {} bytes", bytes), errno);
  }
  // Without the seals, a process that truncates the memory would kill its peers by SIGBUS.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return posix_error("shared memory: seals", errno);
  }
  return fd;
}

// ThreadSanitizer does not relate accesses through different maps of the same memory. In tests, where ranks
// are threads of one process, all ranks get the same map, which is never unmapped.
void* map_pages(const Fd& memory, std::size_t bytes) {
  const auto map = [&] {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  };
  if (!kHasThreadSanitizer) return map();
  static Mutex mutex;
  static std::map<std::pair<ino_t, pid_t>, void*> mapped;
  struct stat which{};
  if (::fstat(memory.get(), &which) != 0) return MAP_FAILED;
  const MutexLock lock(mutex);
  void*& at = mapped.try_emplace({which.st_ino, ::getpid()}, MAP_FAILED).first->second;
  if (at == MAP_FAILED) at = map();
  return at;
}

void unmap_pages(std::span<std::byte> pages) {
  if (!kHasThreadSanitizer) ::munmap(pages.data(), pages.size());
}

// A process's pid in this process's namespace: "Pid:\t4242" in the fdinfo of its descriptor, 0 or -1 if
// invisible.
pid_t visible_pid(const Fd& process) {
  const auto text = read_pseudo_file(format("/proc/self/fdinfo/{}", process.get()));
  if (!text.ok()) return 0;
  for (std::string_view line : split(*text, '\n')) {
    std::int64_t pid = 0;
    if (line.starts_with("Pid:") && parse_number(trim(line.substr(4)), &pid) && pid > 0) {
      return static_cast<pid_t>(pid);
    }
  }
  return 0;
}

}  // namespace

std::string shared_memory_domain() {
  const auto boot = read_pseudo_file("/proc/sys/kernel/random/boot_id");
  std::array<char, 64> network{};
  const ssize_t size = ::readlink("/proc/self/ns/net", network.data(), network.size());
  if (!boot.ok() || size <= 0 || !own_pidfd().ok()) return "";
  return format("{} {} {}", trim(*boot), std::string_view(network.data(), static_cast<std::size_t>(size)),
                ::geteuid());
}

std::string_view to_text(CollectiveOp operation) {
  constexpr std::string_view kNames[] = {"nothing",        "all-reduce", "broadcast", "all-gather",
                                         "reduce-scatter", "reduce",     "barrier"};
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(operation), std::size(kNames) - 1)];
}

std::string to_text(const Call& call) {
  if (call.operation == CollectiveOp::barrier) return format("barrier {}", call.number);
  std::string text =
      format("{} {} of {} B of {}", to_text(call.operation), call.number, call.bytes, to_text(call.element));
  if (call.operation == CollectiveOp::broadcast || call.operation == CollectiveOp::reduce) {
    text += format(", root {}", call.root);
  }
  if (call.reduction != Reduction::sum) text += format(", {}", to_text(call.reduction));
  return text;
}

Region::Region(GroupPosition position, std::span<std::byte> memory, std::vector<Fd> processes)
    : position_(position), memory_(memory), processes_(std::move(processes)) {
  for (const Fd& process : processes_) pids_.push_back(visible_pid(process));
}

Region::Region(Region&& other) noexcept
    : position_(other.position_),
      memory_(std::exchange(other.memory_, {})),
      processes_(std::move(other.processes_)),
      pids_(std::move(other.pids_)) {}

Region::~Region() {
  if (!memory_.empty()) unmap_pages(memory_);
}

Result<Region> Region::map(GroupPosition position, const Fd& memory, std::vector<Fd> processes) {
  const std::size_t bytes = region_bytes(position.size.value);
  void* at = map_pages(memory, bytes);
  if (at == MAP_FAILED) return posix_error(format("shared memory: mapping {} bytes", bytes), errno);
  Region region(position, {static_cast<std::byte*>(at), bytes}, std::move(processes));
  Slot& own = region.slot(position.rank);
  std::strncpy(own.host, host_name().c_str(), sizeof own.host - 1);
  ::sched_getaffinity(0, sizeof own.cores, &own.cores);
  own.pid.store(::getpid());
  return region;
}

// A new memfd is all zeros, the initial value of every member.
BarrierState& Region::barrier_state() const {
  return *std::launder(reinterpret_cast<BarrierState*>(memory_.data()));
}

Slot& Region::slot(Rank rank) const {
  return std::launder(reinterpret_cast<Slot*>(memory_.data() + sizeof(BarrierState)))[rank.value];
}

std::byte* Region::result(std::uint32_t number) const {
  return memory_.data() + slots_bytes(position_.size.value) + kChunk * (number & 1);
}

std::byte* Region::chunk(Rank rank, std::uint32_t number) const {
  return result(number) + 2 * kChunk * (1 + static_cast<std::size_t>(rank.value));
}

bool Region::has_ended(Rank rank) const {
  pollfd entry{processes_[static_cast<std::size_t>(rank.value)].get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

char Region::state(Rank rank) const {
  const pid_t pid = pids_[static_cast<std::size_t>(rank.value)];
  if (pid == 0) return 0;
  const auto stat = read_pseudo_file(format("/proc/{}/stat", pid));
  if (!stat.ok()) return 0;
  // "4242 (name, which may contain anything) T ..."
  const std::size_t end = stat->rfind(')');
  return end == std::string::npos || end + 2 >= stat->size() ? '\0' : (*stat)[end + 2];
}

bool Region::is_stopped(Rank rank) const {
  const char letter = state(rank);
  return letter == 'T' || letter == 't';
}

std::string_view Region::activity(Rank rank) const {
  switch (state(rank)) {
    case 'R':
      return "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "waits for storage";
    case 'T':
    case 't':
      return "is stopped";
    default:
      return "out of sight";
  }
}

Result<RegionServer> RegionServer::open() {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener) return posix_error("shared memory: socket", errno);
  std::string name = "stoker-" + random_name(24);
  const auto [address, length] = abstract(name);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), kMaxRanks) != 0) {
    return posix_error("shared memory: listening", errno);
  }
  return RegionServer(std::move(listener), std::move(name));
}

// By rank: the connection and the pidfd. Both are empty for rank 0.
Result<std::vector<std::pair<Fd, Fd>>> RegionServer::accept_ranks(GroupPosition position, Deadline deadline) {
  std::vector<std::pair<Fd, Fd>> members(static_cast<std::size_t>(position.size.value));
  for (std::size_t missing = members.size() - 1; missing > 0;) {
    if (!wait_until_readable(listener_, deadline).ok()) {
      const auto absent = std::find_if(members.begin() + 1, members.end(), [](auto& m) { return !m.first; });
      return timeout("shared memory: rank {} did not connect (of {} ranks on this host)",
                     absent - members.begin(), position.size);
    }
    Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection || !is_same_user(connection)) continue;
    JoinRequest request;
    auto fds = receive_with_fds(connection, bytes_of(request), deadline);
    if (!fds.ok() || fds->size() != 1 || request.magic != kMagic) continue;
    if (request.size != position.size.value || request.rank <= 0 || request.rank >= position.size.value) {
      return invalid("shared memory: a rank {} of {} connected to a group of {} ranks", request.rank,
                     request.size, position.size);
    }
    auto& member = members[static_cast<std::size_t>(request.rank)];
    if (member.first) return invalid("shared memory: rank {} connected twice", request.rank);
    member = {std::move(connection), std::move(fds->front())};
    missing -= 1;
  }
  return members;
}

Result<Region> RegionServer::create_region(GroupPosition position, Deadline deadline) && {
  if (position.size.value > kMaxRanks)
    return invalid("shared memory: {} on one host",
                   counted(static_cast<std::uint64_t>(position.size.value), "rank"));
  STOKER_ASSIGN_OR_RETURN(members, accept_ranks(position, deadline));
  STOKER_ASSIGN_OR_RETURN(own, own_pidfd());
  members[0].second = std::move(own);
  const std::size_t bytes = region_bytes(position.size.value);
  STOKER_ASSIGN_OR_RETURN(memory, make_memory(bytes));

  std::vector<int> fds;
  for (const auto& [connection, process] : members) fds.push_back(process.get());
  for (std::size_t rank = 1; rank < members.size(); ++rank) {
    JoinReply reply{.bytes = bytes};
    const int memory_fd = memory.get();
    STOKER_RETURN_IF_ERROR(send_with_fds(members[rank].first, bytes_of(reply), {&memory_fd, 1}));
    for (std::size_t begin = 0; begin < fds.size(); begin += kFdsAtOnce) {
      const auto batch = std::span(fds).subspan(begin, std::min(kFdsAtOnce, fds.size() - begin));
      std::uint64_t count = batch.size();
      STOKER_RETURN_IF_ERROR(send_with_fds(members[rank].first, bytes_of(count), batch));
    }
  }
  std::vector<Fd> processes;
  for (auto& [connection, process] : members) processes.push_back(std::move(process));
  return Region::map(position, memory, std::move(processes));
}

Result<Region> join(std::string_view address, GroupPosition position, Deadline deadline) {
  Fd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection) return posix_error("shared memory: socket", errno);
  const auto [there, length] = abstract(address);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&there), length) != 0) {
    return posix_error("shared memory: rank 0 of this host", errno);
  }
  if (!is_same_user(connection)) return unavailable("shared memory: rank 0 is another user's process");
  STOKER_ASSIGN_OR_RETURN(own, own_pidfd());
  JoinRequest request{.rank = position.rank.value, .size = position.size.value};
  const int own_fd = own.get();
  STOKER_RETURN_IF_ERROR(send_with_fds(connection, bytes_of(request), {&own_fd, 1}));

  JoinReply reply;
  STOKER_ASSIGN_OR_RETURN(memory, receive_with_fds(connection, bytes_of(reply), deadline));
  if (memory.size() != 1 || reply.magic != kMagic || reply.bytes != region_bytes(position.size.value)) {
    return unavailable("shared memory: rank 0 has a different version of Stoker");
  }
  std::vector<Fd> processes;
  while (processes.size() < static_cast<std::size_t>(position.size.value)) {
    std::uint64_t count = 0;
    STOKER_ASSIGN_OR_RETURN(batch, receive_with_fds(connection, bytes_of(count), deadline));
    if (batch.empty() || batch.size() != count) return unavailable("shared memory: rank 0 disconnected");
    for (Fd& fd : batch) processes.push_back(std::move(fd));
  }
  return Region::map(position, memory.front(), std::move(processes));
}

}  // namespace stoker::net::shm
