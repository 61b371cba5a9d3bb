#include "arrays/zarr/files.h"

#include <map>
#include <set>

#include "archive/zip.h"
#include "base/thread.h"

namespace stoker::arrays {

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
    STOKER_ASSIGN_OR_RETURN(size, opened->size());
    return std::optional(Piece{std::make_shared<const File>(std::move(*opened)), 0, size});
  }

  bool has(const std::string& key) const override { return path_exists(name(key)); }

  std::uint64_t base(const std::string& key) const override {
    MutexLock lock(mutex_);
    list();
    const auto found = bases_.find(key);
    return found == bases_.end() ? kNowhere : found->second;
  }

  Result<std::vector<codec::ShardPart>> parts() const override {
    MutexLock lock(mutex_);
    list();
    return parts_;
  }

  Result<std::vector<std::string>> folders(const std::string& folder) const override {
    STOKER_ASSIGN_OR_RETURN(names, list_directory(name(folder)));
    std::erase_if(names, [&](const std::string& entry) { return !folder_exists(name(folder) / entry); });
    return std::move(names);
  }

 private:
  // Beyond the end: a file added after the listing.
  static constexpr std::uint64_t kNowhere = std::uint64_t{1} << 62;

  // Lists the files once.
  void list() const STOKER_REQUIRES_LOCK(mutex_) {
    if (is_listed_) return;
    is_listed_ = true;
    parts_ = codec::list_parts(store());
    if (!parts_.ok()) return;
    std::uint64_t base = 0;
    for (const codec::ShardPart& part : *parts_) {
      bases_[part.file] = base;
      base += part.bytes;
    }
  }

  mutable Mutex mutex_;
  mutable bool is_listed_ STOKER_GUARDED_BY(mutex_) = false;
  mutable Result<std::vector<codec::ShardPart>> parts_ STOKER_GUARDED_BY(mutex_) =
      std::vector<codec::ShardPart>();
  mutable std::map<std::string, std::uint64_t> bases_ STOKER_GUARDED_BY(mutex_);
};

class ZippedFiles final : public ZarrFiles {
 public:
  ZippedFiles(const Path& store, std::shared_ptr<const File> file, archive::ZipReader zip)
      : ZarrFiles(store), file_(std::move(file)), zip_(std::move(zip)) {
    for (const archive::ZipMember& member : zip_.members()) {
      if (!member.is_folder()) members_[member.name] = &member;
    }
  }

  Result<std::optional<Piece>> open_file(const std::string& key) const override {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::optional<Piece>();
    const archive::ZipMember& member = *found->second;
    if (member.method != 0 || member.is_encrypted) {
      return invalid(
          "{}: member '{}' is compressed by the archive, which is not supported (only stored ones are)",
          store(), printable(key));
    }
    STOKER_ASSIGN_OR_RETURN(begin, zip_.data_offset(member));
    return std::optional(Piece{file_, begin, member.bytes});
  }

  bool has(const std::string& key) const override { return members_.contains(key); }
  std::uint64_t base(const std::string& /*key*/) const override { return 0; }
  Result<std::vector<codec::ShardPart>> parts() const override { return std::vector<codec::ShardPart>(); }

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
  std::shared_ptr<const File> file_;  // shared with its pieces
  archive::ZipReader zip_;
  std::map<std::string, const archive::ZipMember*> members_;  // views zip_
};

}  // namespace

Result<std::shared_ptr<const ZarrFiles>> ZarrFiles::open(const Path& store) {
  if (folder_exists(store) || !path_exists(store))
    return std::shared_ptr<const ZarrFiles>(std::make_shared<FolderFiles>(store));
  STOKER_ASSIGN_OR_RETURN(opened, archive::open_zip_file(store));
  return std::shared_ptr<const ZarrFiles>(
      std::make_shared<ZippedFiles>(store, std::move(opened.file), std::move(opened.zip)));
}

Result<std::optional<std::string>> ZarrFiles::text(const std::string& key) const {
  STOKER_ASSIGN_OR_RETURN(piece, open_file(key));
  if (!piece) return std::optional<std::string>();
  if (piece->bytes > kTextLimit.value) return invalid("{}: larger than {}", name(key), kTextLimit);
  std::string text(piece->bytes, '\0');
  STOKER_RETURN_IF_ERROR(piece->read_at(0, std::as_writable_bytes(std::span(text))));
  return std::optional(std::move(text));
}

}  // namespace stoker::arrays
