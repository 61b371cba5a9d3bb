#include "stoker/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/args.h>
#include <fmt/format.h>

#include "stoker/status.h"

namespace stoker {

std::string vformat(std::string_view pattern, std::span<const FormatArg> args) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const FormatArg& arg : args) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, std::string>) {
            store.push_back(std::cref(value));
          } else {
            store.push_back(value);
          }
        },
        arg.value());
  }
  return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), store);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string clipped(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  text.resize(most);
  return text + "…";
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

namespace {

template <typename T>
bool parse_whole(std::string_view text, T* out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  *out = value;
  return true;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table, so that a swap of two neighbours counts as one edit.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool parse_number(std::string_view text, std::int64_t* out) { return parse_whole(text, out); }
bool parse_number(std::string_view text, std::uint64_t* out) { return parse_whole(text, out); }

bool parse_number(std::string_view text, double* out) {
  // libc++ 19 lacks from_chars for double. strtod needs a terminated copy and would accept blanks and "+".
  if (text.empty() || text.front() == ' ' || text.front() == '+') return false;
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size()) return false;
  *out = value;
  return true;
}

std::string_view closest(std::string_view word, std::span<const std::string_view> candidates) {
  // Limits the quadratic time.
  if (word.size() > 100) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  const std::string lower = to_lower(word);
  for (std::string_view candidate : candidates) {
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (std::max(word.size(), candidate.size()) - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string_view best = closest(word, candidates); !best.empty()) {
    return format("; did you mean '{}'?", best);
  }
  if (candidates.empty() || candidates.size() > 8) return "";
  std::string list;
  for (std::string_view candidate : candidates) list += (list.empty() ? "" : ", ") + std::string(candidate);
  return format(" (one of: {})", list);
}

namespace {

// Multi-byte characters that control a terminal: U+0080 to U+009F (U+009B begins a sequence like ESC [), and
// bidirectional controls.
bool steers_terminal(std::string_view letter) {
  constexpr std::array<std::string_view, 12> kTurning = {"\u061C", "\u200E", "\u200F", "\u202A",
                                                         "\u202B", "\u202C", "\u202D", "\u202E",
                                                         "\u2066", "\u2067", "\u2068", "\u2069"};
  const bool is_control = letter.size() == 2 && letter[0] == '\xC2' && letter[1] < '\xA0';
  return is_control || std::find(kTurning.begin(), kTurning.end(), letter) != kTurning.end();
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7F))) {
      out += format("\\x{:02x}", static_cast<unsigned>(c));
      text.remove_prefix(1);
    } else if (steers_terminal(text.substr(0, length))) {
      for (std::size_t i = 0; i < length; ++i)
        out += format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
      text.remove_prefix(length);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string shell_quote(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ' ');
  return digits;
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += kDigits[static_cast<unsigned>(b) >> 4];
    out += kDigits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

}  // namespace stoker
