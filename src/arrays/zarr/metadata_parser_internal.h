// Reads the fields of a Zarr metadata document and keeps the first error, with its place; shared by the
// parsers of both versions. Used only inside this folder, because it includes nlohmann's header.
// Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "arrays/zarr/metadata.h"
#include "base/json/json.h"
#include "codec/chunks/box.h"
#include "stoker/status.h"

namespace stoker::arrays::zarr_json {

using Json = nlohmann::ordered_json;

class MetadataParser {
 public:
  explicit MetadataParser(std::string_view subject) : subject_(subject) {}

  const Status& status() const { return status_; }
  /// Reports an invalid document.
  void report_damage(std::string_view place, std::string_view what) {
    if (status_.ok()) status_ = corrupt("{}: {}: {}", subject_, place, what);
  }
  /// Reports an unsupported feature.
  void report_unsupported(std::string_view place, std::string_view what) {
    if (status_.ok()) status_ = invalid("{}: {}: {}", subject_, place, what);
  }
  void report_unsupported(std::string_view place, const Status& why) {
    if (status_.ok()) status_ = Status(why).with_context(format("{}: {}", subject_, place));
  }

  /// The value, or null.
  const Json& find(const Json& object, std::string_view key) const {
    static const Json kNone;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? kNone : *found;
  }
  const Json& at(const Json& object, std::string_view key) {
    const Json& value = find(object, key);
    if (!object.is_object() || !object.contains(key)) report_damage(key, "is missing");
    return value;
  }
  std::string text(const Json& object, std::string_view key) {
    const Json& value = at(object, key);
    if (value.is_string()) return value.get<std::string>();
    report_damage(key, "is not text");
    return {};
  }
  std::int64_t integer(const Json& object, std::string_view key, std::int64_t fallback) {
    const Json& value = find(object, key);
    if (value.is_null()) return fallback;
    if (value.is_number_integer() && value >= -1'000'000'000 && value <= 1'000'000'000) return value;
    report_damage(key, "is not a whole number");
    return fallback;
  }
  bool boolean(const Json& object, std::string_view key, bool fallback) {
    const Json& value = find(object, key);
    if (value.is_null()) return fallback;
    if (value.is_boolean()) return value;
    report_damage(key, "is neither true nor false");
    return fallback;
  }
  codec::Extents extents(const Json& value, std::string_view place) {
    codec::Extents sizes;
    if (!value.is_array()) {
      report_damage(place, "is not a list of sizes");
      return sizes;
    }
    if (value.size() > codec::kMaxDimensions) {
      report_unsupported(
          place, format("has {} dimensions (at most {} are supported)", value.size(), codec::kMaxDimensions));
      return sizes;
    }
    for (const Json& size : value) {
      if (!size.is_number_unsigned()) {
        report_damage(place, "is not a list of sizes");
        return sizes;
      }
      sizes.push_back(size.get<std::uint64_t>());
    }
    return sizes;
  }

 private:
  std::string subject_;
  Status status_;
};

/// A codec configuration of numcodecs or version 3: `name`, and the rest in `fields_of`. Reports an
/// unsupported codec by name.
BytesCodec bytes_codec(MetadataParser& fields, std::string_view name, const Json& fields_of,
                       std::uint32_t element_bytes);
/// The codec of variable-length values: a filter in version 2, a codec in version 3.
inline std::string_view varying_codec_name(const codec::ElementType& type) {
  return type.letter == codec::ElementType::kText    ? "vlen-utf8"
         : type.letter == codec::ElementType::kBytes ? "vlen-bytes"
                                                     : "vlen-array";
}
/// Name and configuration, in the format of that version.
Json codec_json(const BytesCodec& codec, int version);

}  // namespace stoker::arrays::zarr_json
