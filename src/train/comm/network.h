// Network functions for the rendezvous that need no libtorch: the interface towards rank 0, and whether rank
// 0 listens. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "stoker/rendezvous_options.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::train {

/// The interface that the kernel uses to reach rank 0. The name of this host is not resolved: on compute
/// nodes it often has no address, or an address in another network.
Result<std::string> interface_to_rank0(const RendezvousOptions& rendezvous);

/// Fails if the host name of rank 0 cannot be resolved.
Status check_address(const RendezvousOptions& rendezvous);

/// If `address` is a loopback address or "localhost": a socket that listens there, and is reachable from this
/// host only. Otherwise none: the name may have a loopback address on this host only. Used by rank 0.
Result<Fd> listen_on_loopback(const RendezvousOptions& rendezvous);

/// Returns when rank 0 accepts connections. A Timeout contains the error of the last attempt.
Status wait_for_rank0(const RendezvousOptions& rendezvous, Deadline deadline);

/// Local ports of this process's sockets, separated by blanks. Peers' error texts contain these ports.
std::string own_ports();

}  // namespace stoker::train
