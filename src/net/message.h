// Messages between ranks and their run: a kind and named texts in a bounded frame. Any process can connect to
// the port, so the parser trusts no input. Values; one FrameParser belongs to one connection. Layout:
// docs/formats/messages.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::net {

/// Larger frames are rejected before any allocation.
constexpr std::size_t kLargestFrame = 256 * 1024;
/// Maximum number of fields of a message.
constexpr std::size_t kMaxFields = 64;

/// A message between a rank and its run.
struct ControlMessage {
  std::string kind;
  std::map<std::string, std::string, std::less<>> fields;

  /// Adds a field; numbers are written in decimal.
  ControlMessage& with(std::string name, std::string value);
  ControlMessage& with(std::string name, std::int64_t value);
  ControlMessage& with(std::string name, double value);

  /// The field, or "" without it.
  std::string_view text(std::string_view name) const;
  /// The field as a number; nullopt if it is missing or not a number.
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;

  bool operator==(const ControlMessage&) const = default;
};

/// The message as a frame. REQUIRES: at most kMaxFields fields, and a size below kLargestFrame.
std::string encode(const ControlMessage& message);

/// Splits a byte stream into messages.
class FrameParser {
 public:
  /// Appends bytes from the socket.
  void feed(std::string_view bytes) { pending_ += bytes; }
  /// The next complete message, or nullopt if more bytes are needed. After Corrupt, the stream is unusable.
  Result<std::optional<ControlMessage>> next();

 private:
  std::string pending_;
};

}  // namespace stoker::net
