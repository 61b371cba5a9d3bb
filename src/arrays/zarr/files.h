// The files of a Zarr store: of a folder, or the uncompressed members of a zip archive (zarr-python's
// ZipStore). Used by array readers. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "codec/chunks/shard_file.h"
#include "stoker/status.h"

namespace stoker::arrays {

class ZarrFiles {
 public:
  /// One file of the store.
  struct Piece {
    std::shared_ptr<const File> file;  ///< shared by all members of an archive
    std::uint64_t begin = 0;           ///< in the file
    std::uint64_t bytes = 0;

    /// REQUIRES: offset + out.size() <= bytes.
    Status read_at(std::uint64_t offset, std::span<std::byte> out) const {
      return file->read_at(begin + offset, out);
    }
  };

  /// A file is opened as an archive. Corrupt as ZipReader::open().
  static Result<std::shared_ptr<const ZarrFiles>> open(const Path& store);
  virtual ~ZarrFiles() = default;

  /// Nothing if the file does not exist. Invalid for a compressed member of an archive.
  virtual Result<std::optional<Piece>> open_file(const std::string& key) const = 0;
  virtual bool has(const std::string& key) const = 0;
  /// The offset of a file among the concatenated files of the store, as read by ShardFile; 0 for an archive.
  /// REQUIRES: open_file() found it.
  virtual std::uint64_t base(const std::string& key) const = 0;
  /// The files for ShardFile, empty for an archive.
  virtual Result<std::vector<codec::ShardPart>> parts() const = 0;
  /// The names of the folders in a folder, sorted.
  virtual Result<std::vector<std::string>> folders(const std::string& folder) const = 0;

  /// The whole text of a metadata file, up to 64 MiB.
  Result<std::optional<std::string>> text(const std::string& key) const;
  /// The path for messages.
  Path name(const std::string& key) const { return key.empty() ? store_ : store_ / key; }

 protected:
  explicit ZarrFiles(Path store) : store_(std::move(store)) {}
  const Path& store() const { return store_; }

 private:
  Path store_;
};

}  // namespace stoker::arrays
