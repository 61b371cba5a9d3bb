#include "transfer/copy_marker.h"

#include "base/json/json.h"
#include "stage/listing.h"

namespace stoker::transfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

bool read_file_entry(const Json& entry, CopiedFile* file) {
  if (!entry.is_object() || !entry.contains("name") || !entry.contains("bytes")) return false;
  if (!entry["name"].is_string() || !entry["bytes"].is_number_unsigned()) return false;
  file->name = entry["name"].get<std::string>();
  file->bytes = entry["bytes"].get<std::uint64_t>();
  const auto clean = stage::clean_name("", file->name);
  return clean.ok() && *clean == file->name && !file->name.empty();
}

}  // namespace

std::string to_json(const CopyMarker& marker) {
  Json files = Json::array();
  for (const CopiedFile& file : marker.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return json_text(Json{{"format", kFormat},
                        {"version", marker.version},
                        {"source", printable(marker.source)},
                        {"files", files}},
                   1) +
         "\n";
}

Result<CopyMarker> parse_copy_marker(std::string_view json, std::string_view subject) {
  const Json object = parse_json<Json>(json);
  const Status wrong = corrupt("{}: is not a list of copied files", subject);
  if (!object.is_object() || !object.contains("format") || !object.contains("version") ||
      !object.contains("source") || !object.contains("files"))
    return wrong;
  if (object["format"] != kFormat) {
    return corrupt("{}: has format {}, this stoker reads {}", subject, printable(json_text(object["format"])),
                   kFormat)
        .cure("update Stoker");
  }
  if (!object["version"].is_string() || !object["source"].is_string() || !object["files"].is_array())
    return wrong;
  CopyMarker marker{.version = object["version"].get<std::string>(),
                    .source = object["source"].get<std::string>(),
                    .files = {}};
  for (const Json& entry : object["files"]) {
    CopiedFile file;
    if (!read_file_entry(entry, &file)) return wrong;
    marker.files.push_back(std::move(file));
  }
  return marker;
}

}  // namespace stoker::transfer
