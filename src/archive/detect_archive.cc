#include "archive/detect_archive.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "archive/decompress_file.h"
#include "archive/tar.h"
#include "archive/zip.h"

namespace stoker::archive {

Result<ArchiveFormat> detect_archive(const File& file, const std::string& subject) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::array<std::byte, kTarBlock> head{};
  const auto begin = std::span(head).first(std::min<std::uint64_t>(size, head.size()));
  STOKER_RETURN_IF_ERROR(file.read_at(0, begin));
  const std::string_view text(reinterpret_cast<const char*>(head.data()), begin.size());
  STOKER_ASSIGN_OR_RETURN(compression, detect_compression(file));
  if (compression != CompressionFormat::none) return ArchiveFormat::compressed_tar;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return ArchiveFormat::zip;
  if (text.size() == head.size() && text.substr(257, 5) == "ustar") return ArchiveFormat::tar;
  STOKER_RETURN_IF_ERROR(reject_other_compression(file, subject));
  if (file.path().extension() == ".tar") return ArchiveFormat::tar;
  const ReadAt read = [&file](std::uint64_t at, std::span<std::byte> out) { return file.read_at(at, out); };
  STOKER_ASSIGN_OR_RETURN(is_zip, ends_as_zip(read, size));
  return is_zip ? ArchiveFormat::zip : ArchiveFormat::none;
}

}  // namespace stoker::archive
