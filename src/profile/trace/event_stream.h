// Reads a Chrome trace event by event, from pieces of its text: files of any size in bounded memory, whatever
// they nest. Both forms are read: an object with "traceEvents", and an array. An object belongs to one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "profile/parts.h"
#include "stoker/status.h"

namespace stoker::profile {

/// One event; texts are as in the file, with escapes, and valid during the call only.
struct TraceEvent {
  std::string_view phase;     ///< "X": a span; "M", "i", "b", "e", ...
  std::string_view category;  ///< "kernel", "cpu_op", ...
  std::string_view name;
  std::string_view id;    ///< of asynchronous events
  std::string_view args;  ///< JSON of an object; "" without one
  Nanos begin = 0;        ///< since the trace's base time
  Nanos duration = 0;
  bool has_time = false;  ///< begin and duration are valid
};

/// Parses the text of one event: an object. Nullopt for anything else.
std::optional<TraceEvent> parse_event(std::string_view object);

/// "123.456" microseconds. Nullopt for anything but a number up to 126 years.
std::optional<Nanos> parse_micros(std::string_view number);

/// Finds where a JSON value of an object, array or string ends, in pieces of text.
class ValueEnd {
 public:
  /// The position behind the value, or npos if it continues after `text`.
  std::size_t find(std::string_view text);

 private:
  std::int64_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
};

class EventStream {
 public:
  /// Larger events and values are skipped and counted.
  static constexpr std::size_t kMostBytes = 4u << 20;

  using EventSink = std::function<void(const TraceEvent& event)>;
  /// A value beside the events: "distributedInfo" and its JSON.
  using ValueSink = std::function<void(std::string_view key, std::string_view json)>;
  EventStream(EventSink on_event, ValueSink on_value);

  /// Reads the next piece of the text. Corrupt "byte N: ..." if it is no trace.
  Status add(std::string_view piece);
  /// After the last piece. Corrupt if there was no list of events.
  Status finish();

  std::uint64_t events() const { return events_; }
  std::uint64_t damaged() const { return damaged_; }  ///< skipped: no object, or too large
  bool is_cut_off() const { return !is_over_; }       ///< the text ended inside the trace

 private:
  enum class Place { start, keys, events };
  // Each consumes a prefix of `text`; 0 if it needs more text.
  std::size_t step(std::string_view text);
  std::size_t read_event(std::string_view text);
  std::size_t read_member(std::string_view text);
  std::size_t skip_value(std::string_view text);
  void fail(std::string_view what);

  const EventSink on_event_;
  const ValueSink on_value_;
  std::string text_;          // not consumed yet
  std::uint64_t offset_ = 0;  // of text_
  Place place_ = Place::start;
  bool is_array_ = false;  // the form without keys
  bool has_events_ = false;
  bool is_over_ = false;
  std::optional<ValueEnd> skipping_;  // a value too large to keep
  std::uint64_t events_ = 0;
  std::uint64_t damaged_ = 0;
  Status error_;
};

}  // namespace stoker::profile
