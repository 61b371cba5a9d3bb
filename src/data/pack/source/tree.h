// Where the files of a source lie: a folder, some paths, or an archive that looks like a folder. Made and
// listed by one thread, read by many. Blocks on the storage.
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

#include "base/progress.h"
#include "base/status.h"
#include "data/pack/source.h"

namespace stoker::data {

/// A path's bytes at most, as Linux has it.
inline constexpr std::uint64_t kPathLimit = 4096;

/// A number that no other tree of this process has: what a thread keeps open belongs to one.
std::uint64_t next_tree();

/// The bytes of one file. Keeps its memory from file to file and never clears it.
class FileBytes {
 public:
  /// Room for `size` bytes of unspecified content.
  std::span<std::byte> resize(std::size_t size);
  void shrink(std::size_t size) { size_ = size; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }
  /// Bytes of memory that it keeps.
  std::size_t capacity() const { return capacity_; }
  /// Takes over bytes that were made elsewhere.
  void assign(std::span<const std::byte> bytes);

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// What one folder holds, names sorted.
struct Listing {
  std::vector<SourceFile> files;
  std::vector<std::string> folders;
  std::vector<LeftOut> left_out;

  void sort();
};

class SourceTree {
 public:
  virtual ~SourceTree() = default;

  /// What lies in `folder`, a path from the root; "" is the root.
  virtual Result<Listing> list(const std::string& folder) const = 0;
  /// The whole file. Unavailable if it has changed since it was listed, Corrupt if an archive's copy is
  /// damaged.
  virtual Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const = 0;
  /// Whether read_part works for it: a file that was compressed can only be had whole.
  virtual bool has_parts(const SourceFile&) const { return true; }
  virtual Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                           std::span<std::byte> out) const = 0;
  /// A path from the root as messages show it: "photos/cat/1.jpg", "photos.tar: cat/1.jpg".
  virtual std::string shown(std::string_view path) const = 0;
};

/// `folder`/`name`, or `name` at the root.
std::string child(std::string_view folder, std::string_view name);
/// Whether a folder of that name is a split, in any case of letters: train, val, test, valid, validation.
bool is_split_name(std::string_view name);

/// When a file was last written to, in ns: an archive's members have it as their `modified_ns`. Of a folder,
/// as Zarr has them, a number that is another one when any file below has another name, size or time. 0 where
/// there is nothing.
std::int64_t stamp_of(const Path& path);

/// Why a name cannot stand in shards, or "": it is no UTF-8, or holds a control character, for which
/// archives' members are refused.
std::string_view why_unusable(std::string_view name);

/// Adds an entry that is no folder to a listing, or leaves it out by its name: hidden, unusable, without an
/// extension.
void add_file(Listing& listing, std::string_view folder, SourceFile file);

/// A folder on disk. Entries are looked at in the order of their inodes, which spares the disk's arm.
std::unique_ptr<SourceTree> folder_tree(std::string root, std::shared_ptr<Pace> pace, Progress* progress);

/// Folders that exist only as names.
class VirtualFolders {
 public:
  /// REQUIRES: a path without "", "." and ".." parts.
  void add(std::string_view path, SourceFile file);
  /// A path that is no regular file, or not to be trusted.
  void leave_out(std::string_view path, std::string_view reason, std::string_view detail);
  void sort();
  /// After sort(): the file of that path, or null.
  const SourceFile* find(std::string_view path) const;
  /// After sort(): a path that was added twice.
  std::optional<std::string> duplicate() const;
  Result<Listing> list(const std::string& folder) const;

 private:
  Listing& folder(std::string_view path);
  std::map<std::string, Listing, std::less<>> folders_;
};

/// Paths, one a line or separated by NUL bytes, as a tree below the deepest folder that holds all of them.
Result<std::unique_ptr<SourceTree>> paths_tree(std::string_view text, std::string_view subject,
                                               std::shared_ptr<Pace> pace, Progress& progress);

/// Whether the file begins as a tar or zip archive does, or as one that is packed as a whole: by gzip or
/// zstd, or by what is not read.
enum class Archive { none, tar, zip, packed, compressed };
Result<Archive> archive_kind(const Path& file);
/// A packed one is expanded first, in the folder `scratch`.
Result<std::unique_ptr<SourceTree>> tar_tree(const Path& file, const Path& scratch, Progress& progress);
Result<std::unique_ptr<SourceTree>> zip_tree(const Path& file, Progress& progress);

/// A source whose samples, labels and splits a CSV, TSV or Parquet file names.
Result<Source> list_from_table(const SourceOptions& options, std::shared_ptr<Pace> pace, Progress& progress);
/// Whether the source is a dataset, a folder of other tools' shards (tar by WebDataset's rules, TFRecord,
/// Parquet), or one file of records or rows. Such shards have no folders and no images beside them.
Result<bool> is_source_of_shards(const SourceOptions& options);
/// The samples, keys, labels and splits of such a source, all of them whatever `layout` says. REQUIRES:
/// is_source_of_shards(), and a scratch folder.
Result<Source> list_from_shards(const SourceOptions& options, std::shared_ptr<Pace> pace, Progress& progress);
/// A source whose samples, labels and splits its folders give.
Result<Source> list_by_folders(std::unique_ptr<SourceTree> tree, const SourceOptions& options,
                               const Progress& progress);
/// Divides the one split of a source, class by class, by a hash of seed and key.
Status divide(Source& source, const SourceOptions& options);

}  // namespace stoker::data
