#include "checkpoint/foreign/file_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "archive/safetensors.h"
#include "archive/zip.h"
#include "base/file.h"

namespace stoker::checkpoint {

namespace {

constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n";

struct Suffix {
  std::string_view text;
  FileKind kind;
};
constexpr Suffix kSuffixes[] = {
    {".pt", FileKind::torch},    {".pth", FileKind::torch},
    {".bin", FileKind::torch},   {".ckpt", FileKind::torch},
    {".keras", FileKind::keras}, {".h5", FileKind::hdf5},
    {".hdf5", FileKind::hdf5},   {".safetensors", FileKind::safetensors},
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
  return value;
}

// The archive's directory is at its end, so a truncated one has none.
Status check_zip(const Path& path, const File& file, std::uint64_t size, std::string_view needed) {
  const std::string subject = printable(path.string());
  const archive::ReadAt read = [&file](std::uint64_t at, std::span<std::byte> out) {
    return file.read_at(at, out);
  };
  STOKER_ASSIGN_OR_RETURN(zip, archive::ZipReader::open(read, size, subject));
  for (const archive::ZipMember& member : zip.members()) {
    if (member.name == needed || member.name.ends_with(format("/{}", needed))) return {};
  }
  return invalid("{}: is a zip archive without {}", subject, needed);
}

Status check_torch(const Path& path, const File& file, std::uint64_t size) {
  std::array<std::byte, 4> start{};
  if (size < start.size()) return corrupt("{}: is {} bytes long", printable(path.string()), size);
  STOKER_RETURN_IF_ERROR(file.read_at(0, start));
  if (std::memcmp(start.data(), "PK\3\4", 4) == 0) return check_zip(path, file, size, "data.pkl");
  if (start[0] == std::byte{0x80}) {
    return invalid("{}: is a plain pickle, which cannot be checked for completeness",
                   printable(path.string()))
        .cure("save it with torch.save() of torch 1.6 or later");
  }
  return corrupt("{}: is not a file written by torch.save", printable(path.string()));
}

// The superblock ends with the end-of-file address. Versions 2 and 3 also record an open writer.
Status check_superblock(const std::string& subject, std::span<const std::byte> block, std::uint64_t size) {
  const unsigned version = static_cast<unsigned>(block[8]);
  if (version > 3) return invalid("{}: HDF5 superblock version {} is not supported", subject, version);
  const std::size_t width = static_cast<std::size_t>(block[version < 2 ? 13 : 9]);
  if (width != 4 && width != 8) return corrupt("{}: HDF5 superblock is damaged", subject);
  if (version == 3 && (block[11] & std::byte{1}) != std::byte{}) {
    return corrupt("{}: was not closed by the program that wrote it", subject);
  }
  const std::size_t addresses = version == 0 ? 24 : version == 1 ? 28 : 12;
  const std::uint64_t end = little_endian(block.subspan(addresses + 2 * width, width));
  if (end <= size) return {};
  return corrupt("{}: is {} bytes long, expected {} (truncated)", subject, size, end);
}

Status check_hdf5(const Path& path, const File& file, std::uint64_t size) {
  const std::string subject = printable(path.string());
  std::array<std::byte, 64> block{};
  // The superblock may follow a user block: at 0, 512, 1024, 2048 ...
  for (std::uint64_t at = 0; at + block.size() <= size && at <= 1 << 20; at = at == 0 ? 512 : at * 2) {
    STOKER_RETURN_IF_ERROR(file.read_at(at, block));
    if (std::memcmp(block.data(), kHdf5Magic.data(), kHdf5Magic.size()) != 0) continue;
    return check_superblock(subject, block, size);
  }
  return corrupt("{}: is not an HDF5 file", subject);
}

}  // namespace

std::optional<FileKind> file_kind(std::string_view name) {
  for (const Suffix& suffix : kSuffixes) {
    if (name.size() > suffix.text.size() && name.ends_with(suffix.text)) return suffix.kind;
  }
  return std::nullopt;
}

Status check_complete(const Path& path, FileKind kind) {
  if (kind == FileKind::safetensors) return archive::read_safetensors_header(path).status();
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size == 0) return corrupt("{}: is empty", printable(path.string()));
  if (kind == FileKind::keras) return check_zip(path, file, size, "config.json");
  return kind == FileKind::hdf5 ? check_hdf5(path, file, size) : check_torch(path, file, size);
}

}  // namespace stoker::checkpoint
