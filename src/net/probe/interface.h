// The network interfaces of this host, and which of them gloo and NCCL would take: the rules by which they
// read their variables, and what they do without. Used by `stoker hello`. Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace stoker::net {

/// One address of an interface that is up.
struct Interface {
  std::string name;
  std::string address;  ///< numeric
  int prefix = 0;       ///< bits of the network part
  bool is_loopback = false;
  int mtu = 0;
  std::int64_t speed_mbit = 0;  ///< as the driver says; 0: not known, or no real device

  friend bool operator==(const Interface&, const Interface&) = default;
};
/// All addresses of interfaces that are up and running, link-local IPv6 left out, in the kernel's order; MTU
/// and speed are read below `sys`.
std::vector<Interface> interfaces(const Path& sys = "/sys");

/// The interface a library would take, or why none.
struct InterfaceChoice {
  std::optional<Interface> chosen;
  std::string problem;  ///< "GLOO_SOCKET_IFNAME=eth7 names no interface"; empty: none

  friend bool operator==(const InterfaceChoice&, const InterfaceChoice&) = default;
};

/// As PyTorch's gloo chooses: exact names behind commas, each must be there, the first is told; without the
/// variable the first of `own_addresses` (what the host's own name resolves to) that is an address of this
/// host, else loopback.
InterfaceChoice gloo_choice(std::optional<std::string_view> variable,
                            std::span<const std::string> own_addresses,
                            std::span<const Interface> interfaces);
/// As NCCL chooses: prefixes behind commas; `^` in front: all but those; `=`: exact names. Without the
/// variable names that begin with "ib", else anything but docker and loopback, else docker, else loopback.
InterfaceChoice nccl_choice(std::optional<std::string_view> variable, std::span<const Interface> interfaces);

/// Whether both addresses are in one network, by the longer of the two prefixes. False for different
/// families.
bool share_network(const Interface& a, const Interface& b);

/// The interface whose address this is; nothing when it is none of this list.
std::optional<Interface> interface_with(std::string_view address, std::span<const Interface> interfaces);

}  // namespace stoker::net
