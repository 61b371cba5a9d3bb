#include "base/sha256/lane.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/hash.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace stoker {

#if defined(__x86_64__)
namespace {

// Each round instruction depends on the previous one, so the processor can interleave a second text. Each
// instruction does two rounds of FIPS 180-4, section 6.2.2, on the state as two vectors, ABEF and CDGH.
#define STOKER_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define STOKER_SHA_INLINE STOKER_SHA __attribute__((always_inline)) inline

constexpr std::size_t kBlock = 64;

alignas(16) constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Intermediate hash of a text.
struct ShaState {
  __m128i abef;
  __m128i cdgh;
};

STOKER_SHA ShaState begin() {
  return {_mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f, static_cast<int>(0x9b05688c)),
          _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
}

STOKER_SHA_INLINE __m128i byte_swapped(__m128i words) {
  return _mm_shuffle_epi8(words, _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
}

// Words 4g .. 4g + 3 of the message schedule; `w` holds the last sixteen.
STOKER_SHA_INLINE __m128i schedule(const std::byte* block, __m128i (&w)[4], int g) {
  if (g < 4) return byte_swapped(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + g));
  const __m128i seven_back = _mm_alignr_epi8(w[(g + 3) & 3], w[(g + 2) & 3], 4);
  const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[g & 3], w[(g + 1) & 3]), seven_back);
  return _mm_sha256msg2_epu32(sum, w[(g + 3) & 3]);
}

STOKER_SHA_INLINE void four_rounds(ShaState& s, __m128i words, int g) {
  const __m128i keyed = _mm_add_epi32(words, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + g));
  s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, keyed);
  s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(keyed, 0x0E));
}

STOKER_SHA_INLINE void add(ShaState& s, const ShaState& before) {
  s.abef = _mm_add_epi32(s.abef, before.abef);
  s.cdgh = _mm_add_epi32(s.cdgh, before.cdgh);
}

template <int... g>
STOKER_SHA_INLINE void rounds_x2(ShaState& one, ShaState& two, const std::byte* a, const std::byte* b,
                                 std::integer_sequence<int, g...>) {
  __m128i v[4], w[4];
  ((v[g & 3] = schedule(a, v, g), w[g & 3] = schedule(b, w, g),  //
    four_rounds(one, v[g & 3], g), four_rounds(two, w[g & 3], g)),
   ...);
}

template <int... g>
STOKER_SHA_INLINE void rounds_x1(ShaState& state, const std::byte* a, std::integer_sequence<int, g...>) {
  __m128i w[4];
  ((w[g & 3] = schedule(a, w, g), four_rounds(state, w[g & 3], g)), ...);
}

using Groups = std::make_integer_sequence<int, 16>;

// Compresses `count` blocks of each text in lockstep.
STOKER_SHA void compress_two(ShaState& first, ShaState& second, const std::byte* a, const std::byte* b,
                             std::size_t count) {
  ShaState one = first, two = second;
  for (; count > 0; --count, a += kBlock, b += kBlock) {
    const ShaState one_before = one, two_before = two;
    rounds_x2(one, two, a, b, Groups());
    add(one, one_before);
    add(two, two_before);
  }
  first = one;
  second = two;
}

STOKER_SHA void compress(ShaState& state, const std::byte* a, std::size_t count) {
  for (; count > 0; --count, a += kBlock) {
    const ShaState before = state;
    rounds_x1(state, a, Groups());
    add(state, before);
  }
}

// The last bytes of a text of `size` bytes with padding: a one bit, zeros, the text's length in bits.
struct PaddedTail {
  std::array<std::byte, 2 * kBlock> bytes{};
  std::size_t blocks = 1;
};

PaddedTail pad_tail(std::span<const std::byte> rest, std::uint64_t size) {
  PaddedTail tail;
  std::copy(rest.begin(), rest.end(), tail.bytes.begin());
  tail.bytes[rest.size()] = std::byte{0x80};
  tail.blocks = rest.size() + 9 > kBlock ? 2 : 1;
  const std::uint64_t bits = size * 8;
  for (std::size_t i = 0; i < 8; ++i)
    tail.bytes[tail.blocks * kBlock - 1 - i] = static_cast<std::byte>(bits >> 8 * i);
  return tail;
}

STOKER_SHA Digest digest_of(const ShaState& state) {
  // A is the highest word of ABEF.
  const __m128i feba = _mm_shuffle_epi32(state.abef, 0x1B);
  const __m128i hgdc = _mm_shuffle_epi32(state.cdgh, 0x1B);
  Digest digest;
  auto* const out = reinterpret_cast<__m128i*>(digest.data());
  _mm_storeu_si128(out, byte_swapped(_mm_unpacklo_epi64(feba, hgdc)));
  _mm_storeu_si128(out + 1, byte_swapped(_mm_unpackhi_epi64(feba, hgdc)));
  return digest;
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSsse3 = 1u << 9, kSse41 = 1u << 19, kSha = 1u << 29;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSsse3) == 0 || (c & kSse41) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}

STOKER_SHA std::array<Digest, 2> hash_pair(std::span<const std::byte> first,
                                           std::span<const std::byte> second) {
  ShaState one = begin(), two = begin();
  const std::size_t common = std::min(first.size(), second.size()) / kBlock;
  compress_two(one, two, first.data(), second.data(), common);
  const auto finish = [common](ShaState& state, std::span<const std::byte> text) {
    compress(state, text.data() + common * kBlock, text.size() / kBlock - common);
    const PaddedTail tail = pad_tail(text.subspan(text.size() / kBlock * kBlock), text.size());
    compress(state, tail.bytes.data(), tail.blocks);
    return digest_of(state);
  };
  const Digest digest = finish(one, first);
  return {digest, finish(two, second)};
}

bool has_sha_extensions() {
  static const bool is = has_instructions();
  return is;
}

}  // namespace
#endif

std::array<Digest, 2> sha256_pair(std::span<const std::byte> first, std::span<const std::byte> second) {
#if defined(__x86_64__)
  if (has_sha_extensions()) return hash_pair(first, second);
#endif
  return {sha256(first), sha256(second)};
}

#if defined(__x86_64__)

struct Sha256Lane::Parts {
  struct Item {
    std::span<const std::byte> bytes;
    bool is_end = false;
  };

  std::deque<Item> queue;
  std::vector<Digest> digests;
  bool uses_sha_extensions = has_sha_extensions();  // otherwise OpenSSL hashes the texts sequentially
  Sha256 openssl;
  ShaState state = begin();
  std::array<std::byte, kBlock> part;  // incomplete block
  std::size_t part_bytes = 0;
  std::uint64_t bytes = 0;  // of the current text

  // The next whole blocks, after hashing everything before them. Empty if the queue is empty.
  std::span<const std::byte> next_blocks() {
    while (!queue.empty()) {
      Item& item = queue.front();
      if (item.is_end) {
        finish();
      } else if (!item.bytes.empty() && uses_sha_extensions && part_bytes == 0 &&
                 item.bytes.size() >= kBlock) {
        return item.bytes.first(item.bytes.size() / kBlock * kBlock);
      } else if (!item.bytes.empty()) {
        append_partial_block(item);
        continue;
      }
      queue.pop_front();
    }
    return {};
  }

  void skip(std::size_t hashed) {
    queue.front().bytes = queue.front().bytes.subspan(hashed);
    bytes += hashed;
  }

  void run_blocks(std::span<const std::byte> blocks) {
    compress(state, blocks.data(), blocks.size() / kBlock);
    skip(blocks.size());
  }

 private:
  // Appends to the incomplete block. Without SHA instructions, OpenSSL hashes the bytes.
  void append_partial_block(Item& item) {
    if (!uses_sha_extensions) {
      openssl.update(item.bytes);
      item.bytes = {};
      return;
    }
    const std::size_t taken = std::min(kBlock - part_bytes, item.bytes.size());
    std::copy_n(item.bytes.begin(), taken, part.begin() + static_cast<std::ptrdiff_t>(part_bytes));
    part_bytes += taken;
    skip(taken);
    if (part_bytes < kBlock) return;
    compress(state, part.data(), 1);
    part_bytes = 0;
  }

  void finish() {
    if (!uses_sha_extensions) {
      digests.push_back(openssl.finish());
      return;
    }
    const PaddedTail tail = pad_tail(std::span(part).first(part_bytes), bytes);
    compress(state, tail.bytes.data(), tail.blocks);
    digests.push_back(digest_of(state));
    state = begin();
    part_bytes = 0;
    bytes = 0;
  }
};

void Sha256Lane::run_both(Sha256Lane& one, Sha256Lane& two) {
  for (;;) {
    const std::span<const std::byte> a = one.parts_->next_blocks(), b = two.parts_->next_blocks();
    const std::size_t both = std::min(a.size(), b.size());
    if (both == 0) return;
    compress_two(one.parts_->state, two.parts_->state, a.data(), b.data(), both / kBlock);
    one.parts_->skip(both);
    two.parts_->skip(both);
  }
}

#else

struct Sha256Lane::Parts {
  struct Item {
    std::span<const std::byte> bytes;
    bool is_end = false;
  };

  std::deque<Item> queue;
  std::vector<Digest> digests;
  Sha256 openssl;

  std::span<const std::byte> next_blocks() {
    for (; !queue.empty(); queue.pop_front()) {
      if (queue.front().is_end) digests.push_back(openssl.finish());
      if (!queue.front().is_end) openssl.update(queue.front().bytes);
    }
    return {};
  }
  void run_blocks(std::span<const std::byte>) {}
};

void Sha256Lane::run_both(Sha256Lane& one, Sha256Lane& two) {
  one.run();
  two.run();
}

#endif

Sha256Lane::Sha256Lane() : parts_(std::make_unique<Parts>()) {}
Sha256Lane::~Sha256Lane() = default;
Sha256Lane::Sha256Lane(Sha256Lane&&) noexcept = default;
Sha256Lane& Sha256Lane::operator=(Sha256Lane&&) noexcept = default;

void Sha256Lane::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) parts_->queue.push_back({bytes, false});
}

void Sha256Lane::end() { parts_->queue.push_back({{}, true}); }

bool Sha256Lane::is_empty() const { return parts_->queue.empty(); }

void Sha256Lane::run() {
  for (;;) {
    const std::span<const std::byte> blocks = parts_->next_blocks();
    if (blocks.empty()) return;
    parts_->run_blocks(blocks);
  }
}

const std::vector<Digest>& Sha256Lane::digests() const { return parts_->digests; }

}  // namespace stoker
