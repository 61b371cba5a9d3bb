#include "profile/trace/event_stream.h"

#include <array>
#include <cmath>
#include <utility>

namespace stoker::profile {
namespace {

constexpr std::size_t kNone = std::string_view::npos;
// 126 years, so that differences of times fit too, and 115 days.
constexpr double kMostMicros = 4e15;
constexpr Nanos kLongestSpan = 10'000'000'000'000'000;

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// The end of a number, `true`, `false` or `null`; npos if `text` ends in it.
std::size_t scalar_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' && !is_blank(text[at]))
    ++at;
  return at == text.size() ? kNone : at;
}

bool is_nested(char c) { return c == '{' || c == '[' || c == '"'; }

std::size_t value_end(std::string_view text, std::size_t at) {
  if (at >= text.size()) return kNone;
  if (!is_nested(text[at])) return scalar_end(text, at);
  ValueEnd end;
  const std::size_t length = end.find(text.substr(at));
  return length == kNone ? kNone : at + length;
}

// "key": value, at `at`.
struct JsonMember {
  std::string_view key;
  std::size_t value = 0;  // its position; kNone: the text ends before it
  bool is_valid = true;
};

JsonMember member_at(std::string_view text, std::size_t at) {
  JsonMember member;
  member.value = kNone;
  if (text[at] != '"') return {.is_valid = false};
  const std::size_t end = value_end(text, at);
  if (end == kNone) return member;
  member.key = text.substr(at + 1, end - at - 2);
  const std::size_t colon = skip_blanks(text, end);
  if (colon >= text.size()) return member;
  if (text[colon] != ':') return {.is_valid = false};
  const std::size_t value = skip_blanks(text, colon + 1);
  if (value < text.size()) member.value = value;
  return member;
}

// Without quotes.
std::string_view bare(std::string_view value) {
  return value.size() >= 2 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

// Bits of a character: what ends the fast path inside a string, and outside of one.
constexpr unsigned char kInString = 1;
constexpr unsigned char kOutside = 2;
constexpr std::array<unsigned char, 256> kStops = [] {
  std::array<unsigned char, 256> stops{};
  for (const char c : {'"', '\\'}) stops[static_cast<unsigned char>(c)] |= kInString;
  for (const char c : {'"', '{', '}', '[', ']'}) stops[static_cast<unsigned char>(c)] |= kOutside;
  return stops;
}();

void set_member(std::string_view key, std::string_view value, TraceEvent& event, bool* has_begin,
                bool* is_bad) {
  if (key == "ph") event.phase = bare(value);
  if (key == "cat") event.category = bare(value);
  if (key == "name") event.name = bare(value);
  if (key == "id") event.id = bare(value);
  if (key == "args" && value.front() == '{') event.args = value;
  if (key != "ts" && key != "dur") return;
  const auto nanos = parse_micros(bare(value));
  if (!nanos) {
    *is_bad = true;
    return;
  }
  if (key == "ts") *has_begin = true;
  (key == "ts" ? event.begin : event.duration) = *nanos;
}

}  // namespace

std::optional<Nanos> parse_micros(std::string_view number) {
  // Digits with up to three decimals exactly: doubles cannot hold nanoseconds since 1970.
  std::size_t at = 0;
  const bool is_negative = number.starts_with('-');
  if (is_negative) ++at;
  std::uint64_t micros = 0;
  const std::size_t first = at;
  while (at < number.size() && at - first < 16 && number[at] >= '0' && number[at] <= '9')
    micros = micros * 10 + static_cast<std::uint64_t>(number[at++] - '0');
  if (at == first || static_cast<double>(micros) > kMostMicros) return std::nullopt;
  std::uint64_t nanos = micros * 1000;
  if (at < number.size() && number[at] == '.') {
    std::uint64_t unit = 100;
    for (++at; at < number.size() && number[at] >= '0' && number[at] <= '9'; ++at, unit /= 10)
      nanos += unit * static_cast<std::uint64_t>(number[at] - '0');
  }
  if (at != number.size()) {  // an exponent, or no number
    double value = 0;
    if (!parse_number(number, &value) || !(std::abs(value) <= kMostMicros)) return std::nullopt;
    return static_cast<Nanos>(std::llround(value * 1000));
  }
  return is_negative ? -static_cast<Nanos>(nanos) : static_cast<Nanos>(nanos);
}

std::size_t ValueEnd::find(std::string_view text) {
  std::size_t at = 0;
  if (is_escaped_ && !text.empty()) {
    is_escaped_ = false;
    ++at;
  }
  while (true) {
    const unsigned char stop = in_string_ ? kInString : kOutside;
    while (at < text.size() && (kStops[static_cast<unsigned char>(text[at])] & stop) == 0) ++at;
    if (at >= text.size()) return kNone;
    const char c = text[at++];
    if (c == '\\') {
      is_escaped_ = at == text.size();
      ++at;
      if (is_escaped_) return kNone;
    } else if (c == '"') {
      in_string_ = !in_string_;
      if (!in_string_ && depth_ == 0) return at;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (--depth_ <= 0) {
      return at;
    }
  }
}

std::optional<TraceEvent> parse_event(std::string_view object) {
  if (object.size() < 2 || object.front() != '{' || object.back() != '}') return std::nullopt;
  TraceEvent event;
  bool has_begin = false;
  bool is_bad = false;
  std::size_t at = skip_blanks(object, 1);
  while (object[at] != '}') {
    const JsonMember member = member_at(object, at);
    if (!member.is_valid || member.value == kNone) return std::nullopt;
    const std::size_t end = value_end(object, member.value);
    if (end == kNone || end == member.value) return std::nullopt;
    set_member(member.key, object.substr(member.value, end - member.value), event, &has_begin, &is_bad);
    at = skip_blanks(object, end);
    if (at >= object.size() || (object[at] != ',' && object[at] != '}')) return std::nullopt;
    if (object[at] == ',') at = skip_blanks(object, at + 1);
    if (at >= object.size()) return std::nullopt;
  }
  if (is_bad) return std::nullopt;
  event.has_time = has_begin && event.duration >= 0 && event.duration <= kLongestSpan;
  return event;
}

EventStream::EventStream(EventSink on_event, ValueSink on_value)
    : on_event_(std::move(on_event)), on_value_(std::move(on_value)) {}

void EventStream::fail(std::string_view what) { error_ = corrupt("byte {}: {}", offset_, what); }

Status EventStream::add(std::string_view piece) {
  text_ += piece;
  std::size_t done = 0;
  const std::uint64_t begin = offset_;
  while (error_.ok() && !is_over_) {
    offset_ = begin + done;
    const std::size_t consumed = step(std::string_view(text_).substr(done));
    if (consumed == 0) break;
    done += consumed;
  }
  if (is_over_) done = text_.size();
  offset_ = begin + done;
  text_.erase(0, done);
  return error_;
}

Status EventStream::finish() {
  // A last number may end with the text.
  if (error_.ok() && !is_over_) (void)add(" ");
  STOKER_RETURN_IF_ERROR(error_);
  if (!has_events_) return corrupt("no Chrome trace: it has no traceEvents");
  return {};
}

std::size_t EventStream::step(std::string_view text) {
  if (skipping_) return skip_value(text);
  // A byte order mark, blanks and commas between values.
  std::size_t at = offset_ == 0 && text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  while (at < text.size() && (is_blank(text[at]) || (place_ != Place::start && text[at] == ','))) ++at;
  if (at > 0) return at;
  if (text.empty()) return 0;
  if (place_ == Place::events) return read_event(text);
  if (place_ == Place::keys) return read_member(text);
  is_array_ = text[0] == '[';
  if (!is_array_ && text[0] != '{') {
    fail("no Chrome trace: it is neither an object nor an array");
    return 0;
  }
  place_ = is_array_ ? Place::events : Place::keys;
  has_events_ = is_array_;
  return 1;
}

std::size_t EventStream::skip_value(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t end = skipping_->find(text);
  if (end != kNone) skipping_.reset();
  return end == kNone ? text.size() : end;
}

std::size_t EventStream::read_event(std::string_view text) {
  if (text[0] == ']') {
    place_ = Place::keys;
    is_over_ = is_array_;
    return 1;
  }
  const std::size_t end = value_end(text, 0);
  if (end == kNone) {
    if (text.size() <= kMostBytes) return 0;
    if (!is_nested(text[0])) {
      fail("no Chrome trace: an event is no object");
      return 0;
    }
    ++damaged_;
    skipping_.emplace();
    return skip_value(text);
  }
  if (end == 0) {
    fail("no Chrome trace: its events are no list of objects");
    return 0;
  }
  if (const auto event = parse_event(text.substr(0, end))) {
    ++events_;
    on_event_(*event);
  } else {
    ++damaged_;
  }
  return end;
}

std::size_t EventStream::read_member(std::string_view text) {
  if (text[0] == '}') {
    is_over_ = true;
    return 1;
  }
  const JsonMember member = member_at(text, 0);
  if (!member.is_valid) {
    fail("no Chrome trace: a key is missing");
    return 0;
  }
  if (member.value == kNone) {
    if (text.size() > kMostBytes) fail("no Chrome trace: a key is too long");
    return 0;
  }
  if (member.key == "traceEvents" && text[member.value] == '[') {
    place_ = Place::events;
    has_events_ = true;
    return member.value + 1;
  }
  const std::size_t end = value_end(text, member.value);
  if (end == kNone && text.size() <= kMostBytes) return 0;
  if (end == member.value || (end == kNone && !is_nested(text[member.value]))) {
    fail("no Chrome trace: a value is missing");
    return 0;
  }
  if (end == kNone) {
    skipping_.emplace();
    return member.value + skip_value(text.substr(member.value));
  }
  on_value_(member.key, text.substr(member.value, end - member.value));
  return end;
}

}  // namespace stoker::profile
