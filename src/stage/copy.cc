#include "stage/copy.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "stage/archive.h"
#include "stage/list_tree.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

constexpr std::size_t kCopyPiece = 4u << 20;

enum class Changes { refused, accepted };

// The files of a list, as a source of entries.
class CopyTree final : public EntrySource {
 public:
  // `name`: name in the target folder.
  CopyTree(Path source, std::string name, Changes changes, Progress& progress)
      : source_(std::move(source)), name_(std::move(name)), changes_(changes), progress_(progress) {}

  Result<std::vector<ArchiveEntry>> list() override { return list_tree(source_, name_, progress_); }

  Status read(const ArchiveEntry& entry, const ByteSink& piece) const override {
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(source_of(entry, source_, name_)));
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      STOKER_RETURN_IF_ERROR(file.read_at(done, part));
      STOKER_RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    return changes_ == Changes::accepted ? Status() : check_unchanged(file, entry);
  }

 private:
  const Path source_;
  const std::string name_;
  const Changes changes_;
  Progress& progress_;
};

// Ensures that everything written below `folder` is on its disk or file server.
Status sync_filesystem(const Path& folder) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0) return posix_error(folder.string(), errno);
  return {};
}

// Uses the protocol in write.cc.
Result<TransferStats> copy(const Path& source, const Path& target, Changes changes, Progress& progress) {
  const Path folder = target.parent_path();
  const std::string name = target.filename().string();
  STOKER_ASSIGN_OR_RETURN(pending, PendingFolder::create(folder));
  CopyTree tree(source, name, changes, progress);
  STOKER_ASSIGN_OR_RETURN(entries, tree.list());
  STOKER_RETURN_IF_ERROR(check_free_space(printable(name), space_needed(entries), folder));
  STOKER_ASSIGN_OR_RETURN(stats, write_entries(tree, entries, pending.path(), 0, progress));
  if (changes == Changes::accepted) STOKER_RETURN_IF_ERROR(sync_filesystem(pending.path()));
  STOKER_RETURN_IF_ERROR(std::move(pending).publish());
  return stats;
}

}  // namespace

Path without_slash(const Path& path) { return (path / "").lexically_normal().parent_path(); }

Result<TransferStats> copy_in(const Path& source, const Path& folder, Progress& progress) {
  const Path clean = without_slash(source);
  return copy(clean, folder / clean.filename(), Changes::refused, progress);
}

Result<TransferStats> copy_out(const Path& source, const Path& target, Progress& progress) {
  STOKER_RETURN_IF_ERROR(make_directories(target.parent_path()));
  return copy(source, target, Changes::accepted, progress);
}

}  // namespace stoker::stage
