// Hashes of third-party formats, for verification only. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker {

class FileHash {
 public:
  /// A hash by its Python name: md5, sha1, sha224 to sha512, sha3_256, blake2b, ..., xxh64. Nullopt for an
  /// unknown name. Independent of the system's OpenSSL configuration.
  static std::optional<FileHash> make(std::string_view name);
  FileHash(FileHash&&) noexcept;
  FileHash& operator=(FileHash&&) noexcept;
  ~FileHash();

  void update(std::span<const std::byte> bytes);
  /// Hash of all updates, in lower-case hexadecimal. No update may follow.
  std::string finish();

 private:
  struct State;
  explicit FileHash(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Hash of a whole file. REQUIRES: a name that FileHash::make() knows. Blocks. Cancelled if `progress`
/// requests a stop.
Result<std::string> hash_file(const Path& file, std::string_view name, const Progress& progress);

}  // namespace stoker
