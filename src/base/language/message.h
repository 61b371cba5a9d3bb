// A message for the user: an English pattern with its arguments, translated when it is printed. Rooms return
// messages, commands render them with a Translator. Values. Thread-safe: no state.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/text.h"

namespace stoker {

class Message {
 public:
  /// Inserts the arguments into the translated pattern. `vformat` by default.
  using Formatter = std::string (*)(std::string_view pattern, std::span<const FormatArg> arguments);

  Message() = default;
  /// A text that is not translated: a command, a quoted line, third-party output.
  Message(std::string text) : pattern_(std::move(text)) {}
  Message(const char* text) : pattern_(text) {}

  /// A message with a custom placeholder syntax. Copies the arguments.
  template <typename... Args>
  static Message of(Formatter formatter, std::string_view pattern, const Args&... args) {
    Message made{std::string(pattern)};
    made.formatter_ = formatter;
    (made.arguments_.push_back(argument(args)), ...);
    return made;
  }

  bool empty() const { return pattern_.empty(); }
  /// Limits the length in bytes, of the arguments too.
  void clip(std::size_t most);
  /// Untranslated, for logs, errors and tests.
  std::string english() const;
  Message& operator+=(Message next);

  friend bool operator==(const Message& message, std::string_view text) { return message.english() == text; }
  /// By the English text, for keys of maps.
  friend bool operator<(const Message& a, const Message& b) { return a.english() < b.english(); }
  /// For the output of failed tests.
  friend std::ostream& operator<<(std::ostream& out, const Message& message);

 private:
  friend class Translator;
  struct Argument {
    FormatArg::Value value = false;
    std::vector<Message> message;  // an argument that is a message: one element
  };

  static Argument argument(const Message& nested) { return {.message = {nested}}; }
  template <typename T>
  static Argument argument(const T& value) {
    FormatArg::Value owned = FormatArg(value).value();
    if (const auto* view = std::get_if<std::string_view>(&owned)) owned = std::string(*view);
    return {.value = std::move(owned), .message = {}};
  }

  std::string pattern_;
  Formatter formatter_ = nullptr;  // none: pattern_ is not translated and has no arguments
  std::vector<Argument> arguments_;
  std::size_t most_ = std::string::npos;
};

/// A message with the syntax of `format`. An argument may be a message. A translation may reorder the
/// arguments: "{1} … {0}". script/lib/check_messages.py finds the patterns by this call.
template <typename... Args>
Message message(std::string_view pattern, const Args&... args) {
  return Message::of(vformat, pattern, args...);
}

}  // namespace stoker
