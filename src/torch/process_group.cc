#include "torch/process_group.h"

#include <arpa/inet.h>
#include <cstring>
#include <filesystem>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "base/time.h"
#include "torch/c10d_internal.h"
#include "torch/edge.h"
#include "torch/gloo_backend.h"

namespace stoker::torch {

namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

Result<AddressInfo> look_up(const Rendezvous& meeting) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(meeting.address.c_str(), std::to_string(meeting.port).c_str(), &hints, &found);
  if (error != 0) {
    return unavailable("'{}': {} (MASTER_ADDR)", meeting.address, gai_strerror(error));
  }
  return AddressInfo(found, &freeaddrinfo);
}

bool same_host(const sockaddr* a, const sockaddr* b) {
  if (a == nullptr || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

// The interface whose address the kernel would use to reach rank 0. Connecting a datagram socket sends
// nothing. The name of this host is not asked for: on compute nodes it often resolves to another network, or
// to none.
Result<std::string> interface_towards(const Rendezvous& meeting) {
  OK_OR_RETURN(there, look_up(meeting));
  const Socket probe(::socket(there->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  socklen_t length = sizeof here;
  if (probe.fd() < 0 || ::connect(probe.fd(), there->ai_addr, there->ai_addrlen) != 0 ||
      ::getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
    return posix_error(format("no route to '{}'", meeting.address), errno);
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return posix_error("network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (same_host(entry->ifa_addr, reinterpret_cast<const sockaddr*>(&here)))
      return std::string(entry->ifa_name);
  }
  return unavailable("no network interface has the address that reaches '{}'", meeting.address);
}

// Rank 0 listens when it gets there. c10d's own retry sleeps up to a second between attempts, which would be
// most of a short job's start: so knock every few milliseconds first.
Status wait_for_first_rank(const Rendezvous& meeting, Deadline deadline) {
  OK_OR_RETURN(there, look_up(meeting));
  RealClock clock;
  for (;;) {
    const Socket knock(::socket(there->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (knock.fd() >= 0 && ::connect(knock.fd(), there->ai_addr, there->ai_addrlen) == 0) return {};
    const int error = errno;
    if (deadline.passed()) {
      return timeout("rank 0 did not open {}:{} within {} (last answer: {})", meeting.address, meeting.port,
                     rounded_duration(meeting.connect_within), std::strerror(error));
    }
    clock.sleep(std::chrono::milliseconds(2));
  }
}

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Local ports of this process's sockets: what an error text of a peer calls us by.
std::string own_ports() {
  std::string ports;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    std::int64_t fd = -1;
    sockaddr_storage here{};
    socklen_t length = sizeof here;
    if (!parse_number(entry.path().filename().string(), &fd) ||
        ::getsockname(static_cast<int>(fd), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
      continue;
    }
    if (here.ss_family == AF_INET) {
      ports += format("{} ", ntohs(reinterpret_cast<const sockaddr_in&>(here).sin_port));
    } else if (here.ss_family == AF_INET6) {
      ports += format("{} ", ntohs(reinterpret_cast<const sockaddr_in6&>(here).sin6_port));
    }
  }
  return ports;
}

// Ranks beyond this many are named by address only: the exchange below grows with the square of their number.
constexpr int kMostNamedRanks = 256;

// gloo prints ports as they lie in memory, in network order: both readings of a port stand for its rank, that
// one first.
void add_ports(std::string_view ports, int rank, std::map<std::string, int>& rank_of_port) {
  for (std::string_view text : split(ports, ' ')) {
    std::uint64_t port = 0;
    if (!parse_number(text, &port)) continue;
    rank_of_port.insert_or_assign(std::to_string(htons(static_cast<std::uint16_t>(port))), rank);
    rank_of_port.emplace(text, rank);
  }
}

std::map<std::string, int> exchange_ports(c10d::TCPStore& store, const Rendezvous& meeting) {
  std::map<std::string, int> rank_of_port;
  const int world = meeting.world_size.value;
  if (world > kMostNamedRanks) return rank_of_port;
  store.set(format("ports/{}", meeting.rank), bytes_of(own_ports()));
  for (int rank = 0; rank < world; ++rank) {
    if (rank == meeting.rank.value) continue;
    const std::vector<std::uint8_t> answer = store.get(format("ports/{}", rank));
    add_ports(std::string(answer.begin(), answer.end()), rank, rank_of_port);
  }
  return rank_of_port;
}

// Rank 0 learns who is missing; the others only learn that rank 0 is there.
Status roll_call(c10d::TCPStore& store, const Rendezvous& meeting, Deadline deadline) {
  store.set(format("here/{}", meeting.rank), bytes_of("1"));
  if (meeting.rank.value != 0) return {};
  RealClock clock;
  for (int rank = 1; rank < meeting.world_size.value; ++rank) {
    while (!store.check({format("here/{}", rank)})) {
      if (deadline.passed()) {
        return timeout("rank {} did not come to {}:{} within {} (of {} ranks)", rank, meeting.address,
                       meeting.port, rounded_duration(meeting.connect_within), meeting.world_size);
      }
      clock.sleep(std::chrono::milliseconds(1));
    }
  }
  return {};
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const Rendezvous& meeting) {
  c10d::TCPStoreOptions options;
  options.port = meeting.port;
  options.isServer = meeting.rank.value == 0;
  options.waitWorkers = false;
  options.timeout = meeting.connect_within;
  return c10::make_intrusive<c10d::TCPStore>(meeting.address, options);
}

Status join(ProcessGroup::Objects& objects) {
  const Rendezvous& meeting = objects.meeting;
  const Deadline deadline = Deadline::after(meeting.connect_within);
  std::string interface = meeting.interface;
  if (interface.empty()) {
    OK_OR_RETURN(found, interface_towards(meeting));
    interface = found;
  }
  if (meeting.rank.value != 0) RETURN_IF_ERROR(wait_for_first_rank(meeting, deadline));
  objects.store = open_store(meeting);
  RETURN_IF_ERROR(roll_call(*objects.store, meeting, deadline));

  const int rank = meeting.rank.value;
  const int world = meeting.world_size.value;
  const auto backend =
      make_gloo_backend(objects.store, {rank, world, interface, meeting.connect_within, objects.meter});
  backend->setTimeout(meeting.answer_within);
  objects.group = c10::make_intrusive<c10d::ProcessGroup>(objects.store, rank, world);
  objects.group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  objects.group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  objects.group->setGroupName("stoker");
  objects.rank_of_port = exchange_ports(*objects.store, meeting);
  return {};
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Objects> objects) : objects_(std::move(objects)) {}
ProcessGroup::~ProcessGroup() = default;

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::connect(const Rendezvous& meeting) {
  auto objects = std::make_unique<Objects>();
  objects->meeting = meeting;
  if (meeting.world_size.value > 1) {
    const std::string subject = format("meeting at {}:{}", meeting.address, meeting.port);
    Status joined = caught(Code::unavailable, subject, [&] { return join(*objects); });
    RETURN_IF_ERROR(std::move(joined).with_context(format("rank {}", meeting.rank)));
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(std::move(objects)));
}

Rank ProcessGroup::rank() const { return objects_->meeting.rank; }
WorldSize ProcessGroup::world_size() const { return objects_->meeting.world_size; }

Status ProcessGroup::sum(std::span<double> values) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{
        at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kDouble)};
    objects_->group->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("summing over ranks", error);
  }
  return {};
}

Status ProcessGroup::copy_from_first(at::Tensor tensor) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    objects_->group->broadcast(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("copying from rank 0", error);
  }
  return {};
}

Status ProcessGroup::barrier() {
  if (!objects_->group) return {};
  try {
    objects_->group->barrier()->wait();
  } catch (const std::exception& error) {
    return explain("waiting for all ranks", error);
  }
  return {};
}

Traffic ProcessGroup::traffic() const { return objects_->meter->traffic(); }

Status ProcessGroup::explain(std::string_view operation, const std::exception& error) const {
  const Rendezvous& meeting = objects_->meeting;
  const std::string text = brief(error);
  const bool late = text.find("imed out") != std::string::npos;
  int peer = meeting.world_size.value == 2 ? 1 - meeting.rank.value : -1;
  // "Read error [127.0.0.1]:44750: Connection reset by peer"
  if (const std::size_t at = text.find("]:"); at != std::string::npos) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 2);
    const auto found = objects_->rank_of_port.find(text.substr(at + 2, end - at - 2));
    if (found != objects_->rank_of_port.end()) peer = found->second;
  }
  const std::string who = peer < 0 ? "another rank" : format("rank {}", peer);
  if (late) {
    return timeout("rank {}: {}: {} gave no answer within {} ({})", meeting.rank, operation, who,
                   rounded_duration(meeting.answer_within), text);
  }
  if (text.find("onnection") != std::string::npos) {
    return unavailable("rank {}: {}: {} left ({})", meeting.rank, operation, who, text);
  }
  return internal("rank {}: {}: {}", meeting.rank, operation, text);
}

}  // namespace stoker::torch
