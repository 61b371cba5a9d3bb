#include "base/hash.h"

#include <algorithm>

#include <isa-l.h>
// The first hash through EVP takes a millisecond, because it reads openssl.cnf.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {

namespace {

// OpenSSL finds out what the processor can do in code of the section .init, which programs with zig's start
// code never run; without that, SHA-256 takes several times as long.
bool detect_processor() {
  static const bool is_done = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
  return is_done;
}

}  // namespace

struct Sha256::State {
  SHA256_CTX context{};
  State() {
    STOKER_CHECK(detect_processor());
    begin();
  }
  void begin() { STOKER_CHECK(SHA256_Init(&context) == 1); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  STOKER_CHECK(SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  Digest digest;
  STOKER_CHECK(SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &state_->context) == 1);
  state_->begin();
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

namespace {

#if defined(__x86_64__)
// ISA-L leaves the upper halves of the vector registers dirty. SSE code such as OpenSSL's SHA-256 is a third
// slower until they are cleared.
__attribute__((target("avx"))) void clear_upper_halves() { _mm256_zeroupper(); }

void clear_vector_state() {
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) clear_upper_halves();
}
#else
void clear_vector_state() {}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  // ISA-L's length is an int, and it inverts neither the seed nor the result.
  constexpr std::size_t kPiece = 1u << 30;
  std::uint32_t crc = ~seed;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  clear_vector_state();
  return ~crc;
}

std::uint32_t crc32c(std::string_view text, std::uint32_t seed) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())), seed);
}

namespace {

// A CRC is the remainder of the text as a polynomial over GF(2). Appending n bytes multiplies the text, and
// so its remainder, by x^(8n). The remainder of the second text is then added. The highest bit is the
// coefficient of x^0. The inversions of CRC-32C at both ends cancel out.
constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::uint32_t kOne = 0x80000000;

// a * b, without branches on the bits, which are effectively random.
constexpr std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    product ^= b & (0u - (a >> 31));
    a <<= 1;
    b = b >> 1 ^ (kPolynomial & (0u - (b & 1u)));
  }
  return product;
}

// x^8, x^16, x^32, ...: the factors for 1, 2, 4, ... appended bytes.
constexpr std::array<std::uint32_t, 64> powers() {
  std::array<std::uint32_t, 64> powers{};
  powers[0] = kOne >> 8;
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = multiplied(powers[i - 1], powers[i - 1]);
  return powers;
}

}  // namespace

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  static constexpr std::array<std::uint32_t, 64> kPowers = powers();
  for (std::size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if (second_bytes & 1) first = multiplied(kPowers[i], first);
  }
  return first ^ second;
}

}  // namespace stoker
