// The network interfaces of this host, and the interface that gloo and NCCL choose, by their rules for
// variables and defaults. Used by `stoker hello`. Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/text.h"

namespace stoker::net {

/// One address of an interface that is up.
struct Interface {
  std::string name;
  std::string address;  ///< numeric
  int prefix = 0;       ///< bits of the network prefix
  bool is_loopback = false;
  int mtu = 0;
  std::int64_t speed_mbit = 0;  ///< as reported by the driver; 0: unknown, or a virtual device

  friend bool operator==(const Interface&, const Interface&) = default;
};
/// All addresses of interfaces that are up and running, without link-local IPv6, in kernel order. Reads MTU
/// and speed below `sys`.
std::vector<Interface> interfaces(const Path& sys = "/sys");

/// The interface that a library chooses, or the reason why it has none.
struct InterfaceChoice {
  std::optional<Interface> chosen;
  std::string problem;  ///< "GLOO_SOCKET_IFNAME=eth7 names no interface"; empty: none

  friend bool operator==(const InterfaceChoice&, const InterfaceChoice&) = default;
};

/// Gloo's choice in PyTorch: the variable contains exact names separated by commas. All must exist, and the
/// first is used. Without the variable: the first of `own_addresses` (of the host name) that belongs
/// to this host, else loopback.
InterfaceChoice choose_gloo_interface(std::optional<std::string_view> variable,
                                      std::span<const std::string> own_addresses,
                                      std::span<const Interface> interfaces);
/// NCCL's choice: the variable contains prefixes separated by commas; a leading `^` excludes them, `=` means
/// exact names. Without the variable: a name that begins with "ib", else any but docker and loopback, else
/// docker, else loopback.
InterfaceChoice choose_nccl_interface(std::optional<std::string_view> variable,
                                      std::span<const Interface> interfaces);

/// Whether both addresses are in one subnet, by the longer prefix. False for different families.
bool are_on_same_subnet(const Interface& a, const Interface& b);

/// The interface with this address, or nullopt.
std::optional<Interface> find_interface_by_address(std::string_view address,
                                                   std::span<const Interface> interfaces);

}  // namespace stoker::net
