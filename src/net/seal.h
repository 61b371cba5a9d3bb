// Proof that a message comes from somebody who knows the run's secret, without the secret in it: an
// HMAC-SHA-256 over the message and a nonce that counts once. Layout: docs/rooms/net.md. Thread-safe: no
// state.
#pragma once

#include <string_view>

#include "net/message.h"

namespace stoker::net {

/// `message` with the fields "nonce" (fresh) and "proof".
Message sealed(Message message, std::string_view secret);

/// Whether the proof fits message and secret. Takes as long for every wrong one.
bool is_sealed(const Message& message, std::string_view secret);

}  // namespace stoker::net
