// Ranks exchange tensors through memory that those of one host share (net/shm), and between hosts over the
// network: all-reduce, broadcast and what else c10d::Reducer and the trainer ask for, on tensors in the CPU's
// memory. Used by ProcessGroup.
#pragma once

#include <memory>

#include <c10/util/intrusive_ptr.h>

#include "net/shm/collectives.h"

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::torch {

/// Small collectives are done by the calling thread before the call returns, large ones by a thread of the
/// backend while the caller goes on. What goes wrong is thrown as a StatusError (edge.h).
c10::intrusive_ptr<c10d::Backend> make_shm_backend(std::unique_ptr<net::shm::Collectives> ranks);

}  // namespace stoker::torch
