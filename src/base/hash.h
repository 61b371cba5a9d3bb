// Hashes: SHA-256 for identity, CRC-32C for finding damaged bytes. Functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker {

/// A SHA-256 value (FIPS 180-4).
using Digest = std::array<std::byte, 32>;

/// SHA-256 of bytes given in pieces. Thread-compatible.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// The hash of all that was given. The object is then as new.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);
/// Both hashes, in less than twice the time of one where the processor has instructions for SHA-256: it then
/// works on the two at once. Pays for long texts of about the same length.
std::array<Digest, 2> sha256_of_two(std::span<const std::byte> first, std::span<const std::byte> second);
/// Reads 64 hexadecimal digits.
Result<Digest> parse_digest(std::string_view text);

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4): crc32c("123456789") is 0xE3069283. `seed` is the value of
/// what came before, so that pieces can be added up.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);
std::uint32_t crc32c(std::string_view text, std::uint32_t seed = 0);
/// The value of two texts one after the other, from that of each and the length of the second. Takes as long
/// as crc32c() of some kilobytes, whatever the length.
std::uint32_t crc32c_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

}  // namespace stoker
