// Errors as values: every fallible function returns Status or Result<T>. Used by all rooms. The message is
// "<subject>: <fact> (<deciding option or value>)"; an optional second line is the cure. Thread-compatible
// values.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "stoker/text.h"

namespace stoker {

/// Kind of failure: determines the exit code and whether a retry may help.
enum class Code {
  ok,
  invalid,      ///< the user can fix it: usage, configuration, input
  not_found,    ///< the named object does not exist
  exists,       ///< the object to create exists already
  unavailable,  ///< a retry may help: service, network, device, permission of the environment
  timeout,      ///< a deadline passed
  cancelled,    ///< cancelled by the user or a signal
  corrupt,      ///< stored or received bytes are damaged
  no_space,     ///< disk or quota full
  internal,     ///< a bug in Stoker
};

/// The code's name as it appears in JSON output: "invalid", "not_found", ...
std::string_view to_text(Code code);

/// Success, or a code with a message and an optional cure. One pointer wide. Copies share immutable data.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  bool ok() const { return !detail_; }
  explicit operator bool() const { return ok(); }
  Code code() const { return detail_ ? detail_->code : Code::ok; }
  /// The first line, without the cure; "ok" on success.
  std::string_view message() const;
  /// The command or setting that fixes the error; may be empty.
  std::string_view cure() const;
  /// Message and, on a second line, "  try: <cure>".
  std::string to_string() const;

  /// Sets the cure.
  template <typename... Args>
  Status cure(std::string_view pattern, const Args&... args) && {
    return std::move(*this).with_cure(format(pattern, args...));
  }
  /// Prepends "<context>: " to the message. Keeps code and cure. No effect on success.
  Status with_context(std::string_view context) &&;

 private:
  struct Detail {
    Code code;
    std::string message;
    std::string cure;
  };
  Status with_cure(std::string text) &&;

  // Shared by all copies and immutable, because errors are copied across threads.
  std::shared_ptr<const Detail> detail_;
};

/// A value or an error.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <typename U>
    requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Result> &&
             !std::same_as<std::remove_cvref_t<U>, Status> && !std::same_as<std::remove_cvref_t<U>, T>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// The error, or an ok Status.
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  /// REQUIRES: !ok().
  const Status& error() const& { return std::get<1>(state_); }
  Status&& error() && { return std::get<1>(std::move(state_)); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

#define STOKER_ERROR_MAKER(name)                                             \
  template <typename... Args>                                                \
  [[nodiscard]] Status name(std::string_view pattern, const Args&... args) { \
    return Status(Code::name, format(pattern, args...));                     \
  }
/// invalid("{}: ...", subject), not_found(...), ...: an error with that code and a formatted message.
STOKER_ERROR_MAKER(invalid)
STOKER_ERROR_MAKER(not_found)
STOKER_ERROR_MAKER(exists)
STOKER_ERROR_MAKER(unavailable)
STOKER_ERROR_MAKER(timeout)
STOKER_ERROR_MAKER(cancelled)
STOKER_ERROR_MAKER(corrupt)
STOKER_ERROR_MAKER(no_space)
STOKER_ERROR_MAKER(internal)
#undef STOKER_ERROR_MAKER

/// "<subject>: <text of errnum>" with the matching code: ENOENT not_found, EEXIST exists, ENOSPC and EDQUOT
/// no_space, EACCES, EPERM and EROFS invalid, all others unavailable.
[[nodiscard]] Status posix_error(std::string_view subject, int errnum);

/// Returns from the enclosing function when `expr` (a Status) is an error.
#define STOKER_RETURN_IF_ERROR(expr)                        \
  do {                                                      \
    if (::stoker::Status status_ = (expr); !status_.ok()) { \
      return status_;                                       \
    }                                                       \
  } while (false)

/// Declares `name` from `expr` (a Result), or returns its error from the enclosing function.
#define STOKER_ASSIGN_OR_RETURN(name, expr)                           \
  auto name##_result_ = (expr);                                       \
  if (!name##_result_.ok()) return std::move(name##_result_).error(); \
  auto& name = *name##_result_

/// For bugs only: no user input, file or message may violate it. Prints the location and aborts.
#ifndef STOKER_CHECK
#define STOKER_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::stoker::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
#endif
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace stoker
