#include "arrays/zarr/metadata.h"

#include <algorithm>
#include <numeric>

#include "arrays/zarr/fill_value.h"
#include "arrays/zarr/metadata_parser_internal.h"

namespace stoker::arrays {

using zarr_json::Json;
using zarr_json::MetadataParser;

namespace {

constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 31;  // the limit of blosc and most readers

bool compresses(BytesCodec::Kind kind) {
  return kind != BytesCodec::Kind::shuffle && kind != BytesCodec::Kind::crc32c;
}

Status check_pipeline(const Pipeline& pipeline, const ZarrMetadata& metadata, std::string_view subject) {
  const auto compressors = std::count_if(pipeline.codecs.begin(), pipeline.codecs.end(),
                                         [](const BytesCodec& codec) { return compresses(codec.kind); });
  if (compressors > 1)
    return invalid("{}: codecs: two compressors in one pipeline are not supported", subject);
  if (!pipeline.axes.empty() && pipeline.axes.size() != metadata.shape.size()) {
    return corrupt("{}: codecs: a transpose with a different number of dimensions", subject);
  }
  return {};
}

Status check_chunks(const codec::Extents& chunks, const ZarrMetadata& metadata, std::string_view what,
                    std::string_view subject) {
  if (chunks.size() != metadata.shape.size()) {
    return corrupt("{}: {}: has {} sizes, the shape has {}", subject, what, chunks.size(),
                   metadata.shape.size());
  }
  if (std::find(chunks.begin(), chunks.end(), 0) != chunks.end())
    return corrupt("{}: {}: a size is 0", subject, what);
  return {};
}

// Checks that the numbers of chunks along each dimension do not overflow.
Status check_count(const ZarrMetadata& metadata, std::string_view subject) {
  codec::Extents counts;
  const codec::Extents& chunks = metadata.inner_chunks();
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    // Whole stored objects: a shard at the edge has all its chunks.
    const std::uint64_t stored =
        metadata.shape[d] / metadata.chunks[d] + (metadata.shape[d] % metadata.chunks[d] != 0);
    const std::optional<std::uint64_t> inside =
        codec::product(codec::Extents{stored, metadata.chunks[d] / chunks[d]});
    if (!inside) return corrupt("{}: shape: the array is too large", subject);
    counts.push_back(*inside);
  }
  if (!codec::product(counts)) return corrupt("{}: shape: the array is too large", subject);
  return {};
}

Json pipeline_json(const Pipeline& pipeline, const ZarrMetadata& metadata) {
  Json codecs = Json::array();
  if (!pipeline.axes.empty())
    codecs.push_back({{"name", "transpose"}, {"configuration", {{"order", pipeline.axes}}}});
  Json bytes = {{"name", "bytes"}};
  if (metadata.type.kind == codec::ElementType::Kind::variable_length)
    bytes["name"] = zarr_json::varying_codec_name(metadata.type);
  if (metadata.type.swap_unit() > 1) {
    bytes["configuration"] = {{"endian", pipeline.order == codec::ByteOrder::big ? "big" : "little"}};
  }
  codecs.push_back(std::move(bytes));
  for (const BytesCodec& codec : pipeline.codecs) codecs.push_back(zarr_json::codec_json(codec, 3));
  return codecs;
}

Json sharding_json(const ZarrMetadata& metadata) {
  const Sharding& sharding = *metadata.sharding;
  Json index = Json::array(
      {{{"name", "bytes"},
        {"configuration", {{"endian", sharding.index_order == codec::ByteOrder::big ? "big" : "little"}}}}});
  if (sharding.index_has_crc) index.push_back({{"name", "crc32c"}});
  return {{"name", "sharding_indexed"},
          {"configuration",
           {{"chunk_shape", sharding.chunks},
            {"codecs", pipeline_json(sharding.inner, metadata)},
            {"index_codecs", std::move(index)},
            {"index_location", sharding.index_at == Sharding::IndexAt::start ? "start" : "end"}}}};
}

std::string v2_json(const ZarrMetadata& metadata) {
  const std::vector<BytesCodec>& codecs = metadata.pipeline.codecs;
  Json filters = Json::array();
  if (metadata.type.kind == codec::ElementType::Kind::variable_length) {
    filters.push_back({{"id", zarr_json::varying_codec_name(metadata.type)}});
    if (metadata.type.letter == codec::ElementType::kNumbers)
      filters[0]["dtype"] =
          zarr_v2_name(codec::element_type(metadata.type.item), codec::ByteOrder::little).value_or("");
  }
  Json compressor = nullptr;
  for (const BytesCodec& codec : codecs) {
    const bool is_last = &codec == &codecs.back();
    (is_last && compresses(codec.kind) ? compressor : filters.emplace_back()) =
        zarr_json::codec_json(codec, 2);
  }
  const Json fill =
      metadata.has_fill ? parse_json<Json>(fill_value_json(metadata.type, metadata.fill, 2)) : Json();
  const Json document = {{"chunks", metadata.chunks},
                         {"compressor", std::move(compressor)},
                         {"dimension_separator", std::string(1, metadata.separator)},
                         {"dtype", zarr_v2_name(metadata.type, metadata.pipeline.order).value_or("")},
                         {"fill_value", fill},
                         {"filters", filters.empty() ? Json() : std::move(filters)},
                         {"order", metadata.pipeline.axes.empty() ? "C" : "F"},
                         {"shape", metadata.shape},
                         {"zarr_format", 2}};
  return json_text(document, 1) + "\n";
}

bool is_reversed(const std::vector<std::size_t>& axes) {
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] != axes.size() - 1 - d) return false;
  }
  return true;
}

void parse_v2_layout(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  metadata.shape = fields.extents(fields.at(document, "shape"), "shape");
  metadata.chunks = fields.extents(fields.at(document, "chunks"), "chunks");
  const std::string order = fields.text(document, "order");
  if (order != "C" && order != "F") fields.report_damage("order", "is neither \"C\" nor \"F\"");
  if (order == "F") {
    for (std::size_t d = metadata.shape.size(); d-- > 0;) metadata.pipeline.axes.push_back(d);
  }
  const Json& separator = fields.find(document, "dimension_separator");
  if (!separator.is_null() && separator != "." && separator != "/") {
    fields.report_damage("dimension_separator", "is neither \".\" nor \"/\"");
  }
  metadata.separator = separator == "/" ? '/' : '.';
}

// The filter determines the type of NumPy objects.
std::optional<codec::ElementType> parse_object_type(MetadataParser& fields, const Json& document) {
  const Json& filters = fields.find(document, "filters");
  const Json& first = filters.is_array() && !filters.empty() ? filters[0] : fields.find(document, "");
  const Json& id = fields.find(first, "id");
  if (id == "vlen-utf8") return codec::ElementType::variable_length_of(codec::ElementType::kText);
  if (id == "vlen-bytes") return codec::ElementType::variable_length_of(codec::ElementType::kBytes);
  if (id == "vlen-array") {
    const Result<ZarrTypeV2> items = parse_zarr_v2_type(fields.text(first, "dtype"));
    const std::optional<DType> dtype = items.ok() ? items->type.dtype() : std::nullopt;
    if (dtype && items->order == codec::ByteOrder::little)
      return codec::ElementType::variable_length_of(codec::ElementType::kNumbers, *dtype);
  }
  fields.report_unsupported(
      "dtype", "objects of this kind are not supported (vlen-utf8, vlen-bytes and vlen-array are)");
  return std::nullopt;
}

void parse_v2_type(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  const Json& name = fields.at(document, "dtype");
  if (name.is_array())
    return fields.report_unsupported("dtype", "elements of several fields are not supported");
  if (name == "|O") {
    const std::optional<codec::ElementType> objects = parse_object_type(fields, document);
    if (!objects) return;
    metadata.type = *objects;
  } else {
    const Result<ZarrTypeV2> type = parse_zarr_v2_type(fields.text(document, "dtype"));
    if (!type.ok()) return fields.report_unsupported("dtype", type.error());
    metadata.type = type->type;
    if (type->type.swap_unit() > 1) metadata.pipeline.order = type->order;
  }
  const Json& fill = fields.at(document, "fill_value");
  metadata.has_fill = !fill.is_null();
  Result<std::vector<std::byte>> bytes = parse_fill_value(metadata.type, json_ascii(fill));
  if (!bytes.ok()) return fields.report_unsupported("fill_value", bytes.error());
  metadata.fill = std::move(*bytes);
}

void parse_codecs(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  const auto add = [&](const Json& codec) {
    metadata.pipeline.codecs.push_back(
        zarr_json::bytes_codec(fields, fields.text(codec, "id"), codec, metadata.type.bytes));
  };
  const Json& filters = fields.find(document, "filters");
  if (!filters.is_null() && !filters.is_array()) fields.report_damage("filters", "is not a list");
  if (filters.is_array()) {
    const bool has_objects = metadata.type.kind == codec::ElementType::Kind::variable_length;
    for (std::size_t i = has_objects ? 1 : 0; i < filters.size(); ++i) add(filters[i]);
  }
  const Json& compressor = fields.find(document, "compressor");
  if (!compressor.is_null()) add(compressor);
}

// A name, or an object of a name and a configuration.
struct Extension {
  std::string name;
  Json configuration = Json::object();
};

Extension parse_extension(MetadataParser& fields, const Json& value, std::string_view place) {
  Extension found;
  if (value.is_string()) {
    found.name = value.get<std::string>();
    return found;
  }
  if (!value.is_object()) {
    fields.report_damage(place, "is neither a name nor an object");
    return found;
  }
  found.name = fields.text(value, "name");
  const Json& configuration = fields.find(value, "configuration");
  if (configuration.is_object()) found.configuration = configuration;
  return found;
}

codec::ByteOrder byte_order(MetadataParser& fields, const Json& configuration) {
  const Json& endian = fields.find(configuration, "endian");
  if (!endian.is_null() && endian != "little" && endian != "big") {
    fields.report_damage("endian", "is neither \"little\" nor \"big\"");
  }
  return endian == "big" ? codec::ByteOrder::big : codec::ByteOrder::little;
}

// Dimension i of the output is dimension order[i] of the input; several transposes are combined.
void parse_transpose(MetadataParser& fields, const Json& configuration, std::size_t dimensions,
                     Pipeline& pipeline) {
  const Json& order = fields.at(configuration, "order");
  std::vector<std::size_t> axes;
  if (order == "C" || order == "F") {  // from early writers
    for (std::size_t d = 0; d < dimensions; ++d) axes.push_back(order == "C" ? d : dimensions - 1 - d);
  } else {
    for (const std::uint64_t axis : fields.extents(order, "order")) axes.push_back(axis);
  }
  std::vector<bool> seen(dimensions);
  for (const std::size_t axis : axes) {
    if (axis >= dimensions || seen[axis])
      return fields.report_damage("order", "is not a permutation of the dimensions");
    seen[axis] = true;
  }
  if (axes.size() != dimensions)
    return fields.report_damage("order", "is not a permutation of the dimensions");
  if (!pipeline.axes.empty()) {
    for (std::size_t& axis : axes) axis = pipeline.axes[axis];
  }
  pipeline.axes = std::move(axes);
}

std::string_view bytes_codec_of(const codec::ElementType& type) {
  return type.kind == codec::ElementType::Kind::variable_length ? zarr_json::varying_codec_name(type)
                                                                : "bytes";
}

struct CodecChain {
  Pipeline pipeline;
  std::optional<Json> sharding;  // its configuration
};

CodecChain parse_codec_chain(MetadataParser& fields, const Json& codecs, const ZarrMetadata& metadata) {
  CodecChain found;
  bool has_bytes = false;
  if (!codecs.is_array()) fields.report_damage("codecs", "is not a list");
  for (const Json& codec : codecs) {
    Extension named = parse_extension(fields, codec, "codec");
    if (!fields.status().ok()) return found;
    if (named.name == "transpose" && !has_bytes) {
      parse_transpose(fields, named.configuration, metadata.shape.size(), found.pipeline);
    } else if (named.name == "bytes" || named.name == "sharding_indexed" || named.name == "vlen-utf8" ||
               named.name == "vlen-bytes") {
      if (has_bytes) fields.report_damage("codecs", "has two that turn an array into bytes");
      has_bytes = true;
      if (named.name == "sharding_indexed") {
        found.sharding = std::move(named.configuration);
      } else if (named.name != bytes_codec_of(metadata.type)) {
        fields.report_unsupported("codecs", format("'{}' does not match the array's type", named.name));
      } else if (metadata.type.swap_unit() > 1) {
        found.pipeline.order = byte_order(fields, named.configuration);
      }
    } else if (!has_bytes) {
      fields.report_unsupported("codec", format("'{}' before the bytes codec is not supported (transpose is)",
                                                printable(named.name)));
    } else {
      found.pipeline.codecs.push_back(
          zarr_json::bytes_codec(fields, named.name, named.configuration, metadata.type.bytes));
    }
  }
  if (!has_bytes) fields.report_damage("codecs", "no codec turns an array into bytes");
  return found;
}

void parse_index_codecs(MetadataParser& fields, const Json& codecs, Sharding& sharding) {
  sharding.index_has_crc = false;
  if (!codecs.is_array() || codecs.empty())
    return fields.report_damage("index_codecs", "is not a list of codecs");
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    const Extension codec = parse_extension(fields, codecs[i], "index_codecs");
    if (i == 0 && codec.name == "bytes") {
      sharding.index_order = byte_order(fields, codec.configuration);
    } else if (i == 1 && codec.name == "crc32c") {
      sharding.index_has_crc = true;
    } else {
      return fields.report_unsupported(
          "index_codecs",
          format("'{}' is not supported here (bytes, then crc32c are)", printable(codec.name)));
    }
  }
}

void parse_sharding(MetadataParser& fields, const Json& configuration, ZarrMetadata& metadata) {
  Sharding sharding;
  sharding.chunks = fields.extents(fields.at(configuration, "chunk_shape"), "chunk_shape");
  CodecChain inner = parse_codec_chain(fields, fields.at(configuration, "codecs"), metadata);
  if (inner.sharding) fields.report_unsupported("codecs", "nested shards are not supported");
  sharding.inner = std::move(inner.pipeline);
  parse_index_codecs(fields, fields.at(configuration, "index_codecs"), sharding);
  const Json& place = fields.find(configuration, "index_location");
  if (!place.is_null() && place != "start" && place != "end") {
    fields.report_damage("index_location", "is neither \"start\" nor \"end\"");
  }
  sharding.index_at = place == "start" ? Sharding::IndexAt::start : Sharding::IndexAt::end;
  metadata.sharding = std::move(sharding);
}

void parse_v3_layout(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  metadata.shape = fields.extents(fields.at(document, "shape"), "shape");
  const Extension grid = parse_extension(fields, fields.at(document, "chunk_grid"), "chunk_grid");
  if (fields.status().ok() && grid.name != "regular") {
    fields.report_unsupported("chunk_grid",
                              format("'{}' is not supported (regular is)", printable(grid.name)));
  }
  metadata.chunks = fields.extents(fields.at(grid.configuration, "chunk_shape"), "chunk_shape");
  const Extension keys =
      parse_extension(fields, fields.at(document, "chunk_key_encoding"), "chunk_key_encoding");
  if (fields.status().ok() && keys.name != "default" && keys.name != "v2") {
    fields.report_unsupported("chunk_key_encoding",
                              format("'{}' is not supported (default and v2 are)", printable(keys.name)));
  }
  metadata.has_prefix = keys.name != "v2";
  const Json& separator = fields.find(keys.configuration, "separator");
  if (!separator.is_null() && separator != "." && separator != "/") {
    fields.report_damage("separator", "is neither \".\" nor \"/\"");
  }
  metadata.separator = separator.is_null() ? (metadata.has_prefix ? '/' : '.') : separator == "/" ? '/' : '.';
}

void parse_v3_type(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  const auto text = [](const Json& value) { return json_ascii(value); };
  Result<codec::ElementType> type = parse_zarr_v3_type(text(fields.at(document, "data_type")));
  if (!type.ok()) return fields.report_unsupported("data_type", type.error());
  metadata.type = std::move(*type);
  Result<std::vector<std::byte>> fill =
      parse_fill_value(metadata.type, text(fields.at(document, "fill_value")));
  if (!fill.ok()) return fields.report_unsupported("fill_value", fill.error());
  metadata.fill = std::move(*fill);
}

void parse_names(MetadataParser& fields, const Json& document, ZarrMetadata& metadata) {
  const Json& names = fields.find(document, "dimension_names");
  if (!names.is_null()) {
    if (!names.is_array() || names.size() != metadata.shape.size()) {
      return fields.report_damage("dimension_names", "is not a name for each dimension");
    }
    for (const Json& name : names) {
      metadata.dimension_names.push_back(name.is_string() ? name.get<std::string>() : "");
    }
  }
  const Json& attributes = fields.find(document, "attributes");
  if (!attributes.is_null() && !attributes.is_object())
    return fields.report_damage("attributes", "is not an object");
  if (attributes.is_object()) metadata.attributes = json_text(attributes);
}

// An unknown extension may be ignored only with "must_understand": false.
void check_extensions(MetadataParser& fields, const Json& document) {
  constexpr std::string_view kKnown[] = {
      "zarr_format",        "node_type", "shape",      "data_type",       "chunk_grid",          "fill_value",
      "chunk_key_encoding", "codecs",    "attributes", "dimension_names", "storage_transformers"};
  for (const auto& [key, value] : document.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    if (value.is_object() && fields.find(value, "must_understand") == false) continue;
    fields.report_unsupported(printable(key), "is an unknown extension that must be understood");
  }
  const Json& transformers = fields.find(document, "storage_transformers");
  if (!transformers.is_null() && !transformers.empty()) {
    fields.report_unsupported("storage_transformers", "is not supported");
  }
}

}  // namespace

std::string_view to_text(BytesCodec::Kind kind) {
  switch (kind) {
    case BytesCodec::Kind::blosc:
      return "blosc";
    case BytesCodec::Kind::zstd:
      return "zstd";
    case BytesCodec::Kind::gzip:
      return "gzip";
    case BytesCodec::Kind::zlib:
      return "zlib";
    case BytesCodec::Kind::lz4:
      return "lz4";
    case BytesCodec::Kind::shuffle:
      return "shuffle";
    case BytesCodec::Kind::crc32c:
      return "crc32c";
  }
  return "";
}

Status check_zarr_metadata(const ZarrMetadata& metadata, std::string_view subject) {
  STOKER_RETURN_IF_ERROR(check_chunks(metadata.chunks, metadata, "chunks", subject));
  STOKER_RETURN_IF_ERROR(check_pipeline(metadata.pipeline, metadata, subject));
  if (const auto& sharding = metadata.sharding) {
    STOKER_RETURN_IF_ERROR(check_chunks(sharding->chunks, metadata, "chunk_shape", subject));
    STOKER_RETURN_IF_ERROR(check_pipeline(sharding->inner, metadata, subject));
    for (std::size_t d = 0; d < metadata.chunks.size(); ++d) {
      if (metadata.chunks[d] % sharding->chunks[d] != 0) {
        return corrupt("{}: chunk_shape: {} does not divide the shard's {}", subject, sharding->chunks[d],
                       metadata.chunks[d]);
      }
    }
  }
  if (metadata.version == 2 && (metadata.sharding || !is_reversed(metadata.pipeline.axes))) {
    return invalid("{}: version 2 has neither shards nor transposes other than order F", subject);
  }
  STOKER_RETURN_IF_ERROR(check_count(metadata, subject));
  if (!codec::product(metadata.shape, metadata.type.bytes))
    return corrupt("{}: shape: the array is too large", subject);
  const std::optional<std::uint64_t> bytes = codec::product(metadata.inner_chunks(), metadata.type.bytes);
  if (!bytes || *bytes >= kMaxChunkBytes) {
    return invalid("{}: a chunk has 2 GiB or more, which is not supported", subject);
  }
  // Whole stored objects: shards may be larger, because they are read in parts.
  if (!codec::product(metadata.chunks, metadata.type.bytes))
    return corrupt("{}: chunks: are too large", subject);
  return {};
}

std::string to_json(const ZarrMetadata& metadata) {
  if (metadata.version == 2) return v2_json(metadata);
  Json names = nullptr;
  for (const std::string& name : metadata.dimension_names)
    names.push_back(name.empty() ? Json() : Json(name));
  Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", metadata.shape},
      {"data_type", parse_json<Json>(zarr_v3_name(metadata.type))},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", metadata.chunks}}}}},
      {"chunk_key_encoding",
       {{"name", metadata.has_prefix ? "default" : "v2"},
        {"configuration", {{"separator", std::string(1, metadata.separator)}}}}},
      {"fill_value", parse_json<Json>(fill_value_json(metadata.type, metadata.fill, 3))},
      {"codecs", metadata.sharding ? Json::array({sharding_json(metadata)})
                                   : pipeline_json(metadata.pipeline, metadata)},
      {"attributes", parse_json<Json>(metadata.attributes)}};
  if (!metadata.dimension_names.empty()) document["dimension_names"] = std::move(names);
  return json_text(document, 1) + "\n";
}

std::string chunk_key(const ZarrMetadata& metadata, std::span<const std::uint64_t> chunk) {
  std::string key = metadata.has_prefix ? "c" : "";
  for (const std::uint64_t at : chunk) {
    if (!key.empty()) key += metadata.separator;
    key += std::to_string(at);
  }
  return key.empty() ? "0" : key;
}

std::string quote_bare_numbers(std::string_view json) {
  constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};
  std::string text;
  bool is_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_text && c == '\\') {
      text += c;
      if (++i < json.size()) text += json[i];
      continue;
    }
    if (c == '"') is_text = !is_text;
    const auto word = is_text ? std::end(kWords)
                              : std::find_if(std::begin(kWords), std::end(kWords),
                                             [&](auto w) { return json.substr(i).starts_with(w); });
    if (word == std::end(kWords)) {
      text += c;
      continue;
    }
    text += format("\"{}\"", *word);
    i += word->size() - 1;
  }
  return text;
}

Result<ZarrMetadata> parse_zarr_v2(std::string_view zarray, std::string_view zattrs,
                                   std::string_view subject) {
  MetadataParser fields(subject);
  ZarrMetadata metadata;
  metadata.version = 2;
  metadata.has_prefix = false;
  const Json document = parse_json<Json>(quote_bare_numbers(zarray));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", subject);
  if (fields.at(document, "zarr_format") != 2) fields.report_damage("zarr_format", "is not 2");
  parse_v2_layout(fields, document, metadata);
  parse_v2_type(fields, document, metadata);
  if (fields.status().ok()) parse_codecs(fields, document, metadata);
  STOKER_RETURN_IF_ERROR(fields.status());
  if (!zattrs.empty()) {
    const Json attributes = parse_json<Json>(quote_bare_numbers(zattrs));
    if (!attributes.is_object()) return corrupt("{}: attributes are not a JSON object", subject);
    metadata.attributes = json_text(attributes);
    const Json& names = fields.find(attributes, "_ARRAY_DIMENSIONS");  // as xarray writes them
    if (names.is_array() && names.size() == metadata.shape.size()) {
      for (const Json& name : names)
        metadata.dimension_names.push_back(name.is_string() ? name.get<std::string>() : "");
    }
  }
  STOKER_RETURN_IF_ERROR(check_zarr_metadata(metadata, subject));
  return metadata;
}

Result<ZarrMetadata> parse_zarr_v3(std::string_view json, std::string_view subject) {
  MetadataParser fields(subject);
  ZarrMetadata metadata;
  const Json document = parse_json<Json>(quote_bare_numbers(json));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", subject);
  if (fields.at(document, "zarr_format") != 3) fields.report_damage("zarr_format", "is not 3");
  if (fields.at(document, "node_type") != "array") fields.report_damage("node_type", "is not \"array\"");
  parse_v3_layout(fields, document, metadata);
  parse_v3_type(fields, document, metadata);
  parse_names(fields, document, metadata);
  check_extensions(fields, document);
  STOKER_RETURN_IF_ERROR(fields.status());
  CodecChain codecs = parse_codec_chain(fields, fields.at(document, "codecs"), metadata);
  metadata.pipeline = std::move(codecs.pipeline);
  if (fields.status().ok() && codecs.sharding) {
    parse_sharding(fields, *codecs.sharding, metadata);
    if (!metadata.pipeline.axes.empty() || !metadata.pipeline.codecs.empty()) {
      fields.report_unsupported("codecs", "a codec around sharding_indexed is not supported");
    }
  }
  STOKER_RETURN_IF_ERROR(fields.status());
  STOKER_RETURN_IF_ERROR(check_zarr_metadata(metadata, subject));
  return metadata;
}

}  // namespace stoker::arrays
