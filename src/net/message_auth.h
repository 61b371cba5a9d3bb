// Authenticates a message by the run's secret without sending it: an HMAC-SHA-256 over the message and a
// nonce that is accepted once. Layout: docs/formats/messages.md. Thread-safe: no state.
#pragma once

#include <string_view>

#include "net/message.h"

namespace stoker::net {

/// `message` with a fresh "nonce" and its "proof".
ControlMessage signed_message(ControlMessage message, std::string_view secret);

/// Whether the proof matches the message and secret. Takes constant time.
bool is_authentic(const ControlMessage& message, std::string_view secret);

}  // namespace stoker::net
