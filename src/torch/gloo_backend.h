// Makes a gloo backend. Its own source because torch's header needs gloo's, which the wheel lacks: see
// gloo_stub/.
#pragma once

#include <chrono>
#include <string>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace stoker::torch {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string interface;                ///< "lo", "eth0"; must exist
  std::chrono::milliseconds timeout{};  ///< for connecting, and for each collective until setTimeout()
};

/// Connects to all other ranks through `store`. Throws what gloo throws.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options);

}  // namespace stoker::torch
