// Text formatting and utilities without third-party headers. FormatArg erases the argument types, and text.cc
// formats them. Thread-safe: no state.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stoker {

using Path = std::filesystem::path;

// The result is a view of the argument: clang warns if that is a temporary.
#if defined(__clang__)
#define STOKER_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define STOKER_LIFETIME_BOUND
#endif

/// One argument of `format`. A view: valid only during the call.
class FormatArg {
 public:
  using Value = std::variant<bool, char, std::int64_t, std::uint64_t, double, std::string_view, std::string>;

  FormatArg(bool v) : value_(v) {}
  FormatArg(char v) : value_(v) {}
  template <std::signed_integral T>
  FormatArg(T v) : value_(static_cast<std::int64_t>(v)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  FormatArg(T v) : value_(static_cast<std::uint64_t>(v)) {}
  FormatArg(double v) : value_(v) {}
  FormatArg(float v) : value_(static_cast<double>(v)) {}
  FormatArg(const char* v) : value_(std::string_view(v)) {}
  FormatArg(std::string_view v) : value_(v) {}
  FormatArg(const std::string& v) : value_(std::string_view(v)) {}
  FormatArg(const Path& v) : value_(v.string()) {}
  /// Any type with `to_text(value)`.
  template <typename T>
    requires requires(const T& v) {
      { to_text(v) } -> std::convertible_to<std::string>;
    }
  FormatArg(const T& v) : value_(std::string(to_text(v))) {}

  const Value& value() const { return value_; }

 private:
  Value value_;
};

/// Like `format`, with erased arguments. A malformed pattern aborts.
std::string vformat(std::string_view pattern, std::span<const FormatArg> args);

/// Formats with the syntax of std::format ("{}", "{:>8}", "{:.2f}").
template <typename... Args>
std::string format(std::string_view pattern, Args&&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return vformat(pattern, {});
  } else {
    const FormatArg erased[] = {FormatArg(args)...};
    return vformat(pattern, erased);
  }
}

/// Overload for literals. With std::format in the standard library, an argument of a std type would make the
/// call ambiguous. The exact parameter type makes this overload the better match.
template <std::size_t N, typename... Args>
std::string format(const char (&pattern)[N], Args&&... args) {
  return format(std::string_view(pattern), args...);
}

/// Splits at each separator and keeps empty parts. An empty text has one part.
std::vector<std::string_view> split(std::string_view text, char separator);
/// The parts of a temporary text would outlive it.
template <std::same_as<std::string> Text>
std::vector<std::string_view> split(Text&& text, char separator) = delete;
/// `text`, cut between characters after at most `most` bytes and marked with "…".
std::string clipped(std::string text, std::size_t most);
/// Removes leading and trailing blanks, tabs and line ends.
std::string_view trim(std::string_view text STOKER_LIFETIME_BOUND);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower(std::string_view text);

/// Parses all of `text` as a decimal number. False if it does not fit, or for blanks or a plus sign.
bool parse_number(std::string_view text, std::int64_t* out);
bool parse_number(std::string_view text, std::uint64_t* out);
bool parse_number(std::string_view text, double* out);

/// The candidate closest to `word` by edit distance (at most a third of its length), or "".
std::string_view closest(std::string_view word, std::span<const std::string_view> candidates);
/// "; did you mean 'x'?" for a close candidate, " (one of: a, b)" for at most eight candidates, else "".
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// Length of the UTF-8 sequence at the start of `text` in bytes, 0 if invalid (RFC 3629: no overlong forms,
/// no surrogates, at most U+10FFFF).
std::size_t utf8_length(std::string_view text);
/// `text` escaped for one line of a terminal or log: control bytes and invalid UTF-8 become \xNN.
std::string printable(std::string_view text);
/// `text` quoted for a POSIX shell, unquoted if possible.
std::string shell_quote(std::string_view text);
/// Digit grouping for display: 12345678 → "12 345 678".
std::string grouped(std::uint64_t count);
/// Lower-case hexadecimal.
std::string hex(std::span<const std::byte> bytes);

}  // namespace stoker
