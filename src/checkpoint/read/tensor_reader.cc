#include "checkpoint/read/tensor_reader.h"

#include <algorithm>

namespace stoker::checkpoint {

Result<TensorReader> TensorReader::open(const Path& folder, const StepManifest& manifest) {
  TensorReader reader;
  for (const TensorFile& file : manifest.files) {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(folder / file.path));
    reader.files_.push_back(std::move(opened));
    const StepPart part = part_of_path(file.path).value_or(StepPart::model);
    for (const Piece& piece : file.pieces) {
      const std::uint64_t bytes = piece.end - piece.begin;
      const std::uint64_t rows = piece.shape.empty() ? 1 : static_cast<std::uint64_t>(piece.shape[0]);
      const std::uint64_t begin =
          rows == 0 ? 0 : static_cast<std::uint64_t>(piece.first_row) * (bytes / rows);
      reader.tensors_[{part, piece.name}].push_back(
          {begin, begin + bytes, reader.files_.size() - 1, file.header_bytes + piece.begin});
    }
  }
  for (auto& [name, ranges] : reader.tensors_)
    std::ranges::sort(ranges, {}, [](const ByteRange& s) { return std::pair(s.begin, s.end); });
  return reader;
}

Status TensorReader::read(StepPart part, const std::string& name, std::uint64_t offset,
                          std::span<std::byte> out) const {
  const auto found = tensors_.find({part, name});
  if (found == tensors_.end()) return internal("checkpoint: no tensor '{}'", printable(name));
  for (const ByteRange& range : found->second) {
    if (out.empty()) break;
    if (range.end <= offset) continue;
    const std::size_t n = std::min<std::uint64_t>(out.size(), range.end - offset);
    STOKER_RETURN_IF_ERROR(files_[range.file].read_at(range.at + (offset - range.begin), out.first(n)));
    out = out.subspan(n);
    offset += n;
  }
  if (!out.empty()) return internal("checkpoint: tensor '{}' ends before byte {}", printable(name), offset);
  return {};
}

}  // namespace stoker::checkpoint
