// Hashes: SHA-256 for identity, CRC-32C to detect damaged bytes. Functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker {

/// A SHA-256 value (FIPS 180-4).
using Digest = std::array<std::byte, 32>;

/// Incremental SHA-256. Thread-compatible.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Returns the hash of all updates and resets the object.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);
/// Hashes two texts at once. With the SHA-256 instructions of the processor this takes less than twice the
/// time of one hash. Useful for long texts of similar length.
std::array<Digest, 2> sha256_pair(std::span<const std::byte> first, std::span<const std::byte> second);
/// Parses 64 hexadecimal digits.
Result<Digest> parse_digest(std::string_view text);

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4): crc32c("123456789") is 0xE3069283. `seed` is the CRC of the
/// preceding bytes, for incremental use.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);
std::uint32_t crc32c(std::string_view text, std::uint32_t seed = 0);
/// The CRC of two concatenated texts, from their CRCs and the length of the second. The time does not depend
/// on the length.
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);
/// A CRC-32C as TFRecord and TensorBoard's event files store it.
constexpr std::uint32_t masked_crc(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

}  // namespace stoker
