#include "netcheck/reported_message.h"

#include <array>
#include <optional>

namespace stoker::netcheck {
namespace {

struct Phrase {
  std::string_view pattern;
};

// The first match counts: of two patterns with the same beginning, the longer one comes first.
constexpr Phrase kPhrases[] = {
    // Steps.
    {"start"},
    {"names"},
    {"ranks"},
    {"storage"},
    {"connect"},
    {"speed"},
    {"answer"},
    // Why a rank is absent.
    {"did not join within {} (--limit)"},
    {"its process exited before it joined"},
    {"its connection broke (killed, or its node is gone)"},
    {"sent no heartbeat for {}, and its host acknowledges no packets"},
    {"sent no heartbeat for {} (--limit), though its host answers: its process hangs"},
    {"did not finish within {}"},
    {"sent an invalid answer: {}"},
    // Names, connections and transfers.
    {"no answer within {}"},
    {"no answer"},
    {"the lookup ended without an answer"},
    {"accepts the connection, but sends nothing for {}"},
    {"accepts the connection and closes it"},
    {"accepts the connection, but is not stoker"},
    {"the other end closed the connection"},
    {"stalled: {} of {} bytes arrived within {}"},
    {"stalled: {} of {} bytes arrived"},
    // All ranks together.
    {"rank {} is gone: it closed the connection"},
    {"rank {} is gone: {}"},
    {"rank {} accepts no more data"},
    {"rank {} sends no more data"},
    {"rank {}: did not connect"},
    {"{}: element {} is {}, not {}"},
    // Facts about a node.
    {"{} does not name an interface that is up"},
    {"'{}' is not a port"},
    {"port {}: in use by another program on this host: {} (process {})"},
    {"port {}: in use by another program on this host"},
    {"nvidia-smi did not answer within {}"},
    {"is not there"},
    {"is not writable for you (user {})"},
    {"is not readable for you (user {})"},
    {"differs from the one on the checking host: the storage is not shared"},
    {"does not answer: its filesystem hangs"},
};

constexpr std::size_t kMaxFilled = 4;
using Filled = std::array<std::string_view, kMaxFilled>;

// The text at each "{}" of the pattern, if the text matches it.
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

Message reported_message(std::string_view text) {
  std::string shown = printable(text);
  for (const Phrase& phrase : kPhrases) {
    if (const auto filled = fill_of(phrase.pattern, shown))
      return message(phrase.pattern, (*filled)[0], (*filled)[1], (*filled)[2], (*filled)[3]);
  }
  return shown;
}

Message rank_count(std::size_t count) { return count == 1 ? message("1 rank") : message("{} ranks", count); }

Message rank_on(Rank rank, std::string_view host) {
  return message("rank {} ({})", rank.value, printable(host));
}

}  // namespace stoker::netcheck
