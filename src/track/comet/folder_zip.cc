// Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, version 2.0: for each file a local
// header and its bytes, then the directory and its end record.
#include "track/comet/folder_zip.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/hashes/crc32.h"
#include "track/files/proto_text.h"

namespace stoker::track {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryHeader = 0x02014b50;
constexpr std::uint32_t kEndRecord = 0x06054b50;
constexpr std::uint16_t kZipVersion = 20;
constexpr std::uint16_t kMadeOnUnix = 3 << 8 | kZipVersion;
constexpr std::uint16_t kNamesAreUtf8 = 1 << 11;
constexpr std::uint16_t kStored = 0;
constexpr std::uint32_t kFirstOfJanuary1980 = 0x00210000;  // date and time
constexpr std::uint32_t kRegularFile = 0100644u << 16;
constexpr std::size_t kCopyBytes = 1u << 20;

void put16(std::uint16_t number, std::string* out) { append_little_endian(number, out); }
void put32(std::uint32_t number, std::string* out) { append_little_endian(number, out); }

struct ZippedFile {
  std::string name;
  std::uint32_t crc = 0;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;  // of the local header
};

// The fields that the header of a file and the directory have in common.
void put_description(const ZippedFile& entry, std::string* out) {
  put16(kNamesAreUtf8, out);
  put16(kStored, out);
  put32(kFirstOfJanuary1980, out);
  put32(entry.crc, out);
  put32(entry.bytes, out);
  put32(entry.bytes, out);
  put16(static_cast<std::uint16_t>(entry.name.size()), out);
  put16(0, out);  // extra fields
}

std::string local_header(const ZippedFile& entry) {
  std::string header;
  put32(kLocalHeader, &header);
  put16(kZipVersion, &header);
  put_description(entry, &header);
  return header + entry.name;
}

std::string directory_of(const std::vector<ZippedFile>& entries, std::uint32_t offset) {
  std::string directory;
  for (const ZippedFile& entry : entries) {
    put32(kDirectoryHeader, &directory);
    put16(kMadeOnUnix, &directory);
    put16(kZipVersion, &directory);
    put_description(entry, &directory);
    put16(0, &directory);  // comment
    put16(0, &directory);  // number of the disk
    put16(0, &directory);  // internal attributes
    put32(kRegularFile, &directory);
    put32(entry.offset, &directory);
    directory += entry.name;
  }
  const auto bytes = static_cast<std::uint32_t>(directory.size());
  const auto count = static_cast<std::uint16_t>(entries.size());
  put32(kEndRecord, &directory);
  put16(0, &directory);
  put16(0, &directory);
  put16(count, &directory);
  put16(count, &directory);
  put32(bytes, &directory);
  put32(offset, &directory);
  put16(0, &directory);
  return directory;
}

Result<std::vector<Path>> files_below(const Path& folder) {
  std::vector<Path> files;
  std::error_code problem;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, problem);
       !problem && at != std::filesystem::recursive_directory_iterator(); at.increment(problem)) {
    std::error_code ignored;
    if (at->symlink_status(ignored).type() == std::filesystem::file_type::regular)
      files.push_back(at->path().lexically_relative(folder));
  }
  if (problem) return unavailable("{}: {}", printable(folder.string()), problem.message());
  std::sort(files.begin(), files.end());
  return files;
}

class ArchiveFile {
 public:
  explicit ArchiveFile(File file) : file_(std::move(file)) {}

  // The header has the checksum, so it is written after the bytes.
  Status add(const Path& folder, const Path& name) {
    STOKER_ASSIGN_OR_RETURN(source, File::open_regular(folder / name));
    ZippedFile entry{.name = name.string(), .offset = static_cast<std::uint32_t>(offset_)};
    const std::uint64_t begin = offset_ + local_header(entry).size();
    std::uint64_t bytes = 0;
    for (;;) {
      STOKER_ASSIGN_OR_RETURN(part, source.read_available(bytes, kCopyBytes));
      if (part.empty()) break;
      STOKER_RETURN_IF_ERROR(check_size(begin + bytes + part.size()));
      const auto data = std::as_bytes(std::span(part));
      STOKER_RETURN_IF_ERROR(file_.write_at(begin + bytes, data));
      entry.crc = crc32(data, entry.crc);
      bytes += part.size();
    }
    entry.bytes = static_cast<std::uint32_t>(bytes);
    const std::string header = local_header(entry);
    STOKER_RETURN_IF_ERROR(file_.write_at(offset_, std::as_bytes(std::span(header))));
    offset_ = begin + bytes;
    entries_.push_back(std::move(entry));
    return check_size(offset_);
  }
  Status finish() {
    const std::string directory = directory_of(entries_, static_cast<std::uint32_t>(offset_));
    STOKER_RETURN_IF_ERROR(check_size(offset_ + directory.size()));
    STOKER_RETURN_IF_ERROR(file_.write_at(offset_, std::as_bytes(std::span(directory))));
    return file_.close();
  }

 private:
  Status check_size(std::uint64_t bytes) const {
    const bool is_valid = bytes < std::numeric_limits<std::uint32_t>::max() &&
                          entries_.size() <= std::numeric_limits<std::uint16_t>::max();
    if (is_valid) return {};
    return invalid("{}: more than 65 535 files or 4 GiB", printable(file_.path().string()));
  }

  File file_;
  std::uint64_t offset_ = 0;
  std::vector<ZippedFile> entries_;
};

Status write_zip(const Path& folder, const Path& target) {
  STOKER_ASSIGN_OR_RETURN(files, files_below(folder));
  STOKER_ASSIGN_OR_RETURN(file, File::create(target));
  ArchiveFile archive(std::move(file));
  for (const Path& name : files) STOKER_RETURN_IF_ERROR(archive.add(folder, name));
  return archive.finish();
}

}  // namespace

Status zip_folder(const Path& folder, const Path& archive) {
  const Path pending = archive.string() + ".tmp";
  Status status = write_zip(folder, pending);
  if (status.ok()) status = rename_path(pending, archive);
  if (!status.ok()) (void)remove_file(pending);
  return status;
}

}  // namespace stoker::track
