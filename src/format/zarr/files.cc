#include "format/zarr/files.h"

#include <map>
#include <set>

#include "base/thread.h"
#include "format/zip.h"

namespace stoker::formats {

namespace {

constexpr ByteCount kTextLimit = 64_MiB;

class FolderFiles final : public ZarrFiles {
 public:
  explicit FolderFiles(const Path& store) : ZarrFiles(store) {}

  Result<std::optional<Piece>> open_file(const std::string& key) const override {
    Result<File> opened = File::open_read(name(key));
    if (!opened.ok()) {
      return opened.error().code() == Code::not_found ? Result<std::optional<Piece>>(std::nullopt)
                                                      : opened.error();
    }
    OK_OR_RETURN(size, opened->size());
    return std::optional(Piece{std::make_shared<const File>(std::move(*opened)), 0, size});
  }

  bool has(const std::string& key) const override { return path_exists(name(key)); }

  std::uint64_t base(const std::string& key) const override {
    MutexLock lock(mutex_);
    list();
    const auto found = bases_.find(key);
    return found == bases_.end() ? kNowhere : found->second;
  }

  Result<std::vector<ShardPart>> parts() const override {
    MutexLock lock(mutex_);
    list();
    return parts_;
  }

  Result<std::vector<std::string>> folders(const std::string& folder) const override {
    OK_OR_RETURN(names, list_directory(name(folder)));
    std::erase_if(names, [&](const std::string& entry) { return !folder_exists(name(folder) / entry); });
    return std::move(names);
  }

 private:
  // A file that came later: beyond the end of all.
  static constexpr std::uint64_t kNowhere = std::uint64_t{1} << 62;

  // Once: the files as they were then.
  void list() const REQUIRES_LOCK(mutex_) {
    if (is_listed_) return;
    is_listed_ = true;
    parts_ = list_parts(store());
    if (!parts_.ok()) return;
    std::uint64_t base = 0;
    for (const ShardPart& part : *parts_) {
      bases_[part.file] = base;
      base += part.bytes;
    }
  }

  mutable Mutex mutex_;
  mutable bool is_listed_ GUARDED_BY(mutex_) = false;
  mutable Result<std::vector<ShardPart>> parts_ GUARDED_BY(mutex_) = std::vector<ShardPart>();
  mutable std::map<std::string, std::uint64_t> bases_ GUARDED_BY(mutex_);
};

class ZippedFiles final : public ZarrFiles {
 public:
  ZippedFiles(const Path& store, std::shared_ptr<const File> file, ZipReader zip)
      : ZarrFiles(store), file_(std::move(file)), zip_(std::move(zip)) {
    for (const ZipMember& member : zip_.members()) {
      if (!member.is_folder()) members_[member.name] = &member;
    }
  }

  Result<std::optional<Piece>> open_file(const std::string& key) const override {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::optional<Piece>();
    const ZipMember& member = *found->second;
    if (member.method != 0 || member.is_encrypted) {
      return invalid("{}: member '{}' is compressed by the archive, which is not read (only stored ones are)",
                     store(), printable(key));
    }
    OK_OR_RETURN(begin, zip_.data_offset(member));
    return std::optional(Piece{file_, begin, member.bytes});
  }

  bool has(const std::string& key) const override { return members_.contains(key); }
  std::uint64_t base(const std::string& /*key*/) const override { return 0; }
  Result<std::vector<ShardPart>> parts() const override { return std::vector<ShardPart>(); }

  Result<std::vector<std::string>> folders(const std::string& folder) const override {
    const std::string prefix = folder.empty() ? "" : folder + "/";
    std::set<std::string> names;
    for (auto at = members_.lower_bound(prefix); at != members_.end() && at->first.starts_with(prefix);
         ++at) {
      const std::string_view rest = std::string_view(at->first).substr(prefix.size());
      const std::size_t slash = rest.find('/');
      if (slash != std::string_view::npos) names.emplace(rest.substr(0, slash));
    }
    return std::vector<std::string>(names.begin(), names.end());
  }

 private:
  std::shared_ptr<const File> file_;  // shared with the pieces of it
  ZipReader zip_;
  std::map<std::string, const ZipMember*> members_;  // views zip_
};

}  // namespace

Result<std::shared_ptr<const ZarrFiles>> ZarrFiles::open(const Path& store) {
  if (folder_exists(store) || !path_exists(store))
    return std::shared_ptr<const ZarrFiles>(std::make_shared<FolderFiles>(store));
  OK_OR_RETURN(opened, File::open_read(store));
  OK_OR_RETURN(size, opened.size());
  const auto file = std::make_shared<const File>(std::move(opened));
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    return file->read_at(offset, out);
  };
  OK_OR_RETURN(zip, ZipReader::open(read, size, printable(store.string())));
  return std::shared_ptr<const ZarrFiles>(std::make_shared<ZippedFiles>(store, file, std::move(zip)));
}

Result<std::optional<std::string>> ZarrFiles::text(const std::string& key) const {
  OK_OR_RETURN(piece, open_file(key));
  if (!piece) return std::optional<std::string>();
  if (piece->bytes > kTextLimit.value) return invalid("{}: larger than {}", name(key), kTextLimit);
  std::string text(piece->bytes, '\0');
  RETURN_IF_ERROR(piece->read_at(0, std::as_writable_bytes(std::span(text))));
  return std::optional(std::move(text));
}

}  // namespace stoker::formats
