#include <array>
#include <utility>

#include "format/zarr/fields_internal.h"

namespace stoker::formats {

namespace {

constexpr std::array<std::string_view, 7> kKinds = {"blosc", "zstd",    "gzip",  "zlib",
                                                    "lz4",   "shuffle", "crc32c"};
constexpr std::array<std::string_view, 6> kCompressors = {"blosclz", "lz4",  "lz4hc",
                                                          "snappy",  "zlib", "zstd"};
constexpr std::array<std::string_view, 3> kShuffles = {"noshuffle", "shuffle", "bitshuffle"};
constexpr int kMostLevel = 22;  // of zstd, the highest there is

}  // namespace

std::string_view to_text(BytesCodec::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

namespace zarr_json {

namespace {

// Version 2 counts the ways (-1: bits for single bytes), version 3 names them.
BytesCodec::Shuffle shuffle_way(Fields& fields, const Json& value, std::uint32_t element_bytes) {
  using Shuffle = BytesCodec::Shuffle;
  if (value.is_null()) return element_bytes > 1 ? Shuffle::bytes : Shuffle::none;
  if (value == -1) return element_bytes == 1 ? Shuffle::bits : Shuffle::bytes;
  for (std::size_t i = 0; i < kShuffles.size(); ++i) {
    if (value == static_cast<int>(i) || value == kShuffles[i]) return static_cast<Shuffle>(i);
  }
  fields.damaged("shuffle", "is none of 0, 1, 2, noshuffle, shuffle, bitshuffle");
  return Shuffle::none;
}

void take_blosc(Fields& fields, const Json& from, std::uint32_t element_bytes, BytesCodec& codec) {
  // numcodecs' own where it is left out.
  codec.compressor = from.contains("cname") ? fields.text(from, "cname") : "lz4";
  if (std::find(kCompressors.begin(), kCompressors.end(), codec.compressor) == kCompressors.end()) {
    fields.refuse("cname", format("blosc has no compressor '{}'{}", printable(codec.compressor),
                                  suggestion(codec.compressor, kCompressors)));
  }
  codec.level = static_cast<int>(fields.integer(from, "clevel", 5));
  // Version 2 has no such setting: it is the array's.
  const std::int64_t typesize = from.contains("id") ? 0 : fields.integer(from, "typesize", 0);
  codec.element_bytes = typesize > 0 ? static_cast<std::uint32_t>(typesize) : element_bytes;
  codec.shuffle = shuffle_way(fields, fields.find(from, "shuffle"), codec.element_bytes);
  codec.block_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, fields.integer(from, "blocksize", 0)));
  if (codec.level < 0 || codec.level > 9) fields.damaged("clevel", "is not a level (0 to 9)");
}

}  // namespace

BytesCodec bytes_codec(Fields& fields, std::string_view name, const Json& from, std::uint32_t element_bytes) {
  using Kind = BytesCodec::Kind;
  BytesCodec codec;
  if (name.starts_with("numcodecs.")) name.remove_prefix(std::string_view("numcodecs.").size());
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) {
    fields.refuse("codec", format("'{}' is not read (blosc, zstd, gzip, zlib, lz4, shuffle and crc32c are)",
                                  printable(name)));
    return codec;
  }
  codec.kind = static_cast<Kind>(found - kKinds.begin());
  if (codec.kind == Kind::blosc) {
    take_blosc(fields, from, element_bytes, codec);
  } else if (codec.kind == Kind::shuffle) {
    codec.element_bytes = static_cast<std::uint32_t>(fields.integer(from, "elementsize", 4));
    if (codec.element_bytes == 0 || codec.element_bytes > 4096)
      fields.damaged("elementsize", "is not a size");
  } else if (codec.kind == Kind::crc32c) {
    const Json& location = fields.find(from, "location");
    codec.is_crc_first = location == "start";
    if (!location.is_null() && location != "start" && location != "end")
      fields.damaged("location", "is neither \"start\" nor \"end\"");
  } else if (codec.kind != Kind::lz4) {
    codec.level = static_cast<int>(fields.integer(from, "level", codec.kind == Kind::zstd ? 0 : 1));
    codec.has_checksum = codec.kind == Kind::zstd && fields.truth(from, "checksum", false);
    if (codec.level > kMostLevel) fields.damaged("level", "is not a level");
  }
  return codec;
}

Json codec_json(const BytesCodec& codec, int version) {
  using Kind = BytesCodec::Kind;
  Json settings = Json::object();
  if (codec.kind == Kind::blosc) {
    settings["cname"] = codec.compressor;
    settings["clevel"] = codec.level;
    const auto way = static_cast<std::size_t>(codec.shuffle);
    settings["shuffle"] = version == 2 ? Json(way) : Json(kShuffles[way]);
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
}  // namespace stoker::formats
