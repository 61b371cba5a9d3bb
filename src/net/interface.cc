#include "net/interface.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/file.h"

namespace stoker::net {
namespace {

using AddressBytes = std::vector<unsigned char>;

AddressBytes bytes_of(std::string_view address) {
  const std::string text(address);
  AddressBytes bytes(16);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(4);
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return bytes;
  return {};
}

std::string numeric(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address.sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  return ::inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

int prefix_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  for (unsigned char byte : bytes_of(numeric(*mask))) bits += std::popcount(byte);
  return bits;
}

std::int64_t number_in(const Path& file) {
  const auto text = read_pseudo_file(file);
  std::int64_t value = 0;
  return text.ok() && parse_number(trim(*text), &value) && value > 0 ? value : 0;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> list;
  for (std::string_view word : split(text, ',')) {
    if (!word.empty()) list.push_back(word);
  }
  return list;
}

template <typename Matches>
std::optional<Interface> first_of(std::span<const Interface> interfaces, const Matches& matches) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(), matches);
  return found == interfaces.end() ? std::nullopt : std::optional<Interface>(*found);
}

std::optional<Interface> with_prefix(std::span<const Interface> interfaces, std::string_view prefix) {
  return first_of(interfaces, [&](const Interface& i) { return i.name.starts_with(prefix); });
}

}  // namespace

std::vector<Interface> interfaces(const Path& sys) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const unsigned needed = IFF_UP | IFF_RUNNING;
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & needed) != needed) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr))
      continue;
    Interface one{.name = entry->ifa_name, .address = numeric(*entry->ifa_addr)};
    one.prefix = prefix_of(entry->ifa_netmask);
    one.is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    const Path folder = sys / "class/net" / one.name;
    one.mtu = static_cast<int>(number_in(folder / "mtu"));
    // The speed of a virtual device (veth: 10 Gbit/s) is meaningless.
    if (path_exists(folder / "device")) one.speed_mbit = number_in(folder / "speed");
    found.push_back(std::move(one));
  }
  return found;
}

InterfaceChoice choose_gloo_interface(std::optional<std::string_view> variable,
                                      std::span<const std::string> own_addresses,
                                      std::span<const Interface> interfaces) {
  InterfaceChoice choice;
  if (variable && !variable->empty()) {
    for (std::string_view name : words(*variable)) {
      const auto found = first_of(interfaces, [&](const Interface& i) { return i.name == name; });
      if (!found) {
        choice.problem =
            format("GLOO_SOCKET_IFNAME={} does not name an interface that is up", printable(*variable));
        choice.chosen.reset();
        return choice;
      }
      if (!choice.chosen) choice.chosen = found;
    }
    return choice;
  }
  for (const std::string& address : own_addresses) {
    if ((choice.chosen = find_interface_by_address(address, interfaces))) return choice;
    // All of 127.0.0.0/8 belongs to this host, whatever addresses the interface lists.
    if (address.starts_with("127.")) break;
  }
  choice.chosen = first_of(interfaces, [](const Interface& i) { return i.is_loopback; });
  return choice;
}

InterfaceChoice choose_nccl_interface(std::optional<std::string_view> variable,
                                      std::span<const Interface> interfaces) {
  InterfaceChoice choice;
  if (variable && !variable->empty()) {
    std::string_view rest = *variable;
    const bool is_negated = rest.starts_with('^');
    if (is_negated) rest.remove_prefix(1);
    const bool is_exact = rest.starts_with('=');
    if (is_exact) rest.remove_prefix(1);
    const std::vector<std::string_view> names = words(rest);
    choice.chosen = first_of(interfaces, [&](const Interface& i) {
      const bool is_named = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
        return is_exact ? i.name == name : i.name.starts_with(name);
      });
      return is_named != is_negated;
    });
    if (!choice.chosen) {
      choice.problem =
          format("NCCL_SOCKET_IFNAME={} does not name an interface that is up", printable(*variable));
    }
    return choice;
  }
  choice.chosen = with_prefix(interfaces, "ib");
  if (!choice.chosen) {
    choice.chosen = first_of(interfaces, [](const Interface& i) {
      return !i.name.starts_with("docker") && !i.name.starts_with("lo");
    });
  }
  if (!choice.chosen) choice.chosen = with_prefix(interfaces, "docker");
  if (!choice.chosen) choice.chosen = with_prefix(interfaces, "lo");
  return choice;
}

bool are_on_same_subnet(const Interface& a, const Interface& b) {
  const AddressBytes left = bytes_of(a.address);
  const AddressBytes right = bytes_of(b.address);
  if (left.empty() || left.size() != right.size()) return false;
  int bits = std::max(a.prefix, b.prefix);
  for (std::size_t i = 0; i < left.size() && bits > 0; ++i, bits -= 8) {
    const auto mask = static_cast<unsigned char>(bits >= 8 ? 0xFF : 0xFF << (8 - bits));
    if ((left[i] & mask) != (right[i] & mask)) return false;
  }
  return true;
}

std::optional<Interface> find_interface_by_address(std::string_view address,
                                                   std::span<const Interface> interfaces) {
  return first_of(interfaces, [&](const Interface& i) { return i.address == address; });
}

}  // namespace stoker::net
