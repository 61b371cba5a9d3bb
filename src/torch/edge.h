// The edge between libtorch, which throws, and us, who return Status. Used by every source of this room.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace stoker::torch {

/// A Status on its way through code of libtorch, which throws: out of a collective, say.
class StatusError final : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)), text_(status_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
  std::string text_;
};

/// The first line of what libtorch threw, without its source positions and back-trace.
std::string brief(const std::exception& error);

/// Calls `body` and turns an exception into an error of `code`, or of a StatusError's own, "<subject>: <first
/// line of what was thrown>".
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
  } catch (const StatusError& error) {
    return Returned(Status(error.status()).with_context(subject));
  } catch (const std::exception& error) {
    return Returned(Status(code, format("{}: {}", subject, brief(error))));
  }
}

}  // namespace stoker::torch
