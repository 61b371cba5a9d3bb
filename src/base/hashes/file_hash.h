// Hashes by which others name or check their files: compared with, never what anything of ours is named by.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"

namespace stoker {

class FileHash {
 public:
  /// By Python's name: md5, sha1, sha224 to sha512, sha3_256, blake2b, ..., xxh64. Nothing for one that is
  /// not known here. What this machine's OpenSSL is told to allow does not matter.
  static std::optional<FileHash> make(std::string_view name);
  FileHash(FileHash&&) noexcept;
  FileHash& operator=(FileHash&&) noexcept;
  ~FileHash();

  void update(std::span<const std::byte> bytes);
  /// Of all that was given, in lower-case hexadecimal digits. Nothing may be added after it.
  std::string finish();

 private:
  struct State;
  explicit FileHash(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// That of a whole file. REQUIRES: a name that FileHash::make() knows. Blocks; Cancelled when `progress` says
/// stop.
Result<std::string> hash_file(const Path& file, std::string_view name, const Progress& progress);

}  // namespace stoker
