#include "stage/copy.h"

#include "base/file.h"
#include "stage/archive.h"
#include "stage/list_tree.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

constexpr std::size_t kCopyPiece = 4u << 20;

// The files of a list, as a source of entries.
class CopyTree final : public EntrySource {
 public:
  // `name`: name in the target folder.
  CopyTree(Path source, std::string name, Progress& progress)
      : source_(std::move(source)), name_(std::move(name)), progress_(progress) {}

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
    return check_unchanged(file, entry);
  }

 private:
  const Path source_;
  const std::string name_;
  Progress& progress_;
};

}  // namespace

Path without_slash(const Path& path) { return (path / "").lexically_normal().parent_path(); }

// Uses the protocol in write.cc.
Result<TransferStats> copy_in(const Path& source, const Path& folder, Progress& progress) {
  const Path clean = without_slash(source);
  const std::string name = clean.filename().string();
  STOKER_ASSIGN_OR_RETURN(pending, PendingFolder::create(folder));
  CopyTree tree(clean, name, progress);
  STOKER_ASSIGN_OR_RETURN(entries, tree.list());
  STOKER_RETURN_IF_ERROR(check_free_space(printable(name), space_needed(entries), folder));
  STOKER_ASSIGN_OR_RETURN(stats, write_entries(tree, entries, pending.path(), 0, progress));
  STOKER_RETURN_IF_ERROR(std::move(pending).publish());
  return stats;
}

}  // namespace stoker::stage
