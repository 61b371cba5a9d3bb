// The files of a Zarr store: those of a folder, or the stored members of a zip archive (zarr-python's
// ZipStore). Used by whatever reads arrays. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/chunked/shard_file.h"

namespace stoker::formats {

class ZarrFiles {
 public:
  /// One file of the store.
  struct Piece {
    std::shared_ptr<const File> file;  ///< shared: an archive's is that of all its members
    std::uint64_t begin = 0;           ///< in the file
    std::uint64_t bytes = 0;

    /// REQUIRES: offset + out.size() <= bytes.
    Status read_at(std::uint64_t offset, std::span<std::byte> out) const {
      return file->read_at(begin + offset, out);
    }
  };

  /// A file is taken for an archive. Corrupt as ZipReader::open().
  static Result<std::shared_ptr<const ZarrFiles>> open(const Path& store);
  virtual ~ZarrFiles() = default;

  /// Nothing if there is none. Invalid for a member that the archive compresses.
  virtual Result<std::optional<Piece>> open_file(const std::string& key) const = 0;
  virtual bool has(const std::string& key) const = 0;
  /// Where a file lies among all files of the store, one behind another as ShardFile reads them; of an
  /// archive, whose pieces lie in its one file, 0. REQUIRES: open_file() gives it.
  virtual std::uint64_t base(const std::string& key) const = 0;
  /// What ShardFile reads, empty for an archive.
  virtual Result<std::vector<ShardPart>> parts() const = 0;
  /// The names of the folders in a folder, sorted.
  virtual Result<std::vector<std::string>> folders(const std::string& folder) const = 0;

  /// The whole text of a metadata file, up to 64 MiB.
  Result<std::optional<std::string>> text(const std::string& key) const;
  /// What messages call it.
  Path name(const std::string& key) const { return key.empty() ? store_ : store_ / key; }

 protected:
  explicit ZarrFiles(Path store) : store_(std::move(store)) {}
  const Path& store() const { return store_; }

 private:
  Path store_;
};

}  // namespace stoker::formats
