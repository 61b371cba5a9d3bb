// The boundary between libtorch, which throws, and Stoker, which returns Status. Used by all sources of this
// folder.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "stoker/status.h"

namespace stoker::train {

/// Carries a Status through libtorch code as an exception, for example out of a collective.
class StatusError final : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)), text_(status_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
  std::string text_;
};

/// The first line of a libtorch exception, without source positions and backtrace.
std::string first_line(const std::exception& error);

/// Calls `body` and converts an exception to an error "<subject>: <first line>" with `code`, or with the code
/// of a StatusError. `body` returns void, Status or Result<T>; the result is a Status for the first two.
template <typename Body>
auto catch_exceptions(Code code, std::string_view subject, Body&& body) {
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
    return Returned(Status(code, format("{}: {}", subject, first_line(error))));
  }
}

}  // namespace stoker::train
