// The messages of a run's ranks and how they lie on the wire: a kind and named texts, in one bounded frame.
// Bytes may come from anybody who finds the port, so the parser takes nothing for granted. Values;
// one FrameParser belongs to one connection. Layout: docs/rooms/net.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::net {

/// A frame larger than this is refused before anything is allocated for it.
constexpr std::size_t kLargestFrame = 256 * 1024;
/// More named texts than this in one message are refused.
constexpr std::size_t kMostFields = 64;

/// What ranks and the run tell each other.
struct Message {
  std::string kind;
  std::map<std::string, std::string, std::less<>> fields;

  /// Adds a field; numbers are written in decimal.
  Message& with(std::string name, std::string value);
  Message& with(std::string name, std::int64_t value);
  Message& with(std::string name, double value);

  /// The field, or "" without it.
  std::string_view text(std::string_view name) const;
  /// The field as a number; nothing when it is missing or no number.
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;

  bool operator==(const Message&) const = default;
};

/// The message as a frame. REQUIRES: at most kMostFields fields, and all of it below kLargestFrame.
std::string encode(const Message& message);

/// Cuts a stream of bytes into messages.
class FrameParser {
 public:
  /// Takes bytes as they come from the socket.
  void feed(std::string_view bytes) { pending_ += bytes; }
  /// The next whole message, nothing while more bytes are needed, or Corrupt: then the stream is lost.
  Result<std::optional<Message>> next();

 private:
  std::string pending_;
};

}  // namespace stoker::net
