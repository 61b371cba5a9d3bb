#include "stage/archive.h"

#include <fcntl.h>
#include <optional>

#include "archive/decompress_file.h"
#include "archive/detect_archive.h"
#include "archive/tar.h"
#include "archive/zip.h"
#include "base/thread.h"

namespace stoker::stage {
namespace {

constexpr std::size_t kPiece = 1u << 20;
// Members of a zip are read as a whole.
constexpr ByteCount kLargestZipMember = 4_GiB;
// Larger members are read one at a time, since many threads may read concurrently.
constexpr std::uint64_t kLargeZipMember = 128u << 20;
constexpr std::size_t kMaxMembers = 20'000'000;

archive::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

Status too_many(const std::string& subject) {
  return invalid("{}: more than {} members", subject, grouped(kMaxMembers));
}

class Tar final : public EntrySource {
 public:
  Tar(File file, std::string subject) : file_(std::move(file)), subject_(std::move(subject)) {}

  Result<std::vector<ArchiveEntry>> list() override {
    STOKER_ASSIGN_OR_RETURN(size, file_.size());
    archive::TarReader reader(reader_of(file_), size, subject_);
    std::vector<ArchiveEntry> entries;
    for (;;) {
      STOKER_ASSIGN_OR_RETURN(member, reader.next());
      if (!member) break;
      STOKER_ASSIGN_OR_RETURN(entry, entry_of(*member));
      if (!entry.name.empty()) entries.push_back(std::move(entry));
      if (entries.size() > kMaxMembers) return too_many(subject_);
    }
    if (!reader.has_end_mark())
      return corrupt("{}: has no end-of-archive marker: its last members may be missing", subject_);
    return entries;
  }

  Status read(const ArchiveEntry& entry, const ByteSink& piece) const override {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      STOKER_RETURN_IF_ERROR(file_.read_at(entry.data_position + done, part));
      STOKER_RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    return {};
  }

 private:
  Result<ArchiveEntry> entry_of(const archive::TarMember& member) const {
    using archive::TarKind;
    STOKER_ASSIGN_OR_RETURN(name, clean_name(subject_, member.name));
    ArchiveEntry entry{.name = std::move(name),
                       .bytes = member.size,
                       .data_position = member.data_offset,
                       .link = member.link};
    entry.mode = member.mode;
    entry.mtime = member.mtime;
    switch (member.kind) {
      case TarKind::file:
        return entry;
      case TarKind::directory:
        entry.kind = EntryKind::folder;
        return entry;
      case TarKind::symbolic_link:
        entry.kind = EntryKind::symbolic_link;
        return entry;
      case TarKind::hard_link: {
        entry.kind = EntryKind::hard_link;
        STOKER_ASSIGN_OR_RETURN(target, clean_name(subject_, member.link));
        entry.link = std::move(target);
        return entry;
      }
      default:
        return invalid("{}: member '{}' is a device or a pipe", subject_, printable(member.name));
    }
  }

  File file_;
  std::string subject_;
};

class Zip final : public EntrySource {
 public:
  // The reader keeps a pointer to the file, so the file must stay where it was allocated.
  static Result<std::unique_ptr<EntrySource>> open(File file, std::string subject) {
    auto zip = std::make_unique<Zip>();
    zip->file_ = std::move(file);
    zip->subject_ = std::move(subject);
    STOKER_ASSIGN_OR_RETURN(size, zip->file_.size());
    STOKER_ASSIGN_OR_RETURN(reader, archive::ZipReader::open(reader_of(zip->file_), size, zip->subject_));
    zip->reader_ = std::make_unique<archive::ZipReader>(std::move(reader));
    return std::unique_ptr<EntrySource>(std::move(zip));
  }

  Result<std::vector<ArchiveEntry>> list() override {
    std::vector<ArchiveEntry> entries;
    const auto& members = reader_->members();
    if (members.size() > kMaxMembers) return too_many(subject_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const archive::ZipMember& member = members[i];
      if (!member.is_readable() || member.bytes > kLargestZipMember.value) {
        return invalid("{}: member '{}' is {}", subject_, printable(member.name),
                       member.is_encrypted     ? "encrypted"
                       : !member.is_readable() ? "compressed by a method other than deflate"
                                               : "larger than 4 GiB, which is supported in tar only");
      }
      STOKER_ASSIGN_OR_RETURN(name, clean_name(subject_, member.name));
      ArchiveEntry entry{.name = std::move(name), .bytes = member.bytes, .data_position = i};
      if (member.mode != 0) entry.mode = member.mode;
      if (member.is_folder()) {
        entry.kind = EntryKind::folder;
        entry.mode = member.mode != 0 ? member.mode : 0755;
      }
      if (member.is_symbolic_link) {
        entry.kind = EntryKind::symbolic_link;
        STOKER_RETURN_IF_ERROR(read(entry, [&](std::span<const std::byte> bytes) {
          entry.link.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          return Status();
        }));
      }
      if (!entry.name.empty()) entries.push_back(std::move(entry));
    }
    return entries;
  }

  Status read(const ArchiveEntry& entry, const ByteSink& piece) const override {
    const archive::ZipMember& member = reader_->members().at(entry.data_position);
    std::optional<MutexLock> large_lock;
    if (member.bytes > kLargeZipMember) large_lock.emplace(large_);
    std::vector<std::byte> whole(member.bytes);
    STOKER_RETURN_IF_ERROR(reader_->read(member, whole));
    return piece(whole);
  }

 private:
  File file_;
  std::string subject_;
  std::unique_ptr<archive::ZipReader> reader_;
  mutable Mutex large_;  // held while reading a large member
};

}  // namespace

// Opening a pipe would block.
Status check_is_file(const Path& path) {
  std::error_code error;
  if (!path_exists(path) || std::filesystem::is_regular_file(path, error)) return {};
  return invalid("{}: is not a file and cannot be unpacked (stage.unpack)",
                 printable(path.filename().string()));
}

Result<std::unique_ptr<EntrySource>> open_archive(const Path& path, const Path& scratch, Progress& progress) {
  const std::string subject = printable(path.filename().string());
  STOKER_RETURN_IF_ERROR(check_is_file(path));
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(found, archive::detect_archive(file, subject));
  if (found == archive::ArchiveFormat::zip) return Zip::open(std::move(file), subject);
  STOKER_ASSIGN_OR_RETURN(tar, archive::decompress_file(std::move(file), {scratch, std::nullopt}, progress));
  return std::unique_ptr<EntrySource>(std::make_unique<Tar>(std::move(tar), subject));
}

}  // namespace stoker::stage
