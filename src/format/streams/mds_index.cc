// MDS: https://docs.mosaicml.com/projects/streaming
#include <algorithm>
#include <limits>

#include "base/encode.h"
#include "base/json/json.h"
#include "base/text.h"
#include "format/streams/parse_index_internal.h"

namespace stoker::formats {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kVersion = 2;

struct Encoding {
  std::string_view name;
  ColumnKind kind;
  std::uint32_t bytes = 0;  // of each value; 0: they differ
  std::string_view ending;
};

constexpr Encoding kEncodings[] = {
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
    {"uint8", ColumnKind::natural, 1},
    {"uint16", ColumnKind::natural, 2},
    {"uint32", ColumnKind::natural, 4},
    {"uint64", ColumnKind::natural, 8},
    {"float16", ColumnKind::real, 2},
    {"float32", ColumnKind::real, 4},
    {"float64", ColumnKind::real, 8},
    {"str_int", ColumnKind::digits},
    {"str_float", ColumnKind::digits},
    {"str_decimal", ColumnKind::digits},
    {"pil", ColumnKind::pixels},
    {"jpeg_array", ColumnKind::files, 0, "jpg"},
    {"jpegarray", ColumnKind::files, 0, "jpg"},
    {"list[jpeg]", ColumnKind::long_files, 0, "jpg"},
    {"list[png]", ColumnKind::long_files, 0, "png"},
};

// "ndarray", "ndarray:float32", "ndarray:float32:2,3".
bool read_array(std::string_view encoding, StreamColumn& column) {
  const std::vector<std::string_view> parts = split(encoding, ':');
  constexpr std::size_t kMostParts = 3;
  if (parts[0] != "ndarray" || parts.size() > kMostParts) return false;
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
  return column.shape.size() <= kMostStreamDimensions;
}

StreamColumn mds_column(std::string name, std::string encoding) {
  StreamColumn column{.name = std::move(name), .encoding = std::move(encoding)};
  const auto* found = std::find_if(std::begin(kEncodings), std::end(kEncodings),
                                   [&](const Encoding& e) { return e.name == column.encoding; });
  if (found != std::end(kEncodings)) {
    column.kind = found->kind;
    column.bytes = found->bytes;
    column.ending = found->ending;
  } else if (!read_array(column.encoding, column)) {
    column.kind = ColumnKind::refused;
  }
  return column;
}

Result<std::vector<StreamColumn>> mds_columns(const Json& json, const std::string& subject) {
  const auto lists = {"column_names", "column_encodings", "column_sizes"};
  for (const char* key : lists) {
    if (!json.contains(key) || !json[key].is_array()) return corrupt("{}: {} is no list", subject, key);
    if (json[key].size() > kMostStreamColumns) return corrupt("{}: more than 4096 columns", subject);
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
    const bool is_known = column.kind != ColumnKind::refused;
    const std::uint64_t bytes = size.is_number_unsigned() ? size.get<std::uint64_t>() : 0;
    if ((!size.is_null() && !size.is_number_unsigned()) || (is_known && bytes != column.bytes)) {
      return corrupt("{}: column '{}': '{}' has {} bytes, column_sizes says {}", subject,
                     printable(column.name), printable(column.encoding), column.bytes, bytes);
    }
    columns.push_back(std::move(column));
  }
  if (columns.empty()) return corrupt("{}: has no columns", subject);
  return columns;
}

// What can be done where a compression is not read.
Status refuse_compression(const std::string& subject, std::string_view name) {
  Status status =
      invalid("{}: shards are compressed by '{}'; zstd and gz are read", subject, printable(name));
  if (name == "br") return std::move(status).cure("brotli -d {}", "*.br, in that folder");
  if (name == "bz2") return std::move(status).cure("bzip2 -dk {}", "*.bz2, in that folder");
  return std::move(status).cure("unpack each shard beside itself, without the last part of its name");
}

// One of a shard's two files.
struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> hashes;
};

Result<FileInfo> file_of(const Json& json, const std::string& subject) {
  const std::optional<std::string> name = text_of(json, "basename");
  if (!name || !is_plain_name(*name)) return corrupt("{}: a shard's basename is no name of a file", subject);
  FileInfo file{.name = *name, .bytes = number_of(json, "bytes").value_or(0)};
  if (!json.contains("hashes")) return file;
  if (!json["hashes"].is_object()) return corrupt("{}: '{}': hashes are no object", subject, *name);
  for (const auto& [algorithm, value] : json["hashes"].items()) {
    if (!value.is_string()) return corrupt("{}: '{}': a hash is no text", subject, *name);
    file.hashes.emplace(algorithm, value.get<std::string>());
  }
  return file;
}

Result<StreamShard> shard_of(const Json& json, const Path& folder, const std::string& subject) {
  if (!json.is_object()) return corrupt("{}: a shard is no object", subject);
  const std::string kind = text_of(json, "format").value_or("");
  if (number_of(json, "version") != kVersion)
    return invalid("{}: a shard is not of version 2 of MDS, which alone is read", subject);
  if (kind != "mds") return invalid("{}: shards are of format '{}'; mds is read", subject, printable(kind));
  if (!json.contains("raw_data") || !json["raw_data"].is_object())
    return corrupt("{}: a shard has no raw_data", subject);
  OK_OR_RETURN(raw, file_of(json["raw_data"], subject));
  const std::optional<std::uint64_t> samples = number_of(json, "samples");
  if (!samples) return corrupt("{}: '{}': samples is no number", subject, raw.name);
  StreamShard shard{.file = raw.name,
                    .file_bytes = raw.bytes,
                    .hashes = raw.hashes,
                    .raw_bytes = raw.bytes,
                    .samples = *samples,
                    .has_config = true};
  if (json.contains("zip_data") && json["zip_data"].is_object() && !path_exists(folder / raw.name)) {
    OK_OR_RETURN(packed, file_of(json["zip_data"], subject));
    const std::string compression = text_of(json, "compression").value_or("");
    const std::string_view name = std::string_view(compression).substr(0, compression.find(':'));
    if (name != "zstd" && name != "gz") return refuse_compression(subject, name);
    shard.file = packed.name;
    shard.file_bytes = packed.bytes;
    shard.hashes = packed.hashes;
    shard.is_packed = true;
  }
  return shard;
}

}  // namespace

Result<std::vector<StreamColumn>> mds_columns(std::string_view config, const std::string& subject) {
  const Json json = parse_json<Json>(config);
  if (!json.is_object()) return corrupt("{}: what it says of its columns is no JSON object", subject);
  return mds_columns(json, subject);
}

Result<StreamIndex> parse_mds_index(const Json& json, const Path& folder, const std::string& subject) {
  StreamIndex index{.tool = "MDS"};
  if (number_of(json, "version") != kVersion)
    return invalid("{}: is not of version 2 of MDS, which alone is read", subject);
  Json before;
  for (const Json& entry : json["shards"]) {
    OK_OR_RETURN(shard, shard_of(entry, folder, subject));
    const Json columns = {entry.value("column_names", Json()), entry.value("column_encodings", Json()),
                          entry.value("column_sizes", Json())};
    if (!index.shards.empty() && columns == before) {
      shard.columns = index.shards.back().columns;
    } else {
      OK_OR_RETURN(read, mds_columns(entry, subject));
      RETURN_IF_ERROR(check_columns(read, subject));
      shard.columns = std::make_shared<const std::vector<StreamColumn>>(std::move(read));
      before = columns;
    }
    index.shards.push_back(std::move(shard));
  }
  return index;
}

}  // namespace stoker::formats
