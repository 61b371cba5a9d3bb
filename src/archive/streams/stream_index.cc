#include "archive/streams/stream_index.h"

#include <algorithm>
#include <limits>

#include "base/encode.h"
#include "base/json/json.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::archive {

namespace {

using Json = nlohmann::json;

constexpr ByteCount kIndexLimit = 1_GiB;

bool is_mds(const Json& json) { return json.contains("shards") && json["shards"].is_array(); }
bool is_litdata(const Json& json) {
  return json.contains("chunks") && json["chunks"].is_array() && json.contains("config");
}

Result<Json> parse(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kIndexLimit));
  Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt("{}: is not a JSON object", printable(file.string()));
  return json;
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
         name.find('/') == std::string_view::npos && printable(name) == name;
}

std::optional<std::string> string_field(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::uint64_t> integer_field(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

// MDS: https://docs.mosaicml.com/projects/streaming

constexpr std::uint64_t kVersion = 2;

struct MdsEncoding {
  std::string_view name;
  ColumnKind kind;
  std::uint32_t bytes = 0;  // of each value; 0: variable
  std::string_view extension;
};

constexpr MdsEncoding kEncodings[] = {
    {"bytes", ColumnKind::file},
    {"str", ColumnKind::file},
    {"jpeg", ColumnKind::file},
    {"png", ColumnKind::file},
    {"json", ColumnKind::json},
    {"int", ColumnKind::integer, 8},
    {"int8", ColumnKind::integer, 1},
    {"int16", ColumnKind::integer, 2},
    {"int32", ColumnKind::integer, 4},
    {"int64", ColumnKind::integer, 8},
    {"uint8", ColumnKind::unsigned_integer, 1},
    {"uint16", ColumnKind::unsigned_integer, 2},
    {"uint32", ColumnKind::unsigned_integer, 4},
    {"uint64", ColumnKind::unsigned_integer, 8},
    {"float16", ColumnKind::floating, 2},
    {"float32", ColumnKind::floating, 4},
    {"float64", ColumnKind::floating, 8},
    {"str_int", ColumnKind::decimal_text},
    {"str_float", ColumnKind::decimal_text},
    {"str_decimal", ColumnKind::decimal_text},
    {"pil", ColumnKind::pixels},
    {"jpeg_array", ColumnKind::files, 0, "jpg"},
    {"jpegarray", ColumnKind::files, 0, "jpg"},
    {"list[jpeg]", ColumnKind::prefixed_files, 0, "jpg"},
    {"list[png]", ColumnKind::prefixed_files, 0, "png"},
};

// "ndarray", "ndarray:float32", "ndarray:float32:2,3".
bool read_array(std::string_view encoding, StreamColumn& column) {
  const std::vector<std::string_view> parts = split(encoding, ':');
  constexpr std::size_t kMaxParts = 3;
  if (parts[0] != "ndarray" || parts.size() > kMaxParts) return false;
  column.kind = ColumnKind::array;
  if (parts.size() == 1) return true;
  column.type = numpy_type(parts[1]);
  if (!column.type || *column.type == DType::boolean) return false;
  if (parts.size() == 2) return true;
  std::uint64_t bytes = size_of(*column.type);
  for (const std::string_view part : split(parts[2], ',')) {
    std::uint64_t size = 0;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (!parse_number(part, &size) || size == 0 || size > kMost / bytes) return false;
    bytes *= size;
    column.shape.push_back(size);
  }
  column.bytes = static_cast<std::uint32_t>(bytes);
  return column.shape.size() <= kMaxStreamDimensions;
}

StreamColumn mds_column(std::string name, std::string encoding) {
  StreamColumn column{.name = std::move(name), .encoding = std::move(encoding)};
  const auto* found = std::find_if(std::begin(kEncodings), std::end(kEncodings),
                                   [&](const MdsEncoding& e) { return e.name == column.encoding; });
  if (found != std::end(kEncodings)) {
    column.kind = found->kind;
    column.bytes = found->bytes;
    column.extension = found->extension;
  } else if (!read_array(column.encoding, column)) {
    column.kind = ColumnKind::unsupported;
  }
  return column;
}

Result<std::vector<StreamColumn>> mds_columns(const Json& json, const std::string& subject) {
  const auto lists = {"column_names", "column_encodings", "column_sizes"};
  for (const char* key : lists) {
    if (!json.contains(key) || !json[key].is_array()) return corrupt("{}: {} is not a list", subject, key);
    if (json[key].size() > kMaxStreamColumns) return corrupt("{}: more than 4096 columns", subject);
    if (json[key].size() != json["column_names"].size())
      return corrupt("{}: {} names of columns, {} in {}", subject, json["column_names"].size(),
                     json[key].size(), key);
  }
  std::vector<StreamColumn> columns;
  for (std::size_t i = 0; i < json["column_names"].size(); ++i) {
    const Json& name = json["column_names"][i];
    const Json& encoding = json["column_encodings"][i];
    const Json& size = json["column_sizes"][i];
    if (!name.is_string() || !encoding.is_string() || !is_utf8(name.get<std::string>()) ||
        name.get<std::string>().empty())
      return corrupt("{}: column {} has no name or no encoding", subject, i);
    StreamColumn column = mds_column(name.get<std::string>(), encoding.get<std::string>());
    const bool is_known = column.kind != ColumnKind::unsupported;
    const std::uint64_t bytes = size.is_number_unsigned() ? size.get<std::uint64_t>() : 0;
    if ((!size.is_null() && !size.is_number_unsigned()) || (is_known && bytes != column.bytes)) {
      return corrupt("{}: column '{}': '{}' has {} bytes, column_sizes has {}", subject,
                     printable(column.name), printable(column.encoding), column.bytes, bytes);
    }
    columns.push_back(std::move(column));
  }
  if (columns.empty()) return corrupt("{}: has no columns", subject);
  return columns;
}

// Suggests a cure for an unsupported compression.
Status refuse_compression(const std::string& subject, std::string_view name) {
  Status status =
      invalid("{}: shards are compressed by '{}'; zstd and gz are supported", subject, printable(name));
  if (name == "br") return std::move(status).cure("brotli -d {}", "*.br, in that folder");
  if (name == "bz2") return std::move(status).cure("bzip2 -dk {}", "*.bz2, in that folder");
  return std::move(status).cure("decompress each shard in its folder, and remove the last extension");
}

// One of a shard's two files.
struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> hashes;
};

Result<FileInfo> parse_file(const Json& json, const std::string& subject) {
  const std::optional<std::string> name = string_field(json, "basename");
  if (!name || !is_plain_name(*name))
    return corrupt("{}: a shard's basename is not a valid file name", subject);
  FileInfo file{.name = *name, .bytes = integer_field(json, "bytes").value_or(0)};
  if (!json.contains("hashes")) return file;
  if (!json["hashes"].is_object()) return corrupt("{}: '{}': hashes are not an object", subject, *name);
  for (const auto& [algorithm, value] : json["hashes"].items()) {
    if (!value.is_string()) return corrupt("{}: '{}': a hash is not text", subject, *name);
    file.hashes.emplace(algorithm, value.get<std::string>());
  }
  return file;
}

Result<StreamShard> parse_shard(const Json& json, const Path& folder, const std::string& subject) {
  if (!json.is_object()) return corrupt("{}: a shard is not an object", subject);
  const std::string kind = string_field(json, "format").value_or("");
  if (integer_field(json, "version") != kVersion)
    return invalid("{}: a shard is not MDS version 2, the only supported version", subject);
  if (kind != "mds")
    return invalid("{}: shards are of format '{}'; only mds is supported", subject, printable(kind));
  if (!json.contains("raw_data") || !json["raw_data"].is_object())
    return corrupt("{}: a shard has no raw_data", subject);
  STOKER_ASSIGN_OR_RETURN(raw, parse_file(json["raw_data"], subject));
  const std::optional<std::uint64_t> samples = integer_field(json, "samples");
  if (!samples) return corrupt("{}: '{}': samples is not a number", subject, raw.name);
  StreamShard shard{.file = raw.name,
                    .file_bytes = raw.bytes,
                    .hashes = raw.hashes,
                    .raw_bytes = raw.bytes,
                    .samples = *samples,
                    .has_config = true};
  if (json.contains("zip_data") && json["zip_data"].is_object() && !path_exists(folder / raw.name)) {
    STOKER_ASSIGN_OR_RETURN(packed, parse_file(json["zip_data"], subject));
    const std::string compression = string_field(json, "compression").value_or("");
    const std::string_view name = std::string_view(compression).substr(0, compression.find(':'));
    if (name != "zstd" && name != "gz") return refuse_compression(subject, name);
    shard.file = packed.name;
    shard.file_bytes = packed.bytes;
    shard.hashes = packed.hashes;
    shard.is_packed = true;
  }
  return shard;
}

Result<StreamIndex> parse_mds_index(const Json& json, const Path& folder, const std::string& subject) {
  StreamIndex index{.tool = "MDS"};
  if (integer_field(json, "version") != kVersion)
    return invalid("{}: is not MDS version 2, the only supported version", subject);
  Json before;
  for (const Json& entry : json["shards"]) {
    STOKER_ASSIGN_OR_RETURN(shard, parse_shard(entry, folder, subject));
    const Json columns = {entry.value("column_names", Json()), entry.value("column_encodings", Json()),
                          entry.value("column_sizes", Json())};
    if (!index.shards.empty() && columns == before) {
      shard.columns = index.shards.back().columns;
    } else {
      STOKER_ASSIGN_OR_RETURN(read, mds_columns(entry, subject));
      STOKER_RETURN_IF_ERROR(check_columns(read, subject));
      shard.columns = std::make_shared<const std::vector<StreamColumn>>(std::move(read));
      before = columns;
    }
    index.shards.push_back(std::move(shard));
  }
  return index;
}

// LitData: https://github.com/Lightning-AI/litData

constexpr int kDeepestSpec = 32;

struct Format {
  std::string_view name;
  ColumnKind kind;
  std::string_view extension;
};

// After the colon is a file extension, or the number of a type.
constexpr Format kFormats[] = {
    {"bytes", ColumnKind::file, ""},        {"str", ColumnKind::file, ""},
    {"text", ColumnKind::file, ""},         {"jpeg", ColumnKind::file, ""},
    {"image", ColumnKind::file, ""},        {"file", ColumnKind::file, ""},
    {"video", ColumnKind::file, "mp4"},     {"audio", ColumnKind::file, "wav"},
    {"nifti", ColumnKind::file, "nii"},     {"mesh", ColumnKind::file, "glb"},
    {"pdf", ColumnKind::file, "pdf"},       {"tiff", ColumnKind::file, "tiff"},
    {"tifffile", ColumnKind::file, "tiff"}, {"int", ColumnKind::integer, ""},
    {"float", ColumnKind::floating, ""},    {"bool", ColumnKind::boolean, ""},
    {"numpy", ColumnKind::numpy, ""},       {"tensor", ColumnKind::tensor, ""},
    {"pil", ColumnKind::pixels, ""},        {"jpeg_array", ColumnKind::files, "jpg"},
    {"json", ColumnKind::nested, ""}};

StreamColumn litdata_column(std::string name, const std::string& text) {
  StreamColumn column{.name = std::move(name), .encoding = text};
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string behind = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "no_header_tensor" || kind == "no_header_numpy") {
    std::uint64_t number = 0;
    if (!parse_number(behind, &number)) return column;
    column.type = kind == "no_header_tensor" ? litdata_tensor_type(number) : litdata_numpy_type(number);
    if (column.type) column.kind = ColumnKind::elements;
    return column;
  }
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const Format& format) { return format.name == kind; });
  if (found == std::end(kFormats)) return column;
  column.kind = found->kind;
  column.extension = found->extension;
  const bool is_extension =
      !behind.empty() &&
      behind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
  if (is_extension && kind != "image") column.extension = behind;
  return column;
}

// The names of a tree's leaves in order: keys and indexes, joined by dots.
class LeafNames {
 public:
  Status walk(const Json& spec, const std::string& name, bool is_named, int depth) {
    if (depth > kDeepestSpec || !spec.is_object() || !spec.contains("children_spec") ||
        !spec["children_spec"].is_array())
      return corrupt("data_spec is not a tree");
    const Json& children = spec["children_spec"];
    if (children.empty() && (!spec.contains("type") || spec["type"].is_null())) {
      if (leaves_.size() >= kMaxStreamColumns) return corrupt("data_spec has more than 4096 values");
      leaves_.push_back({name, is_named});
      return {};
    }
    const Json keys = parse_json<Json>(string_field(spec, "context").value_or(""));
    const bool has_keys = keys.is_array() && keys.size() == children.size() &&
                          std::all_of(keys.begin(), keys.end(), [](const Json& k) { return k.is_string(); });
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::string part = has_keys ? keys[i].get<std::string>() : std::to_string(i);
      if (part.empty() || !is_utf8(part)) return corrupt("data_spec has a name that is not text");
      STOKER_RETURN_IF_ERROR(walk(children[i], name.empty() ? part : name + "." + part, has_keys, depth + 1));
    }
    return {};
  }

  std::vector<std::pair<std::string, bool>> take() { return std::move(leaves_); }

 private:
  std::vector<std::pair<std::string, bool>> leaves_;
};

Result<std::vector<StreamColumn>> litdata_columns(const Json& config, const std::string& subject) {
  if (!config.contains("data_format") || !config["data_format"].is_array() || config["data_format"].empty())
    return corrupt("{}: config has no data_format", subject);
  LeafNames names;
  if (const std::optional<std::string> text = string_field(config, "data_spec")) {
    const Json spec = parse_json<Json>(*text);
    if (!spec.is_array() || spec.size() != 2 || spec[0] != 1)
      return corrupt("{}: data_spec is not a tree of version 1", subject);
    if (Status status = names.walk(spec[1], "", false, 0); !status.ok())
      return std::move(status).with_context(subject);
  }
  const std::vector<std::pair<std::string, bool>> leaves = names.take();
  const Json& formats = config["data_format"];
  if (!leaves.empty() && leaves.size() != formats.size()) {
    return corrupt("{}: data_spec has {} values, data_format {}", subject, leaves.size(), formats.size());
  }
  std::vector<StreamColumn> columns;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (!formats[i].is_string()) return corrupt("{}: a data_format is not text", subject);
    const bool is_only = formats.size() == 1 && (leaves.empty() || leaves[0].first.empty());
    const std::string name = is_only ? "data" : leaves.empty() ? std::to_string(i) : leaves[i].first;
    columns.push_back(litdata_column(name, formats[i].get<std::string>()));
    columns.back().is_named = !leaves.empty() && leaves[i].second;
  }
  return columns;
}

Result<StreamLayout> parse_layout(const Json& config, const std::string& subject) {
  if (config.contains("encryption") && !config["encryption"].is_null()) {
    return invalid("{}: its chunks are encrypted", subject)
        .cure("optimize it again without encryption, with access to the key");
  }
  const std::string loader = string_field(config, "item_loader").value_or("PyTreeLoader");
  if (loader == "TokensLoader") return StreamLayout::single;
  if (loader != "PyTreeLoader") {
    return invalid("{}: chunks are for '{}'; PyTreeLoader and TokensLoader are supported", subject,
                   printable(loader));
  }
  const std::string compression = string_field(config, "compression").value_or("");
  const std::string level = string_field(config, "compression_level").value_or("chunk");
  if (!compression.empty() && compression.substr(0, compression.find(':')) != "zstd") {
    return invalid("{}: chunks are compressed by '{}'; only zstd is supported", subject,
                   printable(compression))
        .cure("optimize it again with compression='zstd', or without");
  }
  if (compression.empty() || level == "chunk") return StreamLayout::rows;
  if (level == "sample") return StreamLayout::zstd_samples;
  if (level == "batch") return StreamLayout::zstd_batches;
  return invalid("{}: compression_level '{}' is unknown", subject, printable(level));
}

Result<StreamIndex> parse_litdata_index(const Json& json, const std::string& subject) {
  StreamIndex index{.tool = "LitData"};
  const Json& config = json["config"];
  if (!config.is_object()) return corrupt("{}: config is not an object", subject);
  STOKER_ASSIGN_OR_RETURN(layout, parse_layout(config, subject));
  STOKER_ASSIGN_OR_RETURN(columns, litdata_columns(config, subject));
  if (layout == StreamLayout::single && columns.size() != 1)
    return corrupt("{}: TokensLoader's chunks have one value per sample, data_format has {}", subject,
                   columns.size());
  const auto shared = std::make_shared<const std::vector<StreamColumn>>(std::move(columns));
  const bool is_packed = string_field(config, "compression").has_value() && layout <= StreamLayout::single;
  for (const Json& chunk : json["chunks"]) {
    const std::optional<std::string> name =
        chunk.is_object() ? string_field(chunk, "filename") : std::nullopt;
    if (!name || !is_plain_name(*name))
      return corrupt("{}: a chunk's filename is not a valid file name", subject);
    const std::optional<std::uint64_t> samples = integer_field(chunk, "chunk_size");
    if (!samples) return corrupt("{}: '{}': chunk_size is not a number", subject, *name);
    StreamShard shard{.file = *name, .is_packed = is_packed, .samples = *samples, .layout = layout};
    shard.raw_bytes = integer_field(chunk, "chunk_bytes").value_or(0);
    if (!is_packed) shard.file_bytes = shard.raw_bytes;
    shard.columns = shared;
    index.shards.push_back(std::move(shard));
  }
  return index;
}

}  // namespace

namespace {

// Whether the folder has MDS shards or LitData chunks, by name.
bool has_stream_files(const Path& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  return names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           const bool is_mds = name.ends_with(".mds") || name.find(".mds.") != std::string::npos;
           return is_mds || (name.starts_with("chunk-") && name.ends_with(".bin"));
         });
}

}  // namespace

bool has_stream_index(const Path& folder) {
  const Path file = folder / kStreamIndexFile;
  if (!path_exists(file)) return false;
  const Result<Json> json = parse(file);
  // read_stream_index() then reports the damage: the shards alone would be read in silence.
  if (!json.ok() || !json->is_object()) return has_stream_files(folder);
  if (is_mds(*json)) return true;
  if (!is_litdata(*json)) return has_stream_files(folder);
  // Chunks that are Parquet files are read by the Parquet reader.
  return string_field((*json)["config"], "item_loader") != "ParquetLoader";
}

Result<StreamIndex> read_stream_index(const Path& folder) {
  const std::string subject = printable((folder / kStreamIndexFile).string());
  STOKER_ASSIGN_OR_RETURN(json, parse(folder / kStreamIndexFile));
  if (is_mds(json)) return parse_mds_index(json, folder, subject);
  if (is_litdata(json)) return parse_litdata_index(json, subject);
  return invalid("{}: has neither MDS shards nor LitData chunks", subject);
}

Status check_columns(const std::vector<StreamColumn>& columns, const std::string& subject) {
  for (const StreamColumn& column : columns) {
    if (column.kind != ColumnKind::unsupported) continue;
    const std::string name = printable(column.name);
    const std::string encoding = printable(column.encoding);
    if (encoding == "pkl" || encoding == "pickle" || encoding.starts_with("graph")) {
      return invalid("{}: column '{}' is pickled ('{}'): reading it would run arbitrary code", subject, name,
                     encoding)
          .cure("write it again with a different encoding: bytes, json or ndarray");
    }
    return invalid("{}: column '{}': encoding '{}' is unknown", subject, name, encoding);
  }
  return {};
}

std::optional<DType> numpy_type(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bool", DType::boolean}, {"uint8", DType::u8},    {"int8", DType::i8},    {"uint16", DType::u16},
      {"int16", DType::i16},    {"float16", DType::f16}, {"uint32", DType::u32}, {"int32", DType::i32},
      {"float32", DType::f32},  {"uint64", DType::u64},  {"int64", DType::i64},  {"float64", DType::f64}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

Result<std::vector<StreamColumn>> mds_columns(std::string_view config, const std::string& subject) {
  const Json json = parse_json<Json>(config);
  if (!json.is_object()) return corrupt("{}: its header with the columns is not a JSON object", subject);
  return mds_columns(json, subject);
}

std::optional<DType> litdata_tensor_type(std::uint64_t number) {
  // torch.float and torch.float32 are one type, so each has two numbers. Complex types and bfloat16 have no
  // .npy type.
  constexpr std::optional<DType> kNone;
  constexpr std::optional<DType> kTypes[] = {
      DType::f32, DType::f32, DType::f64, DType::f64, kNone,      kNone,          kNone,
      kNone,      DType::f16, DType::f16, kNone,      DType::u8,  DType::i8,      DType::i16,
      DType::i16, DType::i32, DType::i32, DType::i64, DType::i64, DType::boolean, DType::u16};
  return number < std::size(kTypes) ? kTypes[number] : std::nullopt;
}

std::optional<DType> litdata_numpy_type(std::uint64_t number) {
  constexpr std::optional<DType> kNone;
  constexpr std::optional<DType> kTypes[] = {DType::i8,  DType::i16, DType::i32, DType::i64,    DType::u8,
                                             DType::u16, DType::u32, DType::u64, DType::f16,    DType::f32,
                                             DType::f64, kNone,      kNone,      DType::boolean};
  return number < std::size(kTypes) ? kTypes[number] : std::nullopt;
}

}  // namespace stoker::archive
