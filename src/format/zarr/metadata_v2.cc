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

void take_v2_type(Fields& fields, const Json& document, ZarrMetadata& metadata) {
  const Json& name = fields.at(document, "dtype");
  if (name.is_array()) return fields.refuse("dtype", "elements of several fields are not read");
  const Result<ZarrTypeV2> type = parse_zarr_v2_type(fields.text(document, "dtype"));
  if (!type.ok()) return fields.refuse("dtype", type.error());
  metadata.type = type->type;
  if (type->type.swap_unit() > 1) metadata.pipeline.order = type->order;
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
    for (const Json& filter : filters) add(filter);
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
