#include "rank/hello/said.h"

#include <array>
#include <optional>

namespace stoker::rank::hello {
namespace {

struct Phrase {
  std::string_view pattern;
};

// The first that fits counts: the longer of two that begin alike stands first.
constexpr Phrase kPhrases[] = {
    // Rungs.
    {"start"},
    {"names"},
    {"ranks"},
    {"storage"},
    {"connect"},
    {"speed"},
    {"answer"},
    // Why a rank does not take part.
    {"did not come within {} (--limit)"},
    {"its process ended before it came"},
    {"its connection broke (killed, or its node is gone)"},
    {"gave no sign for {}, and its host acknowledges no packet"},
    {"gave no sign for {} (--limit), though its host answers: its process stands still"},
    {"was not done after {}"},
    {"answers nonsense: {}"},
    // Names, ways and what goes over them.
    {"no answer within {}"},
    {"no answer"},
    {"the look-up ended without an answer"},
    {"connects, but says nothing for {}"},
    {"connects, and is closed by the other end"},
    {"connects, but what answers there is not stoker"},
    {"the other end closed the connection"},
    {"stalled: {} of {} bytes arrived within {}"},
    {"stalled: {} of {} bytes arrived"},
    // Of all together.
    {"rank {} is gone: it closed the connection"},
    {"rank {} is gone: {}"},
    {"rank {} took nothing more"},
    {"rank {} sent nothing more"},
    {"rank {}: did not call"},
    {"{}: element {} is {}, not {}"},
    // Places.
    {"{} names no interface that is up"},
    {"'{}' is not a port"},
    {"port {}: taken by another program on this host: {} (process {})"},
    {"port {}: taken by another program on this host"},
    {"nvidia-smi gave no answer within {}"},
    {"is not there"},
    {"may not be written to by you (user {})"},
    {"may not be read by you (user {})"},
    {"is another one than where the job was checked: the storage is not shared"},
    {"gives no answer: its filesystem hangs"},
};

constexpr std::size_t kMostFilled = 4;
using Filled = std::array<std::string_view, kMostFilled>;

// What stands in the text where the pattern has its braces, if it is of that pattern.
std::optional<Filled> fill_of(std::string_view pattern, std::string_view text) {
  constexpr std::string_view kBraces = "{}";
  Filled filled;
  std::size_t open = pattern.find(kBraces);
  if (!text.starts_with(pattern.substr(0, open))) return std::nullopt;
  if (open == std::string_view::npos) return pattern == text ? std::optional(filled) : std::nullopt;
  text.remove_prefix(open);
  for (std::string_view& each : filled) {
    pattern.remove_prefix(open + kBraces.size());
    open = pattern.find(kBraces);
    const bool is_last = open == std::string_view::npos;
    const std::string_view next = pattern.substr(0, open);
    if (is_last && !text.ends_with(next)) return std::nullopt;
    const std::size_t end = is_last ? text.size() - next.size() : text.find(next);
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    each = text.substr(0, end);
    if (is_last) return filled;
    text.remove_prefix(end + next.size());
  }
  return std::nullopt;
}

}  // namespace

std::string in_words(std::string_view text, const Words& words) {
  std::string shown = printable(text);
  for (const Phrase& phrase : kPhrases) {
    if (const auto filled = fill_of(phrase.pattern, shown))
      return words.say(phrase.pattern, (*filled)[0], (*filled)[1], (*filled)[2], (*filled)[3]);
  }
  return shown;
}

std::string rank_count(std::size_t count, const Words& words) {
  return count == 1 ? words.say("1 rank") : words.say("{} ranks", count);
}

std::string rank_on(Rank rank, std::string_view host, const Words& words) {
  return words.say("rank {} ({})", rank.value, printable(host));
}

}  // namespace stoker::rank::hello
