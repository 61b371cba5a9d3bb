#include "stage/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "stage/archive.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyPiece = 4u << 20;
constexpr int kDeepest = 256;

enum class Changes { refused, accepted };

// A file, or a folder with all in it, as something to write elsewhere.
class Tree final : public Archive {
 public:
  // `name`: what it is called where it is written.
  Tree(Path source, std::string name, Changes changes, Progress& progress)
      : source_(std::move(source)), name_(std::move(name)), changes_(changes), progress_(progress) {}

  Result<std::vector<Entry>> list() override {
    std::vector<Entry> entries;
    RETURN_IF_ERROR(add(name_, 0, entries));
    return entries;
  }

  Status read(const Entry& entry, const Piece& piece) const override {
    const Path path = place_of(entry.name);
    OK_OR_RETURN(file, File::open_read(path));
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      RETURN_IF_ERROR(file.read_at(done, part));
      RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    struct stat now{};
    if (::fstat(file.fd(), &now) != 0) return posix_error(path.string(), errno);
    const bool is_same =
        static_cast<std::uint64_t>(now.st_size) == entry.bytes && now.st_mtim.tv_sec == entry.mtime;
    if (is_same || changes_ == Changes::accepted) return {};
    return unavailable("{}: was changed while it was copied", path);
  }

 private:
  Status add(const std::string& name, int depth, std::vector<Entry>& entries) {
    const Path path = place_of(name);
    if (progress_.stop_requested()) return cancelled("stage: interrupted");
    if (depth > kDeepest) return invalid("{}: lies more than {} folders deep", path, kDeepest);
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return posix_error(path.string(), errno);
    Entry entry{.name = name};
    entry.mode = info.st_mode & 07777;
    entry.mtime = info.st_mtim.tv_sec;
    if (S_ISREG(info.st_mode)) {
      entry.bytes = static_cast<std::uint64_t>(info.st_size);
    } else if (S_ISDIR(info.st_mode)) {
      entry.kind = Kind::folder;
    } else if (S_ISLNK(info.st_mode)) {
      entry.kind = Kind::symbolic_link;
      std::error_code error;
      entry.link = fs::read_symlink(path, error).string();
      if (error) return posix_error(path.string(), error.value());
    } else {
      return {};
    }
    const bool is_folder = entry.kind == Kind::folder;
    entries.push_back(std::move(entry));
    if (!is_folder) return {};
    OK_OR_RETURN(names, list_directory(path));
    for (const std::string& each : names) RETURN_IF_ERROR(add(name + "/" + each, depth + 1, entries));
    return {};
  }

  Path place_of(const std::string& name) const {
    return name.size() == name_.size() ? source_ : source_ / name.substr(name_.size() + 1);
  }

  const Path source_;
  const std::string name_;
  const Changes changes_;
  Progress& progress_;
};

// What was written below it has reached the disk, or the server, that `folder` is on.
Status reach_disk(const Path& folder) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0) return posix_error(folder.string(), errno);
  return {};
}

// By the protocol of write.cc.
Result<Moved> copy(const Path& source, const Path& target, Changes changes, Progress& progress) {
  const Path folder = target.parent_path();
  const std::string name = target.filename().string();
  OK_OR_RETURN(pending, Pending::create(folder));
  Tree tree(source, name, changes, progress);
  OK_OR_RETURN(entries, tree.list());
  RETURN_IF_ERROR(check_room(printable(name), need_of(entries), folder));
  OK_OR_RETURN(moved, write_entries(tree, entries, pending.path(), 0, progress));
  if (changes == Changes::accepted) RETURN_IF_ERROR(reach_disk(pending.path()));
  RETURN_IF_ERROR(std::move(pending).publish());
  return moved;
}

}  // namespace

Result<Moved> copy_in(const Path& source, const Path& folder, Progress& progress) {
  // "data/" is named as "data" is.
  const Path clean = (source / "").lexically_normal().parent_path();
  return copy(clean, folder / clean.filename(), Changes::refused, progress);
}

Result<Moved> copy_back(const Path& source, const Path& target, Progress& progress) {
  RETURN_IF_ERROR(make_directories(target.parent_path()));
  return copy(source, target, Changes::accepted, progress);
}

}  // namespace stoker::stage
