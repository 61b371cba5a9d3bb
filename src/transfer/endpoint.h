// One side of a transfer: a folder on this machine, or one on a host that ssh reaches. `stoker data push` and
// `pull` copy from one to the other. An object belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "dataset/manifest.h"
#include "stoker/status.h"

namespace stoker::transfer {

/// Files are copied and compared in blocks of this size, the last one shorter.
inline constexpr std::uint64_t kBlock = dataset::kHashBlock;

/// What is at a path.
enum class PathState {
  absent,
  empty,    ///< a folder without files
  dataset,  ///< a folder with a manifest
  folder,   ///< a folder with other files
  other,    ///< a file, or a link that leads nowhere
};

/// A path of an endpoint, and the space beside it.
struct PathFacts {
  std::string path;  ///< absolute; links to a folder are resolved
  PathState state = PathState::absent;
  bool is_writable = false;  ///< a folder can be created beside it
  std::uint64_t free_bytes = 0;
  std::optional<std::uint64_t> free_files;  ///< nullopt: no limit of inodes
  std::string bytes_limited_by;             ///< "on the disk" or "of your quota"
  std::string files_limited_by;
  std::string quota_error;  ///< why a quota is unknown
};

/// Blocks of a file.
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual Result<PathFacts> look(const std::string& path) = 0;
  /// Bytes of files; nullopt for a path that is not a file.
  virtual Result<std::vector<std::optional<std::uint64_t>>> sizes(const std::vector<std::string>& files) = 0;
  /// Number of entries of a folder.
  virtual Result<std::uint64_t> entries(const std::string& folder) = 0;
  /// Creates the folder with its parents.
  virtual Status make_folder(const std::string& folder) = 0;
  /// Writes a block, at most kBlock bytes. The file is created if it is missing. May return before the block
  /// is written: the error then comes from the next call.
  virtual Status put(const std::string& file, std::uint64_t block, std::string_view bytes) = 0;
  /// SHA-256 of each block, as stored.
  virtual Result<std::vector<Digest>> hashes(const std::string& file, BlockRange range) = 0;
  /// The `bytes` bytes at the start of a block, at most kBlock.
  virtual Result<std::string> get(const std::string& file, std::uint64_t block, std::uint64_t bytes) = 0;
  /// Writes all files of `pending` to the disk and renames it to `path`, where nothing or an empty folder is.
  /// With `aside`, first renames what is at `path` to that. Exists if something else appeared at `path`.
  virtual Status publish(const std::string& pending, const std::string& path, const std::string& aside) = 0;
  /// What computes the hashes: "stoker 0.1.0", "sha256sum".
  virtual std::string hashed_by() const = 0;
};

}  // namespace stoker::transfer
