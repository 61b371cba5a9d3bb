#include "checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "archive/safetensors.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "checkpoint/json_fields.h"

namespace stoker::checkpoint {

namespace {

// Up to the digits of the manifest's own CRC-32C.
constexpr std::string_view kManifestOpening = "{\n\"format\": \"stoker-checkpoint\",\n\"crc32c\": \"";
// Placeholder for these digits while they are computed.
constexpr std::string_view kNoManifestChecksum = "00000000";
// Layout version; raised for changes that an older Stoker would misread.
constexpr int kManifestVersion = 1;

// The digits.
std::string manifest_checksum_text(std::uint32_t crc) { return format("{:08x}", crc); }

// Computed with kNoManifestChecksum in place of the digits. REQUIRES: the text begins like a manifest.
std::uint32_t manifest_checksum(std::string_view text) {
  const std::uint32_t opening = crc32c(kNoManifestChecksum, crc32c(text.substr(0, kManifestOpening.size())));
  return crc32c(text.substr(kManifestOpening.size() + kNoManifestChecksum.size()), opening);
}

Shape shape_of(JsonFields& fields) {
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

DType dtype_of(JsonFields& fields) {
  const std::string name = fields.text("dtype");
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) fields.fail(format("dtype '{}' is not supported", printable(name)));
  return dtype.value_or(DType::u8);
}

Piece read_piece(JsonFields fields) {
  Piece piece;
  piece.name = fields.text("name");
  piece.dtype = dtype_of(fields);
  piece.shape = shape_of(fields);
  piece.first_row = fields.integer("first_row");
  const std::vector<std::uint64_t> data = fields.naturals("data");
  if (data.size() != 2) {
    fields.fail("'data' is not a pair of numbers");
    return piece;
  }
  piece.begin = data[0];
  piece.end = data[1];
  const std::optional<std::uint64_t> bytes = archive::tensor_bytes(piece.dtype, piece.shape);
  if (!bytes || piece.end < piece.begin || *bytes != piece.end - piece.begin) {
    fields.fail(format("the size of a piece of '{}' does not match its shape", printable(piece.name)));
  }
  return piece;
}

std::vector<std::uint32_t> read_sums(JsonFields& fields, std::string_view key) {
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

// Pieces are contiguous from the first to the last byte of the data.
void check_layout(const TensorFile& file, JsonFields& fields) {
  std::uint64_t covered = 0;
  for (const Piece& piece : file.pieces) {
    if (piece.begin != covered) return fields.fail("pieces do not follow one another");
    covered = piece.end;
  }
  if (file.header_bytes > file.bytes || covered != file.bytes - file.header_bytes) {
    return fields.fail("'bytes' is not the size of header and pieces");
  }
  if (file.blocks.size() != file.bytes / kBlockBytes + (file.bytes % kBlockBytes != 0 ? 1 : 0)) {
    fields.fail("'crc32c' does not have one value per block");
  }
}

TensorFile read_file_entry(JsonFields fields) {
  TensorFile file;
  file.path = fields.text("path");
  if (!part_of_path(file.path))
    fields.fail(format("path '{}' is not the path of a step's file", printable(file.path)));
  const std::int64_t rank = fields.integer("rank");
  if (rank < 0 || rank > 1 << 24) fields.fail("rank is out of range");
  file.rank = Rank{static_cast<int>(rank & 0x1ffffff)};
  file.bytes = fields.natural("bytes");
  file.header_bytes = fields.natural("header_bytes");
  file.blocks = read_sums(fields, "crc32c");
  for (JsonFields& piece : fields.objects("pieces")) file.pieces.push_back(read_piece(std::move(piece)));
  if (fields.ok()) check_layout(file, fields);
  return file;
}

std::vector<TensorFile> read_files(JsonFields& fields) {
  std::vector<TensorFile> files;
  for (JsonFields& file : fields.objects("files")) files.push_back(read_file_entry(std::move(file)));
  return files;
}

std::vector<TensorInfo> read_tensors(JsonFields& fields, StepPart part) {
  std::vector<TensorInfo> tensors;
  for (JsonFields& entry : fields.objects(to_text(part))) {
    TensorInfo tensor{entry.text("name"), dtype_of(entry), shape_of(entry)};
    if (!archive::tensor_bytes(tensor.dtype, tensor.shape)) entry.fail("shape is too large");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

struct ShardRows {
  std::int64_t first;
  std::int64_t count;
};

// Every row exactly once. A tensor without rows (no dimensions, or a first size of 0) is one piece.
Status check_rows(const std::string& where, const TensorInfo& tensor, std::vector<ShardRows>& rows) {
  const std::int64_t wanted = tensor.shape.empty() ? 1 : tensor.shape[0];
  std::sort(rows.begin(), rows.end(),
            [](const ShardRows& a, const ShardRows& b) { return a.first < b.first; });
  if (rows.empty()) return corrupt("{}: is in no file", where);
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_again = i > 0 && (rows[i].first < covered || wanted == 0);
    if (is_again) return corrupt("{}: row {} appears twice", where, rows[i].first);
    if (rows[i].first != covered) {
      return corrupt("{}: rows {} to {} are missing", where, covered, rows[i].first - 1);
    }
    if (rows[i].count > wanted - covered)
      return corrupt("{}: has {}, but a piece ends beyond them", where,
                     counted(static_cast<std::uint64_t>(wanted), "row"));
    covered += rows[i].count;
  }
  if (covered < wanted) return corrupt("{}: rows {} to {} are missing", where, covered, wanted - 1);
  return {};
}

bool is_slice_of(const Piece& piece, const TensorInfo& tensor) {
  if (piece.dtype != tensor.dtype || piece.shape.size() != tensor.shape.size() || piece.first_row < 0)
    return false;
  if (piece.shape.empty()) return piece.first_row == 0;
  return std::equal(piece.shape.begin() + 1, piece.shape.end(), tensor.shape.begin() + 1);
}

Status check_part(std::string_view subject, const StepManifest& manifest, StepPart part) {
  std::map<std::string_view, std::pair<const TensorInfo*, std::vector<ShardRows>>> tensors;
  for (const TensorInfo& tensor : manifest.tensors_of(part)) {
    if (!tensors.emplace(tensor.name, std::pair(&tensor, std::vector<ShardRows>())).second) {
      return corrupt("{}: tensor '{}' is listed twice", subject, printable(tensor.name));
    }
  }
  for (const TensorFile& file : manifest.files) {
    if (part_of_path(file.path) != part) continue;
    for (const Piece& piece : file.pieces) {
      const auto found = tensors.find(piece.name);
      if (found == tensors.end()) {
        return corrupt("{}: {} contains '{}', which is not listed", subject, file.path,
                       printable(piece.name));
      }
      if (!is_slice_of(piece, *found->second.first)) {
        return corrupt("{}: {} contains '{}' with a different type or shape", subject, file.path,
                       printable(piece.name));
      }
      found->second.second.push_back({piece.first_row, piece.shape.empty() ? 1 : piece.shape[0]});
    }
  }
  for (auto& [name, held] : tensors) {
    const std::string where = format("{}: tensor '{}'", subject, printable(name));
    STOKER_RETURN_IF_ERROR(check_rows(where, *held.first, held.second));
  }
  return {};
}

Status check_files(std::string_view subject, const StepManifest& manifest) {
  const std::size_t ranks = static_cast<std::size_t>(manifest.world_size.value);
  if (manifest.rank_states.size() != ranks) {
    return corrupt("{}: has the states of {} ranks, but world_size is {}", subject,
                   manifest.rank_states.size(), ranks);
  }
  std::map<std::string_view, int> seen;
  for (const TensorFile& file : manifest.files) {
    if (++seen[file.path] > 1) return corrupt("{}: file {} is listed twice", subject, file.path);
  }
  return check_pieces(subject, manifest);
}

Status check_checksum(std::string_view subject, std::string_view text) {
  const std::string_view opening = text.substr(0, kManifestOpening.size());
  if (opening != kManifestOpening || text.size() < kManifestOpening.size() + kNoManifestChecksum.size()) {
    return corrupt("{}: is not a checkpoint manifest, or is truncated", subject);
  }
  const std::string_view stored = text.substr(kManifestOpening.size(), kNoManifestChecksum.size());
  const std::string found = manifest_checksum_text(manifest_checksum(text));
  if (stored != found)
    return corrupt("{}: damaged (crc32c {}, expected {})", subject, found, printable(stored));
  return {};
}

// Written by a later Stoker in a way that this version would misread.
Status check_version(std::string_view subject, JsonFields& fields) {
  const std::uint64_t version = fields.natural("version");
  const std::vector<std::string> features = fields.texts("incompatible");
  if (!fields.ok()) return fields.status();
  if (version != kManifestVersion) {
    return invalid("{}: version {} is not supported (this Stoker version reads version {})", subject, version,
                   kManifestVersion);
  }
  if (!features.empty()) {
    return invalid("{}: requires '{}', which this Stoker version does not support", subject,
                   printable(features[0]));
  }
  return {};
}

StepManifest read_members(JsonFields& fields) {
  StepManifest manifest;
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
  for (const StepPart part : kParts) {
    manifest.tensors[static_cast<std::size_t>(part)] = read_tensors(fields, part);
  }
  manifest.files = read_files(fields);
  return manifest;
}

using OrderedJson = nlohmann::ordered_json;

std::string dump(const OrderedJson& json) { return json_text(json); }

// Written by hand, here and below: a step has tens of thousands of pieces, and the JSON library builds a tree
// for each.
void add_text(std::string& to, std::string_view text) {
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (is_plain) {
    to.append("\"").append(text).append("\"");
  } else {
    to += json_string(text);
  }
}

template <typename Integer>
void add_list(std::string& to, const std::vector<Integer>& values) {
  to += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ',';
    to += std::to_string(values[i]);
  }
  to += ']';
}

void add_name_and_form(std::string& to, const std::string& name, DType dtype, const Shape& shape) {
  to += "{\"name\":";
  add_text(to, name);
  to.append(",\"dtype\":\"").append(to_text(dtype)).append("\",\"shape\":");
  add_list(to, shape);
}

void add_piece(std::string& to, const Piece& piece) {
  add_name_and_form(to, piece.name, piece.dtype, piece.shape);
  to.append(",\"first_row\":").append(std::to_string(piece.first_row)).append(",\"data\":[");
  to.append(std::to_string(piece.begin)).append(",").append(std::to_string(piece.end)).append("]}");
}

// Eight digits each.
void add_sums(std::string& to, const std::vector<std::uint32_t>& sums) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  to += '"';
  for (const std::uint32_t sum : sums) {
    for (int shift = 28; shift >= 0; shift -= 4) to += kDigits[sum >> shift & 15];
  }
  to += '"';
}

std::string file_text(const TensorFile& file) {
  std::string text = "{\"path\":";
  add_text(text, file.path);
  text += format(",\"rank\":{},\"bytes\":{},\"header_bytes\":{},\"crc32c\":", file.rank.value, file.bytes,
                 file.header_bytes);
  add_sums(text, file.blocks);
  text += ",\"pieces\":[";
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    if (i > 0) text += ',';
    add_piece(text, file.pieces[i]);
  }
  return text + "]}";
}

std::string tensor_text(const TensorInfo& tensor) {
  std::string text;
  add_name_and_form(text, tensor.name, tensor.dtype, tensor.shape);
  return text + "}";
}

// One element per line, to be readable and diffable.
template <typename Items, typename ToText>
std::string lines(const Items& items, ToText to_text) {
  std::string text = "[";
  for (const auto& item : items) {
    text += text.size() > 1 ? ",\n " : "\n ";
    text += to_text(item);
  }
  return text + "]";
}

}  // namespace

std::string manifest_text(const StepManifest& manifest) {
  std::string text = format("{}{}\",\n\"version\": {},\n\"incompatible\": [],\n", kManifestOpening,
                            kNoManifestChecksum, kManifestVersion);
  text += format("\"step\": {},\n\"save\": {},\n\"run\": {},\n\"world_size\": {},\n", manifest.step.value,
                 dump(manifest.save), dump(manifest.run), manifest.world_size.value);
  text += format("\"written\": {},\n\"stall_s\": {},\n\"write_s\": {},\n", dump(manifest.written),
                 dump(manifest.stall_s), dump(manifest.write_s));
  text += format("\"state\": {},\n\"hyper_parameters\": {},\n", manifest.state.to_json(),
                 manifest.hyper_parameters.to_json());
  text += format("\"rank_states\": {},\n",
                 lines(manifest.rank_states, [](const StateValues& state) { return state.to_json(); }));
  for (const StepPart part : kParts) {
    text += format("\"{}\": {},\n", to_text(part), lines(manifest.tensors_of(part), tensor_text));
  }
  text += format("\"files\": {}\n}}\n", lines(manifest.files, file_text));
  text.replace(kManifestOpening.size(), kNoManifestChecksum.size(),
               manifest_checksum_text(manifest_checksum(text)));
  return text;
}

std::string marker_text(const ReadyMarker& marker) {
  std::string text = "{\"save\":";
  add_text(text, marker.save);
  text += ",\"layout\":";
  add_text(text, marker.layout);
  text += ",\"checksums\":";
  add_sums(text, marker.checksums);
  text += format(",\"stall_s\":{},\"write_s\":{},\"rank_state\":{},\"files\":[", dump(marker.stall_s),
                 dump(marker.write_s), marker.rank_state.to_json());
  for (std::size_t i = 0; i < marker.files.size(); ++i) {
    if (i > 0) text += ',';
    text += file_text(marker.files[i]);
  }
  return text + "]}";
}

std::string sharding_info(const std::vector<Piece>& pieces) {
  std::vector<const Piece*> sorted;
  for (const Piece& piece : pieces) sorted.push_back(&piece);
  std::ranges::sort(sorted, {}, [](const Piece* piece) -> std::string_view { return piece->name; });
  std::string text = "{";
  for (const Piece* piece : sorted) {
    if (text.size() > 1) text += ',';
    add_text(text, piece->name);
    text += ":{\"saved_offsets\":[";
    for (std::size_t i = 0; i < piece->shape.size(); ++i)
      text += i == 0 ? std::to_string(piece->first_row) : ",0";
    text += "]}";
  }
  return text + "}";
}

std::string failure_text(const Status& error) {
  return dump(
      OrderedJson{{"code", to_text(error.code())}, {"message", error.message()}, {"cure", error.cure()}});
}

Status check_pieces(std::string_view subject, const StepManifest& manifest) {
  for (const StepPart part : kParts) STOKER_RETURN_IF_ERROR(check_part(subject, manifest, part));
  return {};
}

std::uint64_t StepManifest::total_bytes() const {
  std::uint64_t bytes = 0;
  for (const TensorFile& file : files) bytes += file.bytes;
  return bytes;
}

bool is_manifest_for_save(std::string_view text, std::string_view save) {
  // A separate line: line breaks inside strings are escaped.
  const std::string line = format("\n\"save\": {},\n\"run\": ", json_string(save));
  return check_checksum("manifest", text).ok() && text.find(line) != std::string_view::npos;
}

Result<StepManifest> parse_manifest_head(std::string_view subject, std::string_view text) {
  STOKER_RETURN_IF_ERROR(check_checksum(subject, text));
  JsonText json(subject, text);
  JsonFields fields = json.fields();
  if (!fields.ok()) return fields.status();
  STOKER_RETURN_IF_ERROR(check_version(subject, fields));
  StepManifest manifest = read_members(fields);
  if (!fields.ok()) return fields.status();
  return manifest;
}

Result<StepManifest> parse_manifest(std::string_view subject, std::string_view text) {
  STOKER_ASSIGN_OR_RETURN(manifest, parse_manifest_head(subject, text));
  STOKER_RETURN_IF_ERROR(check_files(subject, manifest));
  return manifest;
}

Result<StepManifest> read_manifest(const Path& folder) {
  const Path path = folder / kManifestName;
  STOKER_ASSIGN_OR_RETURN(text, read_file(path, kManifestLimit));
  return parse_manifest(printable(path.string()), text);
}

Result<ReadyMarker> parse_marker(std::string_view subject, std::string_view text) {
  JsonText json(subject, text);
  JsonFields fields = json.fields();
  ReadyMarker marker;
  marker.save = fields.text("save");
  marker.layout = fields.text("layout");
  marker.checksums = read_sums(fields, "checksums");
  marker.stall_s = fields.number("stall_s");
  marker.write_s = fields.number("write_s");
  marker.rank_state = fields.state("rank_state");
  marker.files = read_files(fields);
  if (!fields.ok()) return fields.status();
  return marker;
}

Status parse_failure(std::string_view subject, std::string_view text) {
  JsonText json(subject, text);
  JsonFields fields = json.fields();
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
  return unavailable("{}: failed without a reason", subject);
}

}  // namespace stoker::checkpoint
