// The files of a source: a folder, a list of paths, or an archive presented as folders. Created and listed by
// one thread, read by many. Blocks on the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Maximum path length in bytes on Linux.
inline constexpr std::uint64_t kPathLimit = 4096;

/// A process-wide unique id: thread-local caches belong to one tree.
std::uint64_t next_tree_id();

/// The bytes of one file. Reuses its memory without clearing it.
class FileBytes {
 public:
  /// Makes space for `size` bytes of unspecified content.
  std::span<std::byte> resize(std::size_t size);
  void shrink(std::size_t size) { size_ = size; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }
  /// Bytes of allocated memory.
  std::size_t capacity() const { return capacity_; }
  /// Copies bytes.
  void assign(std::span<const std::byte> bytes);

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// The entries of one folder, sorted by name.
struct Listing {
  std::vector<SourceFile> files;
  std::vector<std::string> folders;
  std::vector<LeftOut> left_out;

  void sort();
};

class SourceTree {
 public:
  virtual ~SourceTree() = default;

  /// The entries of `folder`, a path from the root; "" is the root.
  virtual Result<Listing> list(const std::string& folder) const = 0;
  /// Reads the whole file. Unavailable if it has changed since it was listed, Corrupt if an archive's member
  /// is damaged.
  virtual Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const = 0;
  /// Whether read_part() works: compressed members can only be read whole.
  virtual bool has_parts(const SourceFile&) const { return true; }
  virtual Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                           std::span<std::byte> out) const = 0;
  /// A path for messages: "photos/cat/1.jpg", "photos.tar: cat/1.jpg".
  virtual std::string display_path(std::string_view path) const = 0;
  /// One sentence about an unexpected structure of the source, for PackSource::notes; else empty.
  virtual std::string note() const { return {}; }
};

/// `folder`/`name`, or `name` at the root.
std::string child(std::string_view folder, std::string_view name);

/// Modification time in ns: an archive's members have it as their `modified_ns`. For a folder (Zarr) a hash
/// of names, sizes and times of all files below. 0 for a missing path.
std::int64_t modification_stamp(const Path& path);

/// Why a name cannot be stored in shards, or "": not UTF-8, or a control character, which archive members
/// must not have.
std::string_view unusable_name_reason(std::string_view name);

/// Adds a file to a listing, or leaves it out by its name: hidden, unusable, without an extension.
void add_file(Listing& listing, std::string_view folder, SourceFile file);

/// Folders of an archive or a list of paths.
class VirtualFolders {
 public:
  /// REQUIRES: a path without "", "." and ".." parts.
  void add(std::string_view path, SourceFile file);
  /// Leaves out a path that is unsafe or not a regular file.
  void leave_out(std::string_view path, std::string_view reason, std::string_view detail);
  void sort();
  /// The file of the path, or null. REQUIRES: sort().
  const SourceFile* find(std::string_view path) const;
  /// A duplicate path. REQUIRES: sort().
  std::optional<std::string> duplicate() const;
  Result<Listing> list(const std::string& folder) const;

 private:
  Listing& folder(std::string_view path);
  std::map<std::string, Listing, std::less<>> folders_;
};

}  // namespace stoker::sources
