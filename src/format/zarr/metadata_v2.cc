#include "format/zarr/fields_internal.h"

namespace stoker::formats {

using zarr_json::Fields;
using zarr_json::Json;

namespace {

void take_v2_layout(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  metadata.shape = fields.extents(fields.at(document, "shape"), "shape");
  metadata.chunks = fields.extents(fields.at(document, "chunks"), "chunks");
  const std::string order = fields.text(document, "order");
  if (order != "C" && order != "F") fields.damaged("order", "is neither \"C\" nor \"F\"");
  if (order == "F") {
    for (std::size_t d = metadata.shape.size(); d-- > 0;) metadata.pipeline.axes.push_back(d);
  }
  const Json& separator = fields.find(document, "dimension_separator");
  if (!separator.is_null() && separator != "." && separator != "/") {
    fields.damaged("dimension_separator", "is neither \".\" nor \"/\"");
  }
  metadata.separator = separator == "/" ? '/' : '.';
}

// NumPy's objects: what they are, the filter says that made bytes of them.
std::optional<ElementType> type_of_objects(Fields& fields, const Json& document) {
  const Json& filters = fields.find(document, "filters");
  const Json& first = filters.is_array() && !filters.empty() ? filters[0] : fields.find(document, "");
  const Json& id = fields.find(first, "id");
  if (id == "vlen-utf8") return ElementType::of_any_length(ElementType::kText);
  if (id == "vlen-bytes") return ElementType::of_any_length(ElementType::kBytes);
  if (id == "vlen-array") {
    const Result<ZarrTypeV2> items = parse_zarr_v2_type(fields.text(first, "dtype"));
    const std::optional<DType> dtype = items.ok() ? items->type.dtype() : std::nullopt;
    if (dtype && items->order == ByteOrder::little)
      return ElementType::of_any_length(ElementType::kNumbers, *dtype);
  }
  fields.refuse("dtype", "objects of this kind are not read (vlen-utf8, vlen-bytes and vlen-array are)");
  return std::nullopt;
}

void take_v2_type(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  const Json& name = fields.at(document, "dtype");
  if (name.is_array()) return fields.refuse("dtype", "elements of several fields are not read");
  if (name == "|O") {
    const std::optional<ElementType> objects = type_of_objects(fields, document);
    if (!objects) return;
    metadata.type = *objects;
  } else {
    const Result<ZarrTypeV2> type = parse_zarr_v2_type(fields.text(document, "dtype"));
    if (!type.ok()) return fields.refuse("dtype", type.error());
    metadata.type = type->type;
    if (type->type.swap_unit() > 1) metadata.pipeline.order = type->order;
  }
  const Json& fill = fields.at(document, "fill_value");
  metadata.has_fill = !fill.is_null();
  Result<std::vector<std::byte>> bytes = parse_fill_value(metadata.type, json_ascii(fill));
  if (!bytes.ok()) return fields.refuse("fill_value", bytes.error());
  metadata.fill = std::move(*bytes);
}

void take_codecs(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  const auto add = [&](const Json& codec) {
    metadata.pipeline.codecs.push_back(
        zarr_json::bytes_codec(fields, fields.text(codec, "id"), codec, metadata.type.bytes));
  };
  const Json& filters = fields.find(document, "filters");
  if (!filters.is_null() && !filters.is_array()) fields.damaged("filters", "is not a list");
  if (filters.is_array()) {
    const bool has_objects = metadata.type.kind == ElementType::Kind::varying;
    for (std::size_t i = has_objects ? 1 : 0; i < filters.size(); ++i) add(filters[i]);
  }
  const Json& compressor = fields.find(document, "compressor");
  if (!compressor.is_null()) add(compressor);
}

}  // namespace

Result<ZarrMetadata> parse_zarr_v2(std::string_view zarray, std::string_view zattrs,
                                   std::string_view subject) {
  Fields fields(subject);
  ZarrMetadata metadata;
  metadata.version = 2;
  metadata.has_prefix = false;
  const Json document = parse_json<Json>(quote_bare_numbers(zarray));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", subject);
  if (fields.at(document, "zarr_format") != 2) fields.damaged("zarr_format", "is not 2");
  take_v2_layout(fields, document, metadata);
  take_v2_type(fields, document, metadata);
  if (fields.status().ok()) take_codecs(fields, document, metadata);
  RETURN_IF_ERROR(fields.status());
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
  RETURN_IF_ERROR(check_zarr_metadata(metadata, subject));
  return metadata;
}

}  // namespace stoker::formats
