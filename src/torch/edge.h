// The edge between libtorch, which throws, and us, who return Status. Used by every source of this room.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace stoker::torch {

/// The first line of what libtorch threw, without its source positions and back-trace.
std::string brief(const std::exception& error);

/// Calls `body` and turns an exception into an error of `code`, "<subject>: <first line of what was thrown>".
/// `body` returns void, Status or Result<T>; the answer is a Status for the first two.
template <typename Body>
auto caught(Code code, std::string_view subject, Body&& body) {
  using Answer = std::invoke_result_t<Body>;
  using Returned = std::conditional_t<std::is_void_v<Answer>, Status, Answer>;
  try {
    if constexpr (std::is_void_v<Answer>) {
      std::forward<Body>(body)();
      return Returned();
    } else {
      return Returned(std::forward<Body>(body)());
    }
  } catch (const std::exception& error) {
    return Returned(Status(code, format("{}: {}", subject, brief(error))));
  }
}

}  // namespace stoker::torch
