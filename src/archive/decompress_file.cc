#include "archive/decompress_file.h"

#include <algorithm>
#include <array>

namespace stoker::archive {

Result<CompressionFormat> detect_compression(const File& file) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::array<std::byte, 4> first{};
  const auto head = std::span(first).first(std::min<std::uint64_t>(first.size(), size));
  STOKER_RETURN_IF_ERROR(file.read_at(0, head));
  return detect_compression(head);
}

Result<File> create_unnamed_file(const Path& folder) {
  const Path path = folder / (".expanded-" + random_name());
  STOKER_RETURN_IF_ERROR(File::create_new(path).status());
  STOKER_ASSIGN_OR_RETURN(file, File::open_read_write(path));
  STOKER_RETURN_IF_ERROR(remove_file(path));
  return std::move(file);
}

Result<File> decompress_file(File file, const Scratch& scratch, Progress& progress) {
  constexpr std::uint64_t kReservedShare = 20;  // a twentieth stays
  STOKER_ASSIGN_OR_RETURN(compression, detect_compression(file));
  if (compression == CompressionFormat::none) return file;
  STOKER_ASSIGN_OR_RETURN(free, free_space(scratch.folder));
  const ByteCount most = scratch.limit.value_or(ByteCount{free.value - free.value / kReservedShare});
  STOKER_ASSIGN_OR_RETURN(out, create_unnamed_file(scratch.folder));
  STOKER_ASSIGN_OR_RETURN(reader, DecompressingReader::open(file, compression));
  for (std::uint64_t written = 0;;) {
    if (progress.stop_requested()) return cancelled("{}: interrupted during decompression", file.path());
    STOKER_ASSIGN_OR_RETURN(piece, reader.next());
    if (piece.empty()) return std::move(out);
    written += piece.size();
    if (written > most.value)
      return no_space("{}: decompresses to over {}, more than the free space", file.path(), rounded(most));
    STOKER_RETURN_IF_ERROR(out.write(piece));
    progress.report(
        {.done = reader.offset(), .total = reader.size(), .unit = "bytes", .bytes = {reader.offset()}});
  }
}

}  // namespace stoker::archive
