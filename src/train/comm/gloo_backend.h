// Makes a gloo backend, and connects the leaders of all hosts over gloo (the InterNode of
// net::shm::TwoLevel). Used by ProcessGroup. A separate source because torch's header includes gloo's
// headers, which the wheel lacks: see gloo_stub/.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "net/shm/two_level.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace stoker::train {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string interface;  ///< "lo", "eth0"; must exist
  std::chrono::milliseconds
      timeout{};  ///< for connecting, and for each collective until setTimeout() is called
};

/// Connects to all peers through `store`. Throws gloo's exceptions.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GlooOptions& options);

struct GlooInterNodeOptions {
  /// A call that has waited this long is reported once.
  Duration straggler_after = std::chrono::seconds(30);
  /// Called for that on the calling thread; may be empty.
  std::function<void(std::string_view)> on_straggler;
  /// Converts a gloo exception to a Status that names the failed rank.
  std::function<Status(const std::exception&)> explain;
  /// Called with the reason before the connections close, so that peers can read it; not empty.
  std::function<void(std::string_view)> publish_failure;
  int rank = 0;             ///< this rank's number in the job
  std::vector<int> others;  ///< numbers of the other leaders, for messages
};

/// `gloo` connects the leaders. Its ranks are host numbers.
std::unique_ptr<net::shm::InterNode> make_gloo_inter_node(c10::intrusive_ptr<c10d::Backend> gloo,
                                                          GlooInterNodeOptions options);

}  // namespace stoker::train
