// Enums whose enumerators have names: in files, options and messages. `names_of(value)` lists them in the
// enumerators' order and is found by argument-dependent lookup. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace stoker {

template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) { names_of(value).size(); };

/// The name of an enumerator.
template <NamedEnum Enum>
constexpr std::string_view to_text(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

/// The enumerator with that name.
template <NamedEnum Enum>
constexpr std::optional<Enum> enum_named(std::string_view name) {
  constexpr auto kNames = names_of(Enum{});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// All names of an enum, separated by '|'.
template <NamedEnum Enum>
class JoinedNames {
  static constexpr std::size_t length() {
    std::size_t total = 0;
    for (std::string_view name : names_of(Enum{})) total += name.size() + 1;
    return total - 1;
  }
  static constexpr auto join() {
    std::array<char, length()> text{};
    std::size_t at = 0;
    for (std::string_view name : names_of(Enum{})) {
      if (at > 0) text[at++] = '|';
      for (char c : name) text[at++] = c;
    }
    return text;
  }
  static constexpr std::array kText = join();

 public:
  static constexpr std::string_view kJoined{kText.data(), kText.size()};
};

}  // namespace stoker
