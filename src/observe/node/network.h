// Bytes that the network interfaces and InfiniBand ports of this node have received and sent. RDMA bypasses
// the interfaces: only the ports count it. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "observe/node/counter.h"

namespace stoker::observe {

/// One interface or port.
struct LinkUse {
  Counter received_bytes;
  Counter sent_bytes;
};

class NetworkReader {
 public:
  /// Finds the interfaces that have a device, those without the loopback if none has one (as in containers
  /// and virtual networks), and the active ports of /sys/class/infiniband. At most 16 of each.
  static NetworkReader find(const NodeRoots& roots);

  /// "net.eth0" or "ib.mlx5_0/1": prefixes of the columns.
  const std::vector<std::string>& names() const { return names_; }
  /// One value per name.
  std::vector<LinkUse> read() const;

 private:
  Path proc_;
  std::vector<std::string> interfaces_;
  std::vector<Path> ports_;  // folders with the counters
  std::vector<std::string> names_;
};

}  // namespace stoker::observe
