#include "stage/archive.h"

#include <array>
#include <fcntl.h>
#include <optional>

#include "base/thread.h"
#include "format/expanded_file.h"
#include "format/tar.h"
#include "format/zip.h"

namespace stoker::stage {
namespace {

constexpr std::size_t kPiece = 1u << 20;
// Of a zip a member is read whole.
constexpr ByteCount kLargestZipMember = 4_GiB;
// So large ones one after the other: many threads may read at once.
constexpr std::uint64_t kLargeZipMember = 128u << 20;
constexpr std::size_t kMostMembers = 20'000'000;

formats::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

Status too_many(const std::string& subject) {
  return invalid("{}: more than {} members", subject, grouped(kMostMembers));
}

class Tar final : public Archive {
 public:
  Tar(File file, std::string subject) : file_(std::move(file)), subject_(std::move(subject)) {}

  Result<std::vector<Entry>> list() override {
    OK_OR_RETURN(size, file_.size());
    formats::TarReader reader(reader_of(file_), size, subject_);
    std::vector<Entry> entries;
    for (;;) {
      OK_OR_RETURN(member, reader.next());
      if (!member) break;
      OK_OR_RETURN(entry, entry_of(*member));
      if (!entry.name.empty()) entries.push_back(std::move(entry));
      if (entries.size() > kMostMembers) return too_many(subject_);
    }
    if (!reader.ended_cleanly())
      return corrupt("{}: has no end mark: its last members may be missing", subject_);
    return entries;
  }

  Status read(const Entry& entry, const Piece& piece) const override {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      RETURN_IF_ERROR(file_.read_at(entry.place + done, part));
      RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    return {};
  }

 private:
  Result<Entry> entry_of(const formats::TarMember& member) const {
    using formats::TarKind;
    OK_OR_RETURN(name, clean_name(subject_, member.name));
    Entry entry{
        .name = std::move(name), .bytes = member.size, .place = member.data_offset, .link = member.link};
    entry.mode = member.mode;
    entry.mtime = member.mtime;
    switch (member.kind) {
      case TarKind::file:
        return entry;
      case TarKind::directory:
        entry.kind = Kind::folder;
        return entry;
      case TarKind::symbolic_link:
        entry.kind = Kind::symbolic_link;
        return entry;
      case TarKind::hard_link: {
        entry.kind = Kind::hard_link;
        OK_OR_RETURN(target, clean_name(subject_, member.link));
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

class Zip final : public Archive {
 public:
  // Where the reader looks must not move: the file stays where it was allocated.
  static Result<std::unique_ptr<Archive>> open(File file, std::string subject) {
    auto zip = std::make_unique<Zip>();
    zip->file_ = std::move(file);
    zip->subject_ = std::move(subject);
    OK_OR_RETURN(size, zip->file_.size());
    OK_OR_RETURN(reader, formats::ZipReader::open(reader_of(zip->file_), size, zip->subject_));
    zip->reader_ = std::make_unique<formats::ZipReader>(std::move(reader));
    return std::unique_ptr<Archive>(std::move(zip));
  }

  Result<std::vector<Entry>> list() override {
    std::vector<Entry> entries;
    const auto& members = reader_->members();
    if (members.size() > kMostMembers) return too_many(subject_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const formats::ZipMember& member = members[i];
      if (!member.is_readable() || member.bytes > kLargestZipMember.value) {
        return invalid("{}: member '{}' is {}", subject_, printable(member.name),
                       member.is_encrypted     ? "encrypted"
                       : !member.is_readable() ? "packed by another method than deflate"
                                               : "larger than 4 GiB, which is read from tar only");
      }
      OK_OR_RETURN(name, clean_name(subject_, member.name));
      Entry entry{.name = std::move(name), .bytes = member.bytes, .place = i};
      if (member.mode != 0) entry.mode = member.mode;
      if (member.is_folder()) {
        entry.kind = Kind::folder;
        entry.mode = member.mode != 0 ? member.mode : 0755;
      }
      if (member.is_symbolic_link) {
        entry.kind = Kind::symbolic_link;
        RETURN_IF_ERROR(read(entry, [&](std::span<const std::byte> bytes) {
          entry.link.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          return Status();
        }));
      }
      if (!entry.name.empty()) entries.push_back(std::move(entry));
    }
    return entries;
  }

  Status read(const Entry& entry, const Piece& piece) const override {
    const formats::ZipMember& member = reader_->members().at(entry.place);
    std::optional<MutexLock> alone;
    if (member.bytes > kLargeZipMember) alone.emplace(large_);
    std::vector<std::byte> whole(member.bytes);
    RETURN_IF_ERROR(reader_->read(member, whole));
    return piece(whole);
  }

 private:
  File file_;
  std::string subject_;
  std::unique_ptr<formats::ZipReader> reader_;
  mutable Mutex large_;  // held by who reads a large member
};

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(magic);
}

}  // namespace

Result<std::unique_ptr<Archive>> open_archive(const Path& path, const Path& scratch, Progress& progress) {
  const std::string subject = printable(path.filename().string());
  // A pipe would be waited for.
  std::error_code error;
  if (path_exists(path) && !std::filesystem::is_regular_file(path, error))
    return invalid("{}: is no file, so it cannot be unpacked (stage.unpack)", subject);
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  std::array<std::byte, 6> first{};
  const auto head = std::span(first).first(std::min<std::uint64_t>(first.size(), size));
  RETURN_IF_ERROR(file.read_at(0, head));
  if (starts_with(head, "PK\x03\x04") || starts_with(head, "PK\x05\x06"))
    return Zip::open(std::move(file), subject);
  if (starts_with(head,
                  "\xfd"
                  "7zXZ") ||
      starts_with(head, "BZh")) {
    return invalid("{}: packed by xz or bzip2; tar, tar.zst, tar.gz and zip are read", subject)
        .cure("xz -dc {0} | zstd -T0 > {1}.zst, which also unpacks 10 times as fast",
              shell_quote(path.string()), shell_quote(path.stem().string()));
  }
  OK_OR_RETURN(tar, formats::expanded(std::move(file), {scratch, std::nullopt}, progress));
  return std::unique_ptr<Archive>(std::make_unique<Tar>(std::move(tar), subject));
}

}  // namespace stoker::stage
