// What the ranks' meeting needs of the network before libtorch is asked: the interface towards rank 0, and
// whether rank 0 listens. No libtorch. Thread-safe: no state.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"
#include "torch/rendezvous.h"

namespace stoker::torch {

/// The interface whose address the kernel would use to reach rank 0. The name of this host is not asked for:
/// on compute nodes it often resolves to another network, or to none.
Result<std::string> interface_towards(const Rendezvous& meeting);

/// Whether the name of rank 0's host is known.
Status check_address(const Rendezvous& meeting);

/// Returns when somebody listens at rank 0's address. Timeout says what the last attempt was answered.
Status wait_for_first_rank(const Rendezvous& meeting, Deadline deadline);

/// Local ports of this process's sockets, with a blank after each: what an error text of a peer calls it by.
std::string own_ports();

}  // namespace stoker::torch
