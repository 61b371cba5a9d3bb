#include "net/port.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

#include "base/user.h"
#ifdef __GLIBC__
#include <nss.h>
#endif
#include <sys/socket.h>
#include <unistd.h>

namespace stoker::net {
namespace {

constexpr std::uint16_t kLowestPort = 10000;
constexpr int kProbes = 1000;

// Binds to all addresses: dual-stack if IPv6 is available, else IPv4, because a program may listen on either.
// Returns 0 or errno.
int bind_everywhere(std::uint16_t port, Fd* out) {
  Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd) {
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) {
      *out = std::move(fd);
      return 0;
    }
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return errno;
  }
  fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) return errno;
  *out = std::move(fd);
  return 0;
}

// Probes without SO_REUSEADDR, so that every port in use is detected. Sets it afterwards, so that the
// intended program can bind the port, too. Linux requires it on both sockets, and that neither listens.
int bind_and_hold(std::uint16_t port, Fd* out) {
  if (const int error = bind_everywhere(port, out); error != 0) return error;
  const int on = 1;
  return ::setsockopt(out->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 ? 0 : errno;
}

}  // namespace

std::uint16_t first_ephemeral_port(const Path& proc) {
  const auto text = read_pseudo_file(proc / "sys/net/ipv4/ip_local_port_range");
  std::int64_t low = 0;
  if (text.ok() && parse_number(split(trim(*text), '\t')[0], &low) && low > 0 && low < 65536) {
    return static_cast<std::uint16_t>(low);
  }
  return 32768;
}

std::string to_text(const PortRange& range) { return format("{}-{}", range.first, range.last); }

std::optional<PortRange> parse_port_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  std::int64_t first = 0;
  std::int64_t last = 0;
  const bool is_range = dash != std::string_view::npos && parse_number(text.substr(0, dash), &first) &&
                        parse_number(text.substr(dash + 1), &last) && first >= 1 && first <= last &&
                        last <= 65535;
  if (!is_range) return std::nullopt;
  return PortRange{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

Result<PortReservation> PortReservation::find(std::uint64_t seed, std::optional<PortRange> range) {
  const std::uint16_t end = first_ephemeral_port();
  // If the ephemeral range begins very low, use the upper half.
  const bool is_low = end > kLowestPort + kProbes;
  const std::uint32_t low = range ? range->first : is_low ? kLowestPort : 32768;
  const std::uint32_t high = range ? range->last + 1U : is_low ? end : 65536;
  const int probes = std::min(kProbes, static_cast<int>(high - low));
  int error = EADDRINUSE;
  for (int i = 0; i < probes; ++i) {
    const auto port = static_cast<std::uint16_t>(low + (seed + static_cast<std::uint64_t>(i)) % (high - low));
    Fd fd;
    error = bind_and_hold(port, &fd);
    if (error == 0) return PortReservation(std::move(fd), port);
  }
  return unavailable("ports {} to {}: none of {} tried is free on this host ({})", low, high - 1, probes,
                     posix_error("bind", error).message());
}

Result<PortReservation> PortReservation::reserve(std::uint16_t port) {
  Fd fd;
  const int error = bind_and_hold(port, &fd);
  if (error == 0) return PortReservation(std::move(fd), port);
  if (error == EADDRINUSE) return unavailable("port {}: in use by another program on this host", port);
  return posix_error(format("port {}", port), error);
}

bool is_numeric_address(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool resolve_hosts_from_files_only() {
#ifdef __GLIBC__
  return ::__nss_configure_lookup("hosts", "files") == 0;
#else
  return false;
#endif
}

std::string host_name() {
  const std::string name = stoker::host_name();
  return name.empty() ? "localhost" : std::string(split(name, '.')[0]);
}

std::vector<std::string> local_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
      v4.emplace_back(text);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      ::inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
      v6.emplace_back(text);
    }
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

}  // namespace stoker::net
