// LitData: https://github.com/Lightning-AI/litData
#include <algorithm>

#include "base/encode.h"
#include "base/json/json.h"
#include "base/text.h"
#include "format/streams/parse_index_internal.h"

namespace stoker::formats {

namespace {

using Json = nlohmann::json;

constexpr int kDeepestSpec = 32;

struct Format {
  std::string_view name;
  ColumnKind kind;
  std::string_view ending;
};

// What stands behind a colon is a file's ending, or the number of a type.
constexpr Format kFormats[] = {
    {"bytes", ColumnKind::file, ""},        {"str", ColumnKind::file, ""},
    {"text", ColumnKind::file, ""},         {"jpeg", ColumnKind::file, ""},
    {"image", ColumnKind::file, ""},        {"file", ColumnKind::file, ""},
    {"video", ColumnKind::file, "mp4"},     {"audio", ColumnKind::file, "wav"},
    {"nifti", ColumnKind::file, "nii"},     {"mesh", ColumnKind::file, "glb"},
    {"pdf", ColumnKind::file, "pdf"},       {"tiff", ColumnKind::file, "tiff"},
    {"tifffile", ColumnKind::file, "tiff"}, {"int", ColumnKind::integer, ""},
    {"float", ColumnKind::real, ""},        {"bool", ColumnKind::boolean, ""},
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
  column.ending = found->ending;
  const bool is_ending = !behind.empty() && behind.find_first_not_of(
                                                "abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
  if (is_ending && kind != "image") column.ending = behind;
  return column;
}

// The names of a tree's leaves, in their order: keys and places with dots between them.
class LeafNames {
 public:
  Status walk(const Json& spec, const std::string& name, bool is_named, int depth) {
    if (depth > kDeepestSpec || !spec.is_object() || !spec.contains("children_spec") ||
        !spec["children_spec"].is_array())
      return corrupt("data_spec is no tree");
    const Json& children = spec["children_spec"];
    if (children.empty() && (!spec.contains("type") || spec["type"].is_null())) {
      if (leaves_.size() >= kMostStreamColumns) return corrupt("data_spec has more than 4096 values");
      leaves_.push_back({name, is_named});
      return {};
    }
    const Json keys = parse_json<Json>(text_of(spec, "context").value_or(""));
    const bool has_keys = keys.is_array() && keys.size() == children.size() &&
                          std::all_of(keys.begin(), keys.end(), [](const Json& k) { return k.is_string(); });
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::string part = has_keys ? keys[i].get<std::string>() : std::to_string(i);
      if (part.empty() || !is_utf8(part)) return corrupt("data_spec has a name that is no text");
      RETURN_IF_ERROR(walk(children[i], name.empty() ? part : name + "." + part, has_keys, depth + 1));
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
  if (const std::optional<std::string> text = text_of(config, "data_spec")) {
    const Json spec = parse_json<Json>(*text);
    if (!spec.is_array() || spec.size() != 2 || spec[0] != 1)
      return corrupt("{}: data_spec is no tree of version 1", subject);
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
    if (!formats[i].is_string()) return corrupt("{}: a data_format is no text", subject);
    const bool is_only = formats.size() == 1 && (leaves.empty() || leaves[0].first.empty());
    const std::string name = is_only ? "data" : leaves.empty() ? std::to_string(i) : leaves[i].first;
    columns.push_back(litdata_column(name, formats[i].get<std::string>()));
    columns.back().is_named = !leaves.empty() && leaves[i].second;
  }
  return columns;
}

Result<StreamLayout> layout_of(const Json& config, const std::string& subject) {
  if (config.contains("encryption") && !config["encryption"].is_null()) {
    return invalid("{}: its chunks are encrypted", subject)
        .cure("optimize it again without encryption, where the key is");
  }
  const std::string loader = text_of(config, "item_loader").value_or("PyTreeLoader");
  if (loader == "TokensLoader") return StreamLayout::single;
  if (loader != "PyTreeLoader") {
    return invalid("{}: chunks are for '{}'; PyTreeLoader's and TokensLoader's are read", subject,
                   printable(loader));
  }
  const std::string compression = text_of(config, "compression").value_or("");
  const std::string level = text_of(config, "compression_level").value_or("chunk");
  if (!compression.empty() && compression.substr(0, compression.find(':')) != "zstd") {
    return invalid("{}: chunks are compressed by '{}'; zstd is read", subject, printable(compression))
        .cure("optimize it again with compression='zstd', or without");
  }
  if (compression.empty() || level == "chunk") return StreamLayout::rows;
  if (level == "sample") return StreamLayout::zstd_samples;
  if (level == "batch") return StreamLayout::zstd_batches;
  return invalid("{}: compression_level '{}' is not known", subject, printable(level));
}

}  // namespace

Result<StreamIndex> parse_litdata_index(const Json& json, const std::string& subject) {
  StreamIndex index{.tool = "LitData"};
  const Json& config = json["config"];
  if (!config.is_object()) return corrupt("{}: config is no object", subject);
  OK_OR_RETURN(layout, layout_of(config, subject));
  OK_OR_RETURN(columns, litdata_columns(config, subject));
  if (layout == StreamLayout::single && columns.size() != 1)
    return corrupt("{}: TokensLoader's chunks have one value a sample, data_format {}", subject,
                   columns.size());
  const auto shared = std::make_shared<const std::vector<StreamColumn>>(std::move(columns));
  const bool is_packed = text_of(config, "compression").has_value() && layout <= StreamLayout::single;
  for (const Json& chunk : json["chunks"]) {
    const std::optional<std::string> name = chunk.is_object() ? text_of(chunk, "filename") : std::nullopt;
    if (!name || !is_plain_name(*name))
      return corrupt("{}: a chunk's filename is no name of a file", subject);
    const std::optional<std::uint64_t> samples = number_of(chunk, "chunk_size");
    if (!samples) return corrupt("{}: '{}': chunk_size is no number", subject, *name);
    StreamShard shard{.file = *name, .is_packed = is_packed, .samples = *samples, .layout = layout};
    shard.raw_bytes = number_of(chunk, "chunk_bytes").value_or(0);
    if (!is_packed) shard.file_bytes = shard.raw_bytes;
    shard.columns = shared;
    index.shards.push_back(std::move(shard));
  }
  return index;
}

std::optional<DType> litdata_tensor_type(std::uint64_t number) {
  // torch.float and torch.float32 are one type, so each has two numbers. Complex ones and bfloat16: none.
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

}  // namespace stoker::formats
