// A c10d backend for tensors on a GPU that copies them to host memory, where another backend runs the
// collective, and back. For ranks that share a GPU, which NCCL refuses: correct, and slow. Used by
// ProcessGroup.
#pragma once

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::train {

/// Collectives end before the call returns. Fails with the errors of `host`.
c10::intrusive_ptr<c10d::Backend> make_host_staged_backend(c10::intrusive_ptr<c10d::Backend> host);

}  // namespace stoker::train
