#include "format/zarr/metadata.h"

#include <algorithm>

#include "format/zarr/fields_internal.h"

namespace stoker::formats {

using zarr_json::Json;

namespace {

constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 31;  // what blosc, and most readers, can hold

bool compresses(BytesCodec::Kind kind) {
  return kind != BytesCodec::Kind::shuffle && kind != BytesCodec::Kind::crc32c;
}

Status check_pipeline(const Pipeline& pipeline, const ZarrMetadata& metadata, std::string_view subject) {
  const auto compressors = std::count_if(pipeline.codecs.begin(), pipeline.codecs.end(),
                                         [](const BytesCodec& codec) { return compresses(codec.kind); });
  if (compressors > 1)
    return invalid("{}: codecs: two compressors, one after the other, are not read", subject);
  if (!pipeline.axes.empty() && pipeline.axes.size() != metadata.shape.size()) {
    return corrupt("{}: codecs: a transpose of another number of dimensions", subject);
  }
  return {};
}

Status check_chunks(const Extents& chunks, const ZarrMetadata& metadata, std::string_view what,
                    std::string_view subject) {
  if (chunks.size() != metadata.shape.size()) {
    return corrupt("{}: {}: has {} sizes, the shape has {}", subject, what, chunks.size(),
                   metadata.shape.size());
  }
  if (std::find(chunks.begin(), chunks.end(), 0) != chunks.end())
    return corrupt("{}: {}: a size is 0", subject, what);
  return {};
}

// Chunks of the array along each dimension, all of them counted.
Status check_count(const ZarrMetadata& metadata, std::string_view subject) {
  Extents counts;
  const Extents& chunks = metadata.inner_chunks();
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    // Whole stored objects: a shard at the edge has all its chunks.
    const std::uint64_t stored =
        metadata.shape[d] / metadata.chunks[d] + (metadata.shape[d] % metadata.chunks[d] != 0);
    const std::optional<std::uint64_t> inside = product(Extents{stored, metadata.chunks[d] / chunks[d]});
    if (!inside) return corrupt("{}: shape: the array is too large", subject);
    counts.push_back(*inside);
  }
  if (!product(counts)) return corrupt("{}: shape: the array is too large", subject);
  return {};
}

Json pipeline_json(const Pipeline& pipeline, const ZarrMetadata& metadata) {
  Json codecs = Json::array();
  if (!pipeline.axes.empty())
    codecs.push_back({{"name", "transpose"}, {"configuration", {{"order", pipeline.axes}}}});
  Json bytes = {{"name", "bytes"}};
  if (metadata.type.kind == ElementType::Kind::varying)
    bytes["name"] = zarr_json::name_of_varying(metadata.type);
  if (metadata.type.swap_unit() > 1) {
    bytes["configuration"] = {{"endian", pipeline.order == ByteOrder::big ? "big" : "little"}};
  }
  codecs.push_back(std::move(bytes));
  for (const BytesCodec& codec : pipeline.codecs) codecs.push_back(zarr_json::codec_json(codec, 3));
  return codecs;
}

Json sharding_json(const ZarrMetadata& metadata) {
  const Sharding& sharding = *metadata.sharding;
  Json index = Json::array(
      {{{"name", "bytes"},
        {"configuration", {{"endian", sharding.index_order == ByteOrder::big ? "big" : "little"}}}}});
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
  if (metadata.type.kind == ElementType::Kind::varying) {
    filters.push_back({{"id", zarr_json::name_of_varying(metadata.type)}});
    if (metadata.type.letter == ElementType::kNumbers)
      filters[0]["dtype"] = zarr_v2_name(element_type(metadata.type.of), ByteOrder::little).value_or("");
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

}  // namespace

Status check_zarr_metadata(const ZarrMetadata& metadata, std::string_view subject) {
  RETURN_IF_ERROR(check_chunks(metadata.chunks, metadata, "chunks", subject));
  RETURN_IF_ERROR(check_pipeline(metadata.pipeline, metadata, subject));
  if (const auto& sharding = metadata.sharding) {
    RETURN_IF_ERROR(check_chunks(sharding->chunks, metadata, "chunk_shape", subject));
    RETURN_IF_ERROR(check_pipeline(sharding->inner, metadata, subject));
    for (std::size_t d = 0; d < metadata.chunks.size(); ++d) {
      if (metadata.chunks[d] % sharding->chunks[d] != 0) {
        return corrupt("{}: chunk_shape: {} does not divide the shard's {}", subject, sharding->chunks[d],
                       metadata.chunks[d]);
      }
    }
  }
  if (metadata.version == 2 && (metadata.sharding || !is_reversed(metadata.pipeline.axes))) {
    return invalid("{}: version 2 knows neither shards nor transposes but order F", subject);
  }
  RETURN_IF_ERROR(check_count(metadata, subject));
  if (!product(metadata.shape, metadata.type.bytes))
    return corrupt("{}: shape: the array is too large", subject);
  const std::optional<std::uint64_t> bytes = product(metadata.inner_chunks(), metadata.type.bytes);
  if (!bytes || *bytes >= kMostChunkBytes) {
    return invalid("{}: a chunk has 2 GiB or more, which is not read", subject);
  }
  // Whole stored objects: shards may be larger, as they are read by parts.
  if (!product(metadata.chunks, metadata.type.bytes)) return corrupt("{}: chunks: are too large", subject);
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

}  // namespace stoker::formats
