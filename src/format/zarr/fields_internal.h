// Takes fields out of a Zarr metadata document and remembers the first thing that is wrong, with its place;
// what the two versions' parsers share. Used only inside this folder: sees nlohmann's header.
// Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"
#include "base/status.h"
#include "format/chunks/box.h"
#include "format/zarr/metadata.h"

namespace stoker::formats::zarr_json {

using Json = nlohmann::ordered_json;

class Fields {
 public:
  explicit Fields(std::string_view subject) : subject_(subject) {}

  const Status& status() const { return status_; }
  /// The document is not what it should be.
  void damaged(std::string_view place, std::string_view what) {
    if (status_.ok()) status_ = corrupt("{}: {}: {}", subject_, place, what);
  }
  /// It is well formed, but not something we read.
  void refuse(std::string_view place, std::string_view what) {
    if (status_.ok()) status_ = invalid("{}: {}: {}", subject_, place, what);
  }
  void refuse(std::string_view place, const Status& why) {
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
    if (!object.is_object() || !object.contains(key)) damaged(key, "is missing");
    return value;
  }
  std::string text(const Json& object, std::string_view key) {
    const Json& value = at(object, key);
    if (value.is_string()) return value.get<std::string>();
    damaged(key, "is not text");
    return {};
  }
  std::int64_t integer(const Json& object, std::string_view key, std::int64_t otherwise) {
    const Json& value = find(object, key);
    if (value.is_null()) return otherwise;
    if (value.is_number_integer() && value >= -1'000'000'000 && value <= 1'000'000'000) return value;
    damaged(key, "is not a whole number");
    return otherwise;
  }
  bool truth(const Json& object, std::string_view key, bool otherwise) {
    const Json& value = find(object, key);
    if (value.is_null()) return otherwise;
    if (value.is_boolean()) return value;
    damaged(key, "is neither true nor false");
    return otherwise;
  }
  Extents extents(const Json& value, std::string_view place) {
    Extents sizes;
    if (!value.is_array()) {
      damaged(place, "is not a list of sizes");
      return sizes;
    }
    if (value.size() > kMostDimensions) {
      refuse(place, format("has {} dimensions (at most {} are read)", value.size(), kMostDimensions));
      return sizes;
    }
    for (const Json& size : value) {
      if (!size.is_number_unsigned()) {
        damaged(place, "is not a list of sizes");
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

/// A numcodecs or version 3 codec configuration: `name` with the rest in `fields_of`. Refuses by name what is
/// not read.
BytesCodec bytes_codec(Fields& fields, std::string_view name, const Json& fields_of,
                       std::uint32_t element_bytes);
/// What makes bytes of values of different lengths: a filter of version 2, a codec of version 3.
inline std::string_view name_of_varying(const ElementType& type) {
  return type.letter == ElementType::kText    ? "vlen-utf8"
         : type.letter == ElementType::kBytes ? "vlen-bytes"
                                              : "vlen-array";
}
/// Name, and configuration as version 3 has it.
Json codec_json(const BytesCodec& codec, int version);

}  // namespace stoker::formats::zarr_json
