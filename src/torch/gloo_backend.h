// Makes a gloo backend whose collectives are metered. Its own source because torch's header needs gloo's,
// which the wheel lacks: see gloo_stub/.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <c10/util/intrusive_ptr.h>

#include "torch/traffic_meter.h"

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
  std::shared_ptr<TrafficMeter>
      meter;  ///< shared with collectives that are still under way when all else goes
};

/// Connects to all other ranks through `store`. Throws what gloo throws.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options);

}  // namespace stoker::torch
