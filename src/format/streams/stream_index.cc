#include "format/streams/stream_index.h"

#include "base/bytes.h"
#include "base/json/json.h"
#include "base/text.h"
#include "format/streams/parse_index_internal.h"

namespace stoker::formats {

namespace {

using Json = nlohmann::json;

constexpr ByteCount kIndexLimit = 1_GiB;

bool is_mds(const Json& json) { return json.contains("shards") && json["shards"].is_array(); }
bool is_litdata(const Json& json) {
  return json.contains("chunks") && json["chunks"].is_array() && json.contains("config");
}

Result<Json> parse(const Path& file) {
  OK_OR_RETURN(text, read_file(file, kIndexLimit));
  Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt("{}: is no JSON object", printable(file.string()));
  return json;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
         name.find('/') == std::string_view::npos && printable(name) == name;
}

std::optional<std::string> text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::uint64_t> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

bool has_stream_index(const Path& folder) {
  const Path file = folder / kStreamIndexFile;
  if (!path_exists(file)) return false;
  const Result<Json> json = parse(file);
  if (!json.ok()) return false;
  if (is_mds(*json)) return true;
  // Chunks that are Parquet files are read as such.
  return is_litdata(*json) && text_of((*json)["config"], "item_loader") != "ParquetLoader";
}

Result<StreamIndex> read_stream_index(const Path& folder) {
  const std::string subject = printable((folder / kStreamIndexFile).string());
  OK_OR_RETURN(json, parse(folder / kStreamIndexFile));
  if (is_mds(json)) return parse_mds_index(json, folder, subject);
  if (is_litdata(json)) return parse_litdata_index(json, subject);
  return invalid("{}: has neither MDS shards nor LitData chunks", subject);
}

Status check_columns(const std::vector<StreamColumn>& columns, const std::string& subject) {
  for (const StreamColumn& column : columns) {
    if (column.kind != ColumnKind::refused) continue;
    const std::string name = printable(column.name);
    const std::string encoding = printable(column.encoding);
    if (encoding == "pkl" || encoding == "pickle" || encoding.starts_with("graph")) {
      return invalid("{}: column '{}' is pickled ('{}'): reading it would run whatever code is in it",
                     subject, name, encoding)
          .cure("write it again with another encoding, as in bytes, json or ndarray");
    }
    return invalid("{}: column '{}': encoding '{}' is not known", subject, name, encoding);
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

}  // namespace stoker::formats
