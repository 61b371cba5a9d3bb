#include "format/zarr/store.h"

#include <algorithm>
#include <map>

#include "format/zarr/fields_internal.h"

namespace stoker::formats {

using zarr_json::Json;

namespace {

constexpr ByteCount kMetadataLimit = 64_MiB;
constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kDeepest = 32;

// The file's text; nothing if there is none.
Result<std::optional<std::string>> text_of(const Path& file) {
  if (!path_exists(file)) return std::optional<std::string>();
  OK_OR_RETURN(text, read_file(file, kMetadataLimit));
  return std::optional(std::move(text));
}

bool is_node(const Json& document, std::string_view kind) {
  const auto found = document.is_object() ? document.find("node_type") : document.end();
  return document.is_object() && found != document.end() && *found == kind;
}

std::string compact(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Consolidated metadata: the documents of each node, by their keys.
using Documents = std::map<std::string, Json, std::less<>>;

Result<Documents> documents_of_v2(const Path& store) {
  Documents documents;
  OK_OR_RETURN(text, text_of(store / ".zmetadata"));
  if (!text) return documents;
  const Json document = zarr_json::parsed(quote_bare_numbers(*text));
  const auto metadata = document.is_object() ? document.find("metadata") : document.end();
  if (!document.is_object() || metadata == document.end() || !metadata->is_object()) {
    return corrupt("{}: is no consolidated metadata", store / ".zmetadata");
  }
  for (const auto& [key, value] : metadata->items()) documents[key] = value;
  return documents;
}

Result<Documents> documents_of_v3(const Path& store) {
  Documents documents;
  OK_OR_RETURN(text, text_of(store / "zarr.json"));
  if (!text) return documents;
  const Json document = zarr_json::parsed(quote_bare_numbers(*text));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", store / "zarr.json");
  documents[""] = document;
  const auto consolidated = document.find("consolidated_metadata");
  if (consolidated == document.end() || consolidated->is_null()) return documents;
  const auto metadata = consolidated->is_object() ? consolidated->find("metadata") : consolidated->end();
  if (!consolidated->is_object() || metadata == consolidated->end() || !metadata->is_object()) {
    return corrupt("{}: consolidated_metadata: is not an object", store / "zarr.json");
  }
  for (const auto& [key, value] : metadata->items()) documents[key] = value;
  return documents;
}

std::string key_of(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : format("{}/{}", path, name);
}

Result<ZarrMetadata> no_array(const Path& store, std::string_view path) {
  OK_OR_RETURN(v3, documents_of_v3(store));
  if (const auto found = v3.find(path); found != v3.end() && !path.empty()) {
    if (is_node(found->second, "group")) {
      return invalid("{}: '{}' is a group, not an array", store, path);
    }
    return parse_zarr_v3(compact(found->second), format("{}: consolidated '{}'", store / "zarr.json", path));
  }
  OK_OR_RETURN(v2, documents_of_v2(store));
  if (const auto found = v2.find(key_of(path, ".zarray")); found != v2.end()) {
    const auto attributes = v2.find(key_of(path, ".zattrs"));
    return parse_zarr_v2(compact(found->second), attributes == v2.end() ? "" : compact(attributes->second),
                         format("{}: consolidated '{}'", store / ".zmetadata", path));
  }
  const Path folder = path.empty() ? store : store / path;
  if (path_exists(folder / ".zgroup") || v2.contains(key_of(path, ".zgroup"))) {
    return invalid("{}: '{}' is a group, not an array", store, path);
  }
  return not_found("{}: no Zarr array '{}'", store, path);
}

// What a folder is by its own files.
Result<std::optional<ZarrNode>> node_at(const Path& folder, const std::string& path) {
  OK_OR_RETURN(v3, text_of(folder / "zarr.json"));
  if (v3) {
    const Json document = zarr_json::parsed(quote_bare_numbers(*v3));
    if (!document.is_object()) return corrupt("{}: is not a JSON object", folder / "zarr.json");
    const bool is_array = is_node(document, "array");
    return std::optional(ZarrNode{path, is_array ? ZarrNode::Kind::array : ZarrNode::Kind::group, 3});
  }
  if (path_exists(folder / ".zarray")) return std::optional(ZarrNode{path, ZarrNode::Kind::array, 2});
  if (path_exists(folder / ".zgroup")) return std::optional(ZarrNode{path, ZarrNode::Kind::group, 2});
  return std::optional<ZarrNode>();
}

Status walk(const Path& store, const std::string& path, std::size_t depth, std::vector<ZarrNode>& nodes) {
  if (depth > kDeepest) return invalid("{}: groups are more than {} deep", store, kDeepest);
  const Path folder = path.empty() ? store : store / path;
  OK_OR_RETURN(node, node_at(folder, path));
  if (node) nodes.push_back(*node);
  if (nodes.size() > kMostNodes) return invalid("{}: holds more than {} nodes", store, kMostNodes);
  if (!node || node->kind == ZarrNode::Kind::array) return {};
  OK_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (name.starts_with('.') || !unsafe_node(name).empty() || !folder_exists(folder / name)) continue;
    RETURN_IF_ERROR(walk(store, key_of(path, name), depth + 1, nodes));
  }
  return {};
}

Status add_consolidated(const Documents& v3, const Documents& v2, std::vector<ZarrNode>& nodes) {
  for (const auto& [key, value] : v3) {
    if (!unsafe_node(key).empty()) return corrupt("consolidated metadata names '{}'", printable(key));
    const bool is_array = is_node(value, "array");
    nodes.push_back({key, is_array ? ZarrNode::Kind::array : ZarrNode::Kind::group, 3});
  }
  for (const auto& [key, value] : v2) {
    const std::size_t slash = key.rfind('/');
    const std::string path = slash == std::string::npos ? "" : key.substr(0, slash);
    const std::string name = slash == std::string::npos ? key : key.substr(slash + 1);
    if (!unsafe_node(path).empty()) return corrupt("consolidated metadata names '{}'", printable(path));
    if (name == ".zarray") nodes.push_back({path, ZarrNode::Kind::array, 2});
    if (name == ".zgroup") nodes.push_back({path, ZarrNode::Kind::group, 2});
  }
  return {};
}

}  // namespace

std::string_view unsafe_node(std::string_view path) {
  constexpr std::size_t kLongest = 1024;
  if (path.empty()) return "";
  if (path.size() > kLongest) return "is too long";
  if (printable(path) != path) return "has control bytes";
  for (const std::string_view part : split(path, '/')) {
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "leaves the store";
  }
  return "";
}

Result<ZarrMetadata> read_zarr_metadata(const Path& store, std::string_view path) {
  if (const std::string_view why = unsafe_node(path); !why.empty()) {
    return invalid("{}: the name '{}' {}", store, printable(path), why);
  }
  const Path folder = path.empty() ? store : store / path;
  OK_OR_RETURN(v3, text_of(folder / "zarr.json"));
  if (v3) {
    const Json document = zarr_json::parsed(quote_bare_numbers(*v3));
    if (is_node(document, "group")) {
      return invalid("{}: '{}' is a group, not an array", store, path);
    }
    return parse_zarr_v3(*v3, (folder / "zarr.json").string());
  }
  OK_OR_RETURN(v2, text_of(folder / ".zarray"));
  if (!v2) return no_array(store, path);
  OK_OR_RETURN(attributes, text_of(folder / ".zattrs"));
  return parse_zarr_v2(*v2, attributes.value_or(""), (folder / ".zarray").string());
}

Result<std::vector<ZarrNode>> list_zarr(const Path& store) {
  std::vector<ZarrNode> nodes;
  OK_OR_RETURN(v3, documents_of_v3(store));
  OK_OR_RETURN(v2, documents_of_v2(store));
  if (v3.size() > 1 || !v2.empty()) {
    RETURN_IF_ERROR(std::move(add_consolidated(v3, v2, nodes)).with_context(store.string()));
  } else {
    RETURN_IF_ERROR(walk(store, "", 0, nodes));
  }
  if (nodes.empty()) return not_found("{}: is no Zarr store (no zarr.json, .zgroup or .zarray)", store);
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return nodes;
}

Status write_zarr_group(const Path& folder, int version, std::string_view attributes) {
  const Path file = folder / (version == 2 ? ".zgroup" : "zarr.json");
  if (path_exists(file)) return {};
  RETURN_IF_ERROR(make_directories(folder));
  Json document = {{"zarr_format", version}};
  if (version == 3) {
    document["node_type"] = "group";
    document["attributes"] = zarr_json::parsed(attributes);
  } else if (attributes != "{}") {
    RETURN_IF_ERROR(write_file(folder / ".zattrs", attributes));
  }
  return write_file(file, document.dump(1) + "\n", Durability::synced);
}

Status consolidate_zarr(const Path& store) {
  std::vector<ZarrNode> nodes;
  RETURN_IF_ERROR(walk(store, "", 0, nodes));
  if (nodes.empty() || nodes[0].kind != ZarrNode::Kind::group) return invalid("{}: is no Zarr group", store);
  Json metadata = Json::object();
  for (const ZarrNode& node : nodes) {
    const Path folder = node.path.empty() ? store : store / node.path;
    if (node.version != nodes[0].version) continue;
    for (const char* name : {"zarr.json", ".zarray", ".zgroup", ".zattrs"}) {
      if ((std::string_view(name) == "zarr.json") != (node.version == 3)) continue;
      if (node.version == 3 && node.path.empty()) continue;
      OK_OR_RETURN(text, text_of(folder / name));
      if (text)
        metadata[node.version == 3 ? node.path : key_of(node.path, name)] =
            zarr_json::parsed(quote_bare_numbers(*text));
    }
  }
  if (nodes[0].version == 2) {
    const Json document = {{"metadata", std::move(metadata)}, {"zarr_consolidated_format", 1}};
    return write_file(store / ".zmetadata", document.dump(1) + "\n", Durability::synced);
  }
  OK_OR_RETURN(text, read_file(store / "zarr.json", kMetadataLimit));
  Json root = zarr_json::parsed(quote_bare_numbers(text));
  root["consolidated_metadata"] = {
      {"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}};
  return write_file(store / "zarr.json", root.dump(1) + "\n", Durability::synced);
}

}  // namespace stoker::formats
