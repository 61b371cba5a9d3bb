#include "base/hash.h"

#include <algorithm>

#include <isa-l.h>
#include <openssl/evp.h>

namespace stoker {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { CHECK(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  Digest digest;
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), &length) == 1);
  CHECK(length == digest.size());
  CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text.data(), text.size()))); }

Result<Digest> parse_digest(std::string_view text) {
  const Status malformed = invalid("'{}' is not a SHA-256 (64 hexadecimal digits)", printable(text));
  Digest digest;
  if (text.size() != 2 * digest.size()) return malformed;
  const auto nibble = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = nibble(text[2 * i]);
    const int low = nibble(text[2 * i + 1]);
    if (high < 0 || low < 0) return malformed;
    digest[i] = static_cast<std::byte>(high * 16 + low);
  }
  return digest;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  // ISA-L takes the length as int and neither inverts the seed nor the result.
  constexpr std::size_t kPiece = 1u << 30;
  std::uint32_t crc = ~seed;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  return ~crc;
}

std::uint32_t crc32c(std::string_view text, std::uint32_t seed) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace stoker
