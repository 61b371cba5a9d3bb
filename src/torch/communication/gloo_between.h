// The first ranks of the hosts meet over gloo: what net::shm::TwoLevel asks of a network. Used by
// ProcessGroup. In gloo_backend.cc, beside what makes the backend: few sources may see libtorch.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "base/status.h"
#include "base/time.h"
#include "net/shm/two_level.h"

namespace c10d {
class Backend;
}  // namespace c10d

namespace stoker::torch {

struct GlooBetweenOptions {
  /// A call that waited this long says so, once, and goes on waiting.
  Duration named_after = std::chrono::seconds(30);
  /// Told that, by the thread that makes the call; may be empty.
  std::function<void(std::string_view)> on_late;
  /// What an exception of gloo means: who left, or did not answer.
  std::function<Status(const std::exception&)> explain;
  /// Called before the connections are closed, with the reason, so that the others can find it; not empty.
  std::function<void(std::string_view)> say_why;
  int rank = 0;             ///< this one, and
  std::vector<int> others;  ///< the other first ranks: as messages name them
};

/// `gloo` connects the first ranks; its ranks are the numbers of the hosts.
std::unique_ptr<net::shm::Between> make_gloo_between(c10::intrusive_ptr<c10d::Backend> gloo,
                                                     GlooBetweenOptions options);

}  // namespace stoker::torch
