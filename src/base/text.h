// Formatting and small text work for every room, with no third-party header: arguments are erased into
// FormatArg and formatted in text.cc. Thread-safe: no state.
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

/// One argument of `format`. Views what it is given: it lives no longer than the call.
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
  /// Any type of ours with `to_text(value)` beside it.
  template <typename T>
    requires requires(const T& v) {
      { to_text(v) } -> std::convertible_to<std::string>;
    }
  FormatArg(const T& v) : value_(std::string(to_text(v))) {}

  const Value& value() const { return value_; }

 private:
  Value value_;
};

/// As `format`, from erased arguments. A malformed pattern is a bug of the caller and aborts.
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

/// The same for a literal. Where a standard library has std::format, an argument of a type of std would make
/// the call ambiguous; a literal's own type as parameter, and forwarding, make this the better match.
template <std::size_t N, typename... Args>
std::string format(const char (&pattern)[N], Args&&... args) {
  return format(std::string_view(pattern), args...);
}

/// The pieces between separators, empty ones included; one piece for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Without leading and trailing blanks, tabs and line ends.
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower(std::string_view text);

/// True and the whole of `text` consumed as a decimal number that fits; false otherwise. No blanks, no plus
/// sign.
bool parse_number(std::string_view text, std::int64_t* out);
bool parse_number(std::string_view text, std::uint64_t* out);
bool parse_number(std::string_view text, double* out);

/// The candidate that a person most likely meant by `word` (edit distance at most a third of its length), or
/// "".
std::string_view closest(std::string_view word, std::span<const std::string_view> candidates);
/// "; did you mean 'x'?" or, without a close one and with at most eight candidates, " (one of: a, b)"; or "".
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// Bytes of the valid UTF-8 sequence at the start of `text`, 0 if there is none (RFC 3629: nothing overlong,
/// no surrogates, at most U+10FFFF).
std::size_t utf8_length(std::string_view text);
/// `text` for one line of a terminal or log: control bytes and invalid UTF-8 become \xNN.
std::string printable(std::string_view text);
/// `text` in single quotes as a POSIX shell reads it back, bare where no quoting is needed.
std::string shell_quote(std::string_view text);
/// 12345678 → "12 345 678": how counts are shown to people.
std::string grouped(std::uint64_t count);
/// Lower-case hexadecimal.
std::string hex(std::span<const std::byte> bytes);

}  // namespace stoker
