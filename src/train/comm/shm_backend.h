// A c10d backend over shared memory within a host and the network between hosts: all-reduce, broadcast and
// the other collectives of c10d::Reducer and the trainer, for CPU tensors. Used by ProcessGroup.
#pragma once

#include <memory>

#include <c10/util/intrusive_ptr.h>

#include "net/shm/collectives.h"

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::train {

/// Small collectives run on the calling thread before the call returns. Large ones run on the backend's
/// thread. Errors are thrown as StatusError (exceptions.h).
c10::intrusive_ptr<c10d::Backend> make_shm_backend(std::unique_ptr<net::shm::Collectives> ranks);

}  // namespace stoker::train
