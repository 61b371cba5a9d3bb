#include "base/hashes/file_hash.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <openssl/evp.h>
#define XXH_INLINE_ALL  // header-only
#include <xxhash.h>

#include "base/hash.h"

namespace stoker {

namespace {

// OpenSSL's name of the hash.
std::string openssl_name(std::string_view name) {
  if (name == "blake2b") return "blake2b512";
  if (name == "blake2s") return "blake2s256";
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

// A library context that ignores openssl.cnf: a FIPS configuration has no MD5, which DVC uses.
OSSL_LIB_CTX* own_library() {
  static OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
  return library;
}

struct Free {
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
};

}  // namespace

struct FileHash::State {
  std::optional<XXH64_state_t> xxh64;
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
    STOKER_CHECK(XXH64_reset(&state->xxh64.emplace(), 0) == XXH_OK);
    return FileHash(std::move(state));
  }
  const std::unique_ptr<EVP_MD, Free> algorithm(
      EVP_MD_fetch(own_library(), openssl_name(name).c_str(), nullptr));
  const bool has_length = algorithm && (EVP_MD_get_flags(algorithm.get()) & EVP_MD_FLAG_XOF) == 0;
  if (!has_length) return std::nullopt;
  state->context = EVP_MD_CTX_new();
  if (!state->context || EVP_DigestInit_ex(state->context, algorithm.get(), nullptr) != 1)
    return std::nullopt;
  return FileHash(std::move(state));
}

void FileHash::update(std::span<const std::byte> bytes) {
  if (state_->xxh64) {
    STOKER_CHECK(XXH64_update(&*state_->xxh64, bytes.data(), bytes.size()) == XXH_OK);
  } else {
    STOKER_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
  }
}

std::string FileHash::finish() {
  if (state_->xxh64) return format("{:016x}", XXH64_digest(&*state_->xxh64));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  STOKER_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += format("{:02x}", static_cast<unsigned>(digest[i]));
  return text;
}

Result<std::string> hash_file(const Path& path, std::string_view name, const Progress& progress) {
  constexpr std::uint64_t kPiece = 1u << 20;
  std::optional<FileHash> hash = FileHash::make(name);
  STOKER_CHECK(hash.has_value());
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::vector<std::byte> buffer(std::min(kPiece, size));
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while reading", path);
    const auto piece = std::span(buffer).first(std::min(kPiece, size - at));
    STOKER_RETURN_IF_ERROR(file.read_at(at, piece));
    hash->update(piece);
  }
  return hash->finish();
}

}  // namespace stoker
