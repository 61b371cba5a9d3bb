#include <numeric>

#include "format/zarr/fields_internal.h"

namespace stoker::formats {

using zarr_json::Fields;
using zarr_json::Json;

namespace {

// A name, or an object of a name and a configuration.
struct Extension {
  std::string name;
  Json configuration = Json::object();
};

Extension extension(Fields& fields, const Json& value, std::string_view place) {
  Extension found;
  if (value.is_string()) {
    found.name = value.get<std::string>();
    return found;
  }
  if (!value.is_object()) {
    fields.damaged(place, "is neither a name nor an object");
    return found;
  }
  found.name = fields.text(value, "name");
  const Json& configuration = fields.find(value, "configuration");
  if (configuration.is_object()) found.configuration = configuration;
  return found;
}

ByteOrder byte_order(Fields& fields, const Json& configuration) {
  const Json& endian = fields.find(configuration, "endian");
  if (!endian.is_null() && endian != "little" && endian != "big") {
    fields.damaged("endian", "is neither \"little\" nor \"big\"");
  }
  return endian == "big" ? ByteOrder::big : ByteOrder::little;
}

// Dimension i of the output is dimension order[i] of the input; several transposes are one.
void take_transpose(Fields& fields, const Json& configuration, std::size_t dimensions, Pipeline& pipeline) {
  const Json& order = fields.at(configuration, "order");
  std::vector<std::size_t> axes;
  if (order == "C" || order == "F") {  // as early writers had it
    for (std::size_t d = 0; d < dimensions; ++d) axes.push_back(order == "C" ? d : dimensions - 1 - d);
  } else {
    for (const std::uint64_t axis : fields.extents(order, "order")) axes.push_back(axis);
  }
  std::vector<bool> seen(dimensions);
  for (const std::size_t axis : axes) {
    if (axis >= dimensions || seen[axis])
      return fields.damaged("order", "is not a permutation of the dimensions");
    seen[axis] = true;
  }
  if (axes.size() != dimensions) return fields.damaged("order", "is not a permutation of the dimensions");
  if (!pipeline.axes.empty()) {
    for (std::size_t& axis : axes) axis = pipeline.axes[axis];
  }
  pipeline.axes = std::move(axes);
}

std::string_view bytes_codec_of(const ElementType& type) {
  return type.kind == ElementType::Kind::varying ? zarr_json::name_of_varying(type) : "bytes";
}

struct CodecChain {
  Pipeline pipeline;
  std::optional<Json> sharding;  // its configuration
};

CodecChain chain(Fields& fields, const Json& codecs, const ZarrMetadata& metadata) {
  CodecChain found;
  bool has_bytes = false;
  if (!codecs.is_array()) fields.damaged("codecs", "is not a list");
  for (const Json& codec : codecs) {
    Extension named = extension(fields, codec, "codec");
    if (!fields.status().ok()) return found;
    if (named.name == "transpose" && !has_bytes) {
      take_transpose(fields, named.configuration, metadata.shape.size(), found.pipeline);
    } else if (named.name == "bytes" || named.name == "sharding_indexed" || named.name == "vlen-utf8" ||
               named.name == "vlen-bytes") {
      if (has_bytes) fields.damaged("codecs", "has two that turn an array into bytes");
      has_bytes = true;
      if (named.name == "sharding_indexed") {
        found.sharding = std::move(named.configuration);
      } else if (named.name != bytes_codec_of(metadata.type)) {
        fields.refuse("codecs", format("'{}' does not go with the array's type", named.name));
      } else if (metadata.type.swap_unit() > 1) {
        found.pipeline.order = byte_order(fields, named.configuration);
      }
    } else if (!has_bytes) {
      fields.refuse("codec", format("'{}' before the elements are bytes is not read (transpose is)",
                                    printable(named.name)));
    } else {
      found.pipeline.codecs.push_back(
          zarr_json::bytes_codec(fields, named.name, named.configuration, metadata.type.bytes));
    }
  }
  if (!has_bytes) fields.damaged("codecs", "none turns an array into bytes");
  return found;
}

void take_index_codecs(Fields& fields, const Json& codecs, Sharding& sharding) {
  sharding.index_has_crc = false;
  if (!codecs.is_array() || codecs.empty()) return fields.damaged("index_codecs", "is not a list of codecs");
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    const Extension codec = extension(fields, codecs[i], "index_codecs");
    if (i == 0 && codec.name == "bytes") {
      sharding.index_order = byte_order(fields, codec.configuration);
    } else if (i == 1 && codec.name == "crc32c") {
      sharding.index_has_crc = true;
    } else {
      return fields.refuse("index_codecs",
                           format("'{}' is not read here (bytes, then crc32c are)", printable(codec.name)));
    }
  }
}

void take_sharding(Fields& fields, const Json& configuration, ZarrMetadata& metadata) {
  Sharding sharding;
  sharding.chunks = fields.extents(fields.at(configuration, "chunk_shape"), "chunk_shape");
  CodecChain inner = chain(fields, fields.at(configuration, "codecs"), metadata);
  if (inner.sharding) fields.refuse("codecs", "shards inside shards are not read");
  sharding.inner = std::move(inner.pipeline);
  take_index_codecs(fields, fields.at(configuration, "index_codecs"), sharding);
  const Json& place = fields.find(configuration, "index_location");
  if (!place.is_null() && place != "start" && place != "end") {
    fields.damaged("index_location", "is neither \"start\" nor \"end\"");
  }
  sharding.index_at = place == "start" ? Sharding::IndexAt::start : Sharding::IndexAt::end;
  metadata.sharding = std::move(sharding);
}

void take_v3_layout(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  metadata.shape = fields.extents(fields.at(document, "shape"), "shape");
  const Extension grid = extension(fields, fields.at(document, "chunk_grid"), "chunk_grid");
  if (fields.status().ok() && grid.name != "regular") {
    fields.refuse("chunk_grid", format("'{}' is not read (regular is)", printable(grid.name)));
  }
  metadata.chunks = fields.extents(fields.at(grid.configuration, "chunk_shape"), "chunk_shape");
  const Extension keys = extension(fields, fields.at(document, "chunk_key_encoding"), "chunk_key_encoding");
  if (fields.status().ok() && keys.name != "default" && keys.name != "v2") {
    fields.refuse("chunk_key_encoding",
                  format("'{}' is not read (default and v2 are)", printable(keys.name)));
  }
  metadata.has_prefix = keys.name != "v2";
  const Json& separator = fields.find(keys.configuration, "separator");
  if (!separator.is_null() && separator != "." && separator != "/") {
    fields.damaged("separator", "is neither \".\" nor \"/\"");
  }
  metadata.separator = separator.is_null() ? (metadata.has_prefix ? '/' : '.') : separator == "/" ? '/' : '.';
}

void take_v3_type(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  const auto text = [](const Json& value) { return json_ascii(value); };
  Result<ElementType> type = parse_zarr_v3_type(text(fields.at(document, "data_type")));
  if (!type.ok()) return fields.refuse("data_type", type.error());
  metadata.type = std::move(*type);
  Result<std::vector<std::byte>> fill =
      parse_fill_value(metadata.type, text(fields.at(document, "fill_value")));
  if (!fill.ok()) return fields.refuse("fill_value", fill.error());
  metadata.fill = std::move(*fill);
}

void take_names(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  const Json& names = fields.find(document, "dimension_names");
  if (!names.is_null()) {
    if (!names.is_array() || names.size() != metadata.shape.size()) {
      return fields.damaged("dimension_names", "is not a name for each dimension");
    }
    for (const Json& name : names) {
      metadata.dimension_names.push_back(name.is_string() ? name.get<std::string>() : "");
    }
  }
  const Json& attributes = fields.find(document, "attributes");
  if (!attributes.is_null() && !attributes.is_object())
    return fields.damaged("attributes", "is not an object");
  if (attributes.is_object()) metadata.attributes = json_text(attributes);
}

// An extension that is not known may be passed over only if it says so.
void check_extensions(Fields& fields, const Json& document) {
  constexpr std::string_view kKnown[] = {
      "zarr_format",        "node_type", "shape",      "data_type",       "chunk_grid",          "fill_value",
      "chunk_key_encoding", "codecs",    "attributes", "dimension_names", "storage_transformers"};
  for (const auto& [key, value] : document.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    if (value.is_object() && fields.find(value, "must_understand") == false) continue;
    fields.refuse(printable(key), "is an extension that is not known and must be");
  }
  const Json& transformers = fields.find(document, "storage_transformers");
  if (!transformers.is_null() && !transformers.empty()) {
    fields.refuse("storage_transformers", "none is read");
  }
}

}  // namespace

Result<ZarrMetadata> parse_zarr_v3(std::string_view json, std::string_view subject) {
  Fields fields(subject);
  ZarrMetadata metadata;
  const Json document = parse_json<Json>(quote_bare_numbers(json));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", subject);
  if (fields.at(document, "zarr_format") != 3) fields.damaged("zarr_format", "is not 3");
  if (fields.at(document, "node_type") != "array") fields.damaged("node_type", "is not \"array\"");
  take_v3_layout(fields, document, metadata);
  take_v3_type(fields, document, metadata);
  take_names(fields, document, metadata);
  check_extensions(fields, document);
  RETURN_IF_ERROR(fields.status());
  CodecChain codecs = chain(fields, fields.at(document, "codecs"), metadata);
  metadata.pipeline = std::move(codecs.pipeline);
  if (fields.status().ok() && codecs.sharding) {
    take_sharding(fields, *codecs.sharding, metadata);
    if (!metadata.pipeline.axes.empty() || !metadata.pipeline.codecs.empty()) {
      fields.refuse("codecs", "a codec around sharding_indexed is not read");
    }
  }
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(check_zarr_metadata(metadata, subject));
  return metadata;
}

}  // namespace stoker::formats
