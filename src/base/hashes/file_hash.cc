#include "base/hashes/file_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include <openssl/evp.h>

#include "base/hash.h"

namespace stoker {

namespace {

// XXH64 with seed 0: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
class Xxh64 {
 public:
  void update(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
      if (held_ == 0 && bytes.size() >= kStripe) {
        take(bytes.data());
        bytes = bytes.subspan(kStripe);
        continue;
      }
      const std::size_t count = std::min(bytes.size(), kStripe - held_);
      std::memcpy(stripe_.data() + held_, bytes.data(), count);
      bytes = bytes.subspan(count);
      held_ += count;
      if (held_ < kStripe) return;
      take(stripe_.data());
      held_ = 0;
    }
  }

  std::uint64_t finish() const {
    std::uint64_t hash = kPrime[4];
    if (total_ >= kStripe) {
      hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
             std::rotl(lanes_[3], 18);
      for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * kPrime[0] + kPrime[3];
    }
    hash += total_;
    std::size_t at = 0;
    for (; at + 8 <= held_; at += 8)
      hash = std::rotl(hash ^ round(0, number<std::uint64_t>(at)), 27) * kPrime[0] + kPrime[3];
    for (; at + 4 <= held_; at += 4)
      hash = std::rotl(hash ^ (number<std::uint32_t>(at) * kPrime[0]), 23) * kPrime[1] + kPrime[2];
    for (; at < held_; ++at)
      hash = std::rotl(hash ^ (static_cast<std::uint64_t>(stripe_[at]) * kPrime[4]), 11) * kPrime[0];
    hash = (hash ^ (hash >> 33)) * kPrime[1];
    hash = (hash ^ (hash >> 29)) * kPrime[2];
    return hash ^ (hash >> 32);
  }

 private:
  static constexpr std::size_t kStripe = 32;
  static constexpr std::array<std::uint64_t, 5> kPrime = {
      0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};

  static std::uint64_t round(std::uint64_t lane, std::uint64_t value) {
    return std::rotl(lane + value * kPrime[1], 31) * kPrime[0];
  }
  template <typename T>
  T number(std::size_t at) const {
    T value;
    std::memcpy(&value, stripe_.data() + at, sizeof value);
    return value;
  }
  void take(const std::byte* stripe) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, stripe + 8 * i, sizeof value);
      lanes_[i] = round(lanes_[i], value);
    }
  }

  std::array<std::uint64_t, 4> lanes_ = {kPrime[0] + kPrime[1], kPrime[1], 0, 0 - kPrime[0]};
  std::array<std::byte, kStripe> stripe_{};
  std::size_t held_ = 0;
  std::uint64_t total_ = 0;
};

// As OpenSSL calls it.
std::string openssl_name(std::string_view name) {
  if (name == "blake2b") return "blake2b512";
  if (name == "blake2s") return "blake2s256";
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

}  // namespace

struct FileHash::State {
  std::optional<Xxh64> xxh64;
  EVP_MD_CTX* context = nullptr;

  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

FileHash::FileHash(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileHash::FileHash(FileHash&&) noexcept = default;
FileHash& FileHash::operator=(FileHash&&) noexcept = default;
FileHash::~FileHash() = default;

std::optional<FileHash> FileHash::make(std::string_view name) {
  auto state = std::make_unique<State>();
  if (name == "xxh64") {
    state->xxh64.emplace();
    return FileHash(std::move(state));
  }
  const EVP_MD* algorithm = EVP_get_digestbyname(openssl_name(name).c_str());
  const bool has_length = algorithm && (EVP_MD_get_flags(algorithm) & EVP_MD_FLAG_XOF) == 0;
  if (!has_length) return std::nullopt;
  state->context = EVP_MD_CTX_new();
  if (!state->context || EVP_DigestInit_ex(state->context, algorithm, nullptr) != 1) return std::nullopt;
  return FileHash(std::move(state));
}

void FileHash::update(std::span<const std::byte> bytes) {
  if (state_->xxh64) {
    state_->xxh64->update(bytes);
  } else {
    CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
  }
}

std::string FileHash::finish() {
  if (state_->xxh64) return format("{:016x}", state_->xxh64->finish());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += format("{:02x}", static_cast<unsigned>(digest[i]));
  return text;
}

Result<std::string> hash_file(const Path& path, std::string_view name, const Progress& progress) {
  constexpr std::uint64_t kPiece = 1u << 20;
  std::optional<FileHash> hash = FileHash::make(name);
  CHECK(hash.has_value());
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  std::vector<std::byte> buffer(std::min(kPiece, size));
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was read", path);
    const auto piece = std::span(buffer).first(std::min(kPiece, size - at));
    RETURN_IF_ERROR(file.read_at(at, piece));
    hash->update(piece);
  }
  return hash->finish();
}

}  // namespace stoker
