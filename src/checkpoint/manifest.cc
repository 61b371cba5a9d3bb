#include "checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/encode.h"
#include "base/file.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/manifest_form.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

Shape shape_of(Fields& fields) {
  Shape shape;
  for (const std::uint64_t size : fields.naturals("shape")) {
    if (!std::in_range<std::int64_t>(size)) {
      fields.fail("shape is too large");
      return {};
    }
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return shape;
}

DType dtype_of(Fields& fields) {
  const std::string name = fields.text("dtype");
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) fields.fail(format("dtype '{}' is not known", printable(name)));
  return dtype.value_or(DType::u8);
}

Piece read_piece(Fields fields) {
  Piece piece;
  piece.name = fields.text("name");
  piece.dtype = dtype_of(fields);
  piece.shape = shape_of(fields);
  piece.first_row = fields.integer("first_row");
  const std::vector<std::uint64_t> data = fields.naturals("data");
  if (data.size() != 2) {
    fields.fail("data is not two numbers");
    return piece;
  }
  piece.begin = data[0];
  piece.end = data[1];
  const std::optional<std::uint64_t> bytes = formats::tensor_bytes(piece.dtype, piece.shape);
  if (!bytes || piece.end < piece.begin || *bytes != piece.end - piece.begin) {
    fields.fail(format("piece of '{}' does not span what its shape needs", printable(piece.name)));
  }
  return piece;
}

std::vector<std::uint32_t> read_sums(Fields& fields, std::string_view key) {
  const std::string text = fields.text(key);
  std::vector<std::uint32_t> sums;
  for (std::size_t i = 0; i + 8 <= text.size(); i += 8) {
    std::uint32_t crc = 0;
    for (const char c : text.substr(i, 8)) {
      const std::size_t digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos) fields.fail(format("{} is not hexadecimal", key));
      crc = crc * 16 + static_cast<std::uint32_t>(digit & 15);
    }
    sums.push_back(crc);
  }
  if (text.size() % 8 != 0) fields.fail(format("{} is not hexadecimal", key));
  return sums;
}

// The pieces follow one another from the first to the last byte of the data.
void check_layout(const ShardFile& file, Fields& fields) {
  std::uint64_t covered = 0;
  for (const Piece& piece : file.pieces) {
    if (piece.begin != covered) return fields.fail("pieces do not follow one another");
    covered = piece.end;
  }
  if (file.header_bytes > file.bytes || covered != file.bytes - file.header_bytes) {
    return fields.fail("bytes is not header and pieces together");
  }
  if (file.blocks.size() != file.bytes / kBlockBytes + (file.bytes % kBlockBytes != 0 ? 1 : 0)) {
    fields.fail("crc32c does not hold one value for each block");
  }
}

ShardFile read_file_entry(Fields fields) {
  ShardFile file;
  file.path = fields.text("path");
  if (!part_of_path(file.path)) fields.fail(format("path '{}' is not one of a step", printable(file.path)));
  const std::int64_t rank = fields.integer("rank");
  if (rank < 0 || rank > 1 << 24) fields.fail("rank is out of range");
  file.rank = Rank{static_cast<int>(rank & 0x1ffffff)};
  file.bytes = fields.natural("bytes");
  file.header_bytes = fields.natural("header_bytes");
  file.blocks = read_sums(fields, "crc32c");
  for (Fields& piece : fields.objects("pieces")) file.pieces.push_back(read_piece(std::move(piece)));
  if (fields.ok()) check_layout(file, fields);
  return file;
}

std::vector<ShardFile> read_files(Fields& fields) {
  std::vector<ShardFile> files;
  for (Fields& file : fields.objects("files")) files.push_back(read_file_entry(std::move(file)));
  return files;
}

std::vector<TensorInfo> read_tensors(Fields& fields, Part part) {
  std::vector<TensorInfo> tensors;
  for (Fields& entry : fields.objects(to_text(part))) {
    TensorInfo tensor{entry.text("name"), dtype_of(entry), shape_of(entry)};
    if (!formats::tensor_bytes(tensor.dtype, tensor.shape)) entry.fail("shape is too large");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

struct Rows {
  std::int64_t first;
  std::int64_t count;
};

// Every row once. A tensor without rows (no dimensions, or none in the first) is one piece.
Status check_rows(const std::string& where, const TensorInfo& tensor, std::vector<Rows>& rows) {
  const std::int64_t wanted = tensor.shape.empty() ? 1 : tensor.shape[0];
  std::sort(rows.begin(), rows.end(), [](const Rows& a, const Rows& b) { return a.first < b.first; });
  if (rows.empty()) return corrupt("{}: no file holds it", where);
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_again = i > 0 && (rows[i].first < covered || wanted == 0);
    if (is_again) return corrupt("{}: row {} is held twice", where, rows[i].first);
    if (rows[i].first != covered) {
      return corrupt("{}: rows {} to {} are held by no file", where, covered, rows[i].first - 1);
    }
    if (rows[i].count > wanted - covered)
      return corrupt("{}: has {} rows, a piece goes beyond them", where, wanted);
    covered += rows[i].count;
  }
  if (covered < wanted) return corrupt("{}: rows {} to {} are held by no file", where, covered, wanted - 1);
  return {};
}

bool is_slice_of(const Piece& piece, const TensorInfo& tensor) {
  if (piece.dtype != tensor.dtype || piece.shape.size() != tensor.shape.size() || piece.first_row < 0)
    return false;
  if (piece.shape.empty()) return piece.first_row == 0;
  return std::equal(piece.shape.begin() + 1, piece.shape.end(), tensor.shape.begin() + 1);
}

Status check_part(std::string_view subject, const Manifest& manifest, Part part) {
  std::map<std::string_view, std::pair<const TensorInfo*, std::vector<Rows>>> tensors;
  for (const TensorInfo& tensor : manifest.of(part)) {
    if (!tensors.emplace(tensor.name, std::pair(&tensor, std::vector<Rows>())).second) {
      return corrupt("{}: tensor '{}' is listed twice", subject, printable(tensor.name));
    }
  }
  for (const ShardFile& file : manifest.files) {
    if (part_of_path(file.path) != part) continue;
    for (const Piece& piece : file.pieces) {
      const auto found = tensors.find(piece.name);
      if (found == tensors.end()) {
        return corrupt("{}: {} holds '{}', which is not listed", subject, file.path, printable(piece.name));
      }
      if (!is_slice_of(piece, *found->second.first)) {
        return corrupt("{}: {} holds '{}' with another type or shape", subject, file.path,
                       printable(piece.name));
      }
      found->second.second.push_back({piece.first_row, piece.shape.empty() ? 1 : piece.shape[0]});
    }
  }
  for (auto& [name, held] : tensors) {
    const std::string where = format("{}: tensor '{}'", subject, printable(name));
    RETURN_IF_ERROR(check_rows(where, *held.first, held.second));
  }
  return {};
}

Status check_files(std::string_view subject, const Manifest& manifest) {
  const std::size_t ranks = static_cast<std::size_t>(manifest.world_size.value);
  if (manifest.rank_states.size() != ranks) {
    return corrupt("{}: holds the states of {} ranks, world_size is {}", subject, manifest.rank_states.size(),
                   ranks);
  }
  std::map<std::string_view, int> seen;
  for (const ShardFile& file : manifest.files) {
    if (++seen[file.path] > 1) return corrupt("{}: file {} is listed twice", subject, file.path);
  }
  return check_pieces(subject, manifest);
}

Status check_checksum(std::string_view subject, std::string_view text) {
  const std::string_view opening = text.substr(0, kManifestOpening.size());
  if (opening != kManifestOpening || text.size() < kManifestOpening.size() + kNoManifestChecksum.size()) {
    return corrupt("{}: is not the manifest of a checkpoint, or is cut off", subject);
  }
  const std::string_view stored = text.substr(kManifestOpening.size(), kNoManifestChecksum.size());
  const std::string found = manifest_checksum_text(manifest_checksum(text));
  if (stored != found)
    return corrupt("{}: damaged (crc32c {}, expected {})", subject, found, printable(stored));
  return {};
}

// What a later Stoker wrote in a way this one would misread.
Status check_version(std::string_view subject, Fields& fields) {
  const std::uint64_t version = fields.natural("version");
  const std::vector<std::string> features = fields.texts("incompatible");
  if (!fields.ok()) return fields.status();
  if (version != kManifestVersion) {
    return invalid("{}: version {} is not known (this stoker reads version {})", subject, version,
                   kManifestVersion);
  }
  if (!features.empty()) {
    return invalid("{}: needs '{}', which this stoker does not know", subject, printable(features[0]));
  }
  return {};
}

Manifest read_members(Fields& fields) {
  Manifest manifest;
  manifest.step = Step{fields.integer("step")};
  manifest.save = fields.text("save");
  manifest.run = fields.text("run");
  const std::int64_t ranks = fields.integer("world_size");
  if (ranks < 1 || ranks > 1 << 24) fields.fail("world_size is out of range");
  manifest.world_size = WorldSize{static_cast<int>(ranks & 0x1ffffff)};
  manifest.written = fields.number("written");
  manifest.stall_s = fields.number("stall_s");
  manifest.write_s = fields.number("write_s");
  manifest.state = fields.state("state");
  manifest.hyper_parameters = fields.state("hyper_parameters");
  manifest.rank_states = fields.states("rank_states");
  for (const Part part : kParts) {
    manifest.tensors[static_cast<std::size_t>(part)] = read_tensors(fields, part);
  }
  manifest.files = read_files(fields);
  return manifest;
}

}  // namespace

Status check_pieces(std::string_view subject, const Manifest& manifest) {
  for (const Part part : kParts) RETURN_IF_ERROR(check_part(subject, manifest, part));
  return {};
}

std::uint64_t Manifest::total_bytes() const {
  std::uint64_t bytes = 0;
  for (const ShardFile& file : files) bytes += file.bytes;
  return bytes;
}

bool is_manifest_of(std::string_view text, std::string_view save) {
  // A line of its own: inside a text a line's end is escaped.
  const std::string line = format("\n\"save\": {},\n\"run\": ", json_string(save));
  return check_checksum("manifest", text).ok() && text.find(line) != std::string_view::npos;
}

Result<Manifest> parse_manifest_head(std::string_view subject, std::string_view text) {
  RETURN_IF_ERROR(check_checksum(subject, text));
  JsonText json(subject, text);
  Fields fields = json.fields();
  if (!fields.ok()) return fields.status();
  RETURN_IF_ERROR(check_version(subject, fields));
  Manifest manifest = read_members(fields);
  if (!fields.ok()) return fields.status();
  return manifest;
}

Result<Manifest> parse_manifest(std::string_view subject, std::string_view text) {
  OK_OR_RETURN(manifest, parse_manifest_head(subject, text));
  RETURN_IF_ERROR(check_files(subject, manifest));
  return manifest;
}

Result<Manifest> read_manifest(const Path& folder) {
  const Path path = folder / kManifestName;
  OK_OR_RETURN(text, read_file(path, kManifestLimit));
  return parse_manifest(printable(path.string()), text);
}

Result<ReadyMarker> parse_marker(std::string_view subject, std::string_view text) {
  JsonText json(subject, text);
  Fields fields = json.fields();
  ReadyMarker marker;
  marker.save = fields.text("save");
  marker.layout = fields.text("layout");
  marker.samples = read_sums(fields, "samples");
  marker.stall_s = fields.number("stall_s");
  marker.write_s = fields.number("write_s");
  marker.rank_state = fields.state("rank_state");
  marker.files = read_files(fields);
  if (!fields.ok()) return fields.status();
  return marker;
}

Status parse_failure(std::string_view subject, std::string_view text) {
  JsonText json(subject, text);
  Fields fields = json.fields();
  const std::string code = fields.text("code");
  const std::string message = fields.text("message");
  const std::string cure = fields.text("cure");
  if (fields.ok()) {
    for (int i = static_cast<int>(Code::invalid); i <= static_cast<int>(Code::internal); ++i) {
      if (to_text(static_cast<Code>(i)) != code) continue;
      Status status(static_cast<Code>(i), format("{}: {}", subject, message));
      return cure.empty() ? status : std::move(status).cure("{}", cure);
    }
  }
  return unavailable("{}: gave up without saying why", subject);
}

}  // namespace stoker::checkpoint
