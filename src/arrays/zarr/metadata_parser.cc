#include <array>
#include <utility>

#include "arrays/zarr/metadata_parser_internal.h"

namespace stoker::arrays {

namespace {

constexpr std::array<std::string_view, 7> kKinds = {"blosc", "zstd",    "gzip",  "zlib",
                                                    "lz4",   "shuffle", "crc32c"};
constexpr std::array<std::string_view, 6> kCompressors = {"blosclz", "lz4",  "lz4hc",
                                                          "snappy",  "zlib", "zstd"};
constexpr std::array<std::string_view, 3> kShuffles = {"noshuffle", "shuffle", "bitshuffle"};
constexpr int kMaxLevel = 22;  // zstd's maximum

}  // namespace

namespace zarr_json {

namespace {

// Version 2 numbers the modes (-1: bits for single bytes), version 3 names them.
BytesCodec::Shuffle parse_shuffle(MetadataParser& fields, const Json& value, std::uint32_t element_bytes) {
  using Shuffle = BytesCodec::Shuffle;
  if (value.is_null()) return element_bytes > 1 ? Shuffle::bytes : Shuffle::none;
  if (value == -1) return element_bytes == 1 ? Shuffle::bits : Shuffle::bytes;
  for (std::size_t i = 0; i < kShuffles.size(); ++i) {
    if (value == static_cast<int>(i) || value == kShuffles[i]) return static_cast<Shuffle>(i);
  }
  fields.report_damage("shuffle", "is not one of 0, 1, 2, noshuffle, shuffle, bitshuffle");
  return Shuffle::none;
}

void parse_blosc(MetadataParser& fields, const Json& from, std::uint32_t element_bytes, BytesCodec& codec) {
  // Default values are numcodecs'.
  codec.compressor = from.contains("cname") ? fields.text(from, "cname") : "lz4";
  if (std::find(kCompressors.begin(), kCompressors.end(), codec.compressor) == kCompressors.end()) {
    fields.report_unsupported("cname", format("blosc has no compressor '{}'{}", printable(codec.compressor),
                                              suggestion(codec.compressor, kCompressors)));
  }
  codec.level = static_cast<int>(fields.integer(from, "clevel", 5));
  // Version 2 has no such setting: the array's element size applies.
  const std::int64_t typesize = from.contains("id") ? 0 : fields.integer(from, "typesize", 0);
  codec.element_bytes = typesize > 0 ? static_cast<std::uint32_t>(typesize) : element_bytes;
  codec.shuffle = parse_shuffle(fields, fields.find(from, "shuffle"), codec.element_bytes);
  codec.block_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, fields.integer(from, "blocksize", 0)));
  if (codec.level < 0 || codec.level > 9) fields.report_damage("clevel", "is not a level (0 to 9)");
}

}  // namespace

BytesCodec bytes_codec(MetadataParser& fields, std::string_view name, const Json& from,
                       std::uint32_t element_bytes) {
  using Kind = BytesCodec::Kind;
  BytesCodec codec;
  if (name.starts_with("numcodecs.")) name.remove_prefix(std::string_view("numcodecs.").size());
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) {
    fields.report_unsupported(
        "codec", format("'{}' is not supported (blosc, zstd, gzip, zlib, lz4, shuffle and crc32c are)",
                        printable(name)));
    return codec;
  }
  codec.kind = static_cast<Kind>(found - kKinds.begin());
  if (codec.kind == Kind::blosc) {
    parse_blosc(fields, from, element_bytes, codec);
  } else if (codec.kind == Kind::shuffle) {
    codec.element_bytes = static_cast<std::uint32_t>(fields.integer(from, "elementsize", 4));
    if (codec.element_bytes == 0 || codec.element_bytes > 4096)
      fields.report_damage("elementsize", "is not a size");
  } else if (codec.kind == Kind::crc32c) {
    const Json& location = fields.find(from, "location");
    codec.is_crc_first = location == "start";
    if (!location.is_null() && location != "start" && location != "end")
      fields.report_damage("location", "is neither \"start\" nor \"end\"");
  } else if (codec.kind != Kind::lz4) {
    codec.level = static_cast<int>(fields.integer(from, "level", codec.kind == Kind::zstd ? 0 : 1));
    codec.has_checksum = codec.kind == Kind::zstd && fields.boolean(from, "checksum", false);
    if (codec.level > kMaxLevel) fields.report_damage("level", "is not a level");
  }
  return codec;
}

Json codec_json(const BytesCodec& codec, int version) {
  using Kind = BytesCodec::Kind;
  Json settings = Json::object();
  if (codec.kind == Kind::blosc) {
    settings["cname"] = codec.compressor;
    settings["clevel"] = codec.level;
    const auto shuffle = static_cast<std::size_t>(codec.shuffle);
    settings["shuffle"] = version == 2 ? Json(shuffle) : Json(kShuffles[shuffle]);
    if (version == 3) settings["typesize"] = codec.element_bytes;
    settings["blocksize"] = codec.block_bytes;
  } else if (codec.kind == Kind::shuffle) {
    settings["elementsize"] = codec.element_bytes;
  } else if (codec.kind == Kind::lz4) {
    settings["acceleration"] = 1;
  } else if (codec.kind == Kind::crc32c) {
    if (codec.is_crc_first) settings["location"] = "start";
  } else {
    settings["level"] = codec.level;
    if (codec.kind == Kind::zstd && (version == 3 || codec.has_checksum))
      settings["checksum"] = codec.has_checksum;
  }
  if (version == 2) {
    Json named = {{"id", to_text(codec.kind)}};
    named.update(settings);
    return named;
  }
  const bool is_extension = codec.kind == Kind::zlib || codec.kind == Kind::lz4 ||
                            codec.kind == Kind::shuffle || codec.is_crc_first;
  Json named = {{"name", format("{}{}", is_extension ? "numcodecs." : "", to_text(codec.kind))}};
  if (!settings.empty()) named["configuration"] = std::move(settings);
  return named;
}

}  // namespace zarr_json
}  // namespace stoker::arrays
