#include "format/expanded_file.h"

#include <algorithm>
#include <array>

namespace stoker::formats {

Result<Packing> packing_of(const File& file) {
  OK_OR_RETURN(size, file.size());
  std::array<std::byte, 4> first{};
  const auto head = std::span(first).first(std::min<std::uint64_t>(first.size(), size));
  RETURN_IF_ERROR(file.read_at(0, head));
  return packing_of(head);
}

Result<File> nameless_file(const Path& folder) {
  const Path path = folder / (".expanded-" + random_name());
  RETURN_IF_ERROR(File::create_new(path).status());
  OK_OR_RETURN(file, File::open_read_write(path));
  RETURN_IF_ERROR(remove_file(path));
  return std::move(file);
}

Result<File> expanded(File file, const Scratch& scratch, Progress& progress) {
  constexpr std::uint64_t kOfFree = 20;  // a twentieth stays
  OK_OR_RETURN(packing, packing_of(file));
  if (packing == Packing::none) return file;
  OK_OR_RETURN(free, free_space(scratch.folder));
  const ByteCount most = scratch.most.value_or(ByteCount{free.value - free.value / kOfFree});
  OK_OR_RETURN(out, nameless_file(scratch.folder));
  OK_OR_RETURN(reader, ExpandingReader::open(file, packing));
  for (std::uint64_t written = 0;;) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was expanded", file.path());
    OK_OR_RETURN(piece, reader.next());
    if (piece.empty()) return std::move(out);
    written += piece.size();
    if (written > most.value)
      return no_space("{}: expands to over {}, more than is free for it", file.path(), rounded(most));
    RETURN_IF_ERROR(out.write(piece));
    progress.report(
        {.done = reader.offset(), .total = reader.size(), .unit = "bytes", .bytes = {reader.offset()}});
  }
}

}  // namespace stoker::formats
