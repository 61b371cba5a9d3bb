#include "net/message_auth.h"

#include <array>
#include <sodium.h>
#include <span>

#include "base/file.h"

namespace stoker::net {
namespace {

constexpr std::size_t kNonceLength = 24;

std::string compute_proof(ControlMessage message, std::string_view secret) {
  message.fields.erase("proof");
  const std::string bytes = encode(message);
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  crypto_auth_hmacsha256_final(&state, mac.data());
  std::string text;
  for (const unsigned char byte : mac) text += format("{:02x}", byte);
  return text;
}

}  // namespace

ControlMessage signed_message(ControlMessage message, std::string_view secret) {
  message.with("nonce", random_name(kNonceLength));
  message.with("proof", compute_proof(message, secret));
  return message;
}

bool is_authentic(const ControlMessage& message, std::string_view secret) {
  const std::string_view found = message.text("proof");
  const std::string expected = compute_proof(message, secret);
  return found.size() == expected.size() && sodium_memcmp(found.data(), expected.data(), found.size()) == 0;
}

}  // namespace stoker::net
