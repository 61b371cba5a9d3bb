#include "arrays/zarr/store.h"

#include <algorithm>
#include <map>

#include "arrays/zarr/metadata_parser_internal.h"

namespace stoker::arrays {

using zarr_json::Json;

namespace {

constexpr ByteCount kMetadataLimit = 64_MiB;
constexpr std::size_t kMaxNodes = 100'000;
constexpr std::size_t kDeepest = 32;

bool is_node(const Json& document, std::string_view kind) {
  const auto found = document.is_object() ? document.find("node_type") : document.end();
  return document.is_object() && found != document.end() && *found == kind;
}

std::string compact(const Json& value) { return json_text(value); }

// Consolidated metadata: the documents of each node, by their keys.
using Documents = std::map<std::string, Json, std::less<>>;

Result<Documents> read_consolidated_v2(const ZarrFiles& files) {
  Documents documents;
  STOKER_ASSIGN_OR_RETURN(text, files.text(".zmetadata"));
  if (!text) return documents;
  const Json document = parse_json<Json>(quote_bare_numbers(*text));
  const auto metadata = document.is_object() ? document.find("metadata") : document.end();
  if (!document.is_object() || metadata == document.end() || !metadata->is_object()) {
    return corrupt("{}: is not consolidated metadata", files.name(".zmetadata"));
  }
  for (const auto& [key, value] : metadata->items()) documents[key] = value;
  return documents;
}

Result<Documents> read_consolidated_v3(const ZarrFiles& files) {
  Documents documents;
  STOKER_ASSIGN_OR_RETURN(text, files.text("zarr.json"));
  if (!text) return documents;
  const Json document = parse_json<Json>(quote_bare_numbers(*text));
  if (!document.is_object()) return corrupt("{}: is not a JSON object", files.name("zarr.json"));
  // Drafts of version 3 had a URL there, and the metadata elsewhere.
  if (const auto version = document.find("zarr_format"); version != document.end() && *version != 3) {
    return invalid("{}: zarr_format is {}, not 3", files.name("zarr.json"),
                   printable(compact(*version).substr(0, 80)))
        .cure("open the store with the tool that wrote it, and write it again with zarr-python 3");
  }
  documents[""] = document;
  const auto consolidated = document.find("consolidated_metadata");
  if (consolidated == document.end() || consolidated->is_null()) return documents;
  const auto metadata = consolidated->is_object() ? consolidated->find("metadata") : consolidated->end();
  if (!consolidated->is_object() || metadata == consolidated->end() || !metadata->is_object()) {
    return corrupt("{}: consolidated_metadata: is not an object", files.name("zarr.json"));
  }
  for (const auto& [key, value] : metadata->items()) documents[key] = value;
  return documents;
}

std::string key_of(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : format("{}/{}", path, name);
}

Result<ZarrMetadata> find_consolidated_array(const ZarrFiles& files, std::string_view path) {
  const Path store = files.name("");
  STOKER_ASSIGN_OR_RETURN(v3, read_consolidated_v3(files));
  if (const auto found = v3.find(path); found != v3.end() && !path.empty()) {
    if (is_node(found->second, "group")) {
      return invalid("{}: '{}' is a group, not an array", store, path);
    }
    return parse_zarr_v3(compact(found->second), format("{}: consolidated '{}'", store / "zarr.json", path));
  }
  STOKER_ASSIGN_OR_RETURN(v2, read_consolidated_v2(files));
  if (const auto found = v2.find(key_of(path, ".zarray")); found != v2.end()) {
    const auto attributes = v2.find(key_of(path, ".zattrs"));
    return parse_zarr_v2(compact(found->second), attributes == v2.end() ? "" : compact(attributes->second),
                         format("{}: consolidated '{}'", store / ".zmetadata", path));
  }
  if (files.has(key_of(path, ".zgroup")) || v2.contains(key_of(path, ".zgroup"))) {
    return invalid("{}: '{}' is a group, not an array", store, path);
  }
  return not_found("{}: no Zarr array '{}'", store, path);
}

// The type of a folder according to its own files.
Result<std::optional<ZarrNode>> node_at(const ZarrFiles& files, const std::string& path) {
  STOKER_ASSIGN_OR_RETURN(v3, files.text(key_of(path, "zarr.json")));
  if (v3) {
    const Json document = parse_json<Json>(quote_bare_numbers(*v3));
    if (!document.is_object())
      return corrupt("{}: is not a JSON object", files.name(key_of(path, "zarr.json")));
    const bool is_array = is_node(document, "array");
    return std::optional(ZarrNode{path, is_array ? ZarrNode::Kind::array : ZarrNode::Kind::group, 3});
  }
  if (files.has(key_of(path, ".zarray"))) return std::optional(ZarrNode{path, ZarrNode::Kind::array, 2});
  if (files.has(key_of(path, ".zgroup"))) return std::optional(ZarrNode{path, ZarrNode::Kind::group, 2});
  return std::optional<ZarrNode>();
}

Status walk(const ZarrFiles& files, const std::string& path, std::size_t depth,
            std::vector<ZarrNode>& nodes) {
  if (depth > kDeepest) return invalid("{}: groups are more than {} deep", files.name(""), kDeepest);
  STOKER_ASSIGN_OR_RETURN(node, node_at(files, path));
  if (node) nodes.push_back(*node);
  if (nodes.size() > kMaxNodes) return invalid("{}: holds more than {} nodes", files.name(""), kMaxNodes);
  if (!node || node->kind == ZarrNode::Kind::array) return {};
  STOKER_ASSIGN_OR_RETURN(names, files.folders(path));
  for (const std::string& name : names) {
    if (name.starts_with('.') || !unsafe_node(name).empty()) continue;
    STOKER_RETURN_IF_ERROR(walk(files, key_of(path, name), depth + 1, nodes));
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
  STOKER_ASSIGN_OR_RETURN(files, ZarrFiles::open(store));
  return read_zarr_metadata(*files, path);
}

Result<ZarrMetadata> read_zarr_metadata(const ZarrFiles& files, std::string_view path) {
  const Path store = files.name("");
  if (const std::string_view why = unsafe_node(path); !why.empty()) {
    return invalid("{}: the name '{}' {}", store, printable(path), why);
  }
  STOKER_ASSIGN_OR_RETURN(v3, files.text(key_of(path, "zarr.json")));
  if (v3) {
    const Json document = parse_json<Json>(quote_bare_numbers(*v3));
    if (is_node(document, "group")) {
      return invalid("{}: '{}' is a group, not an array", store, path);
    }
    return parse_zarr_v3(*v3, files.name(key_of(path, "zarr.json")).string());
  }
  STOKER_ASSIGN_OR_RETURN(v2, files.text(key_of(path, ".zarray")));
  if (!v2) return find_consolidated_array(files, path);
  STOKER_ASSIGN_OR_RETURN(attributes, files.text(key_of(path, ".zattrs")));
  return parse_zarr_v2(*v2, attributes.value_or(""), files.name(key_of(path, ".zarray")).string());
}

Result<std::vector<ZarrNode>> list_zarr(const Path& store) {
  STOKER_ASSIGN_OR_RETURN(files, ZarrFiles::open(store));
  return list_zarr(*files);
}

Result<std::vector<ZarrNode>> list_zarr(const ZarrFiles& files) {
  const Path store = files.name("");
  std::vector<ZarrNode> nodes;
  STOKER_ASSIGN_OR_RETURN(v3, read_consolidated_v3(files));
  STOKER_ASSIGN_OR_RETURN(v2, read_consolidated_v2(files));
  if (v3.size() > 1 || !v2.empty()) {
    STOKER_RETURN_IF_ERROR(std::move(add_consolidated(v3, v2, nodes)).with_context(store.string()));
  } else {
    STOKER_RETURN_IF_ERROR(walk(files, "", 0, nodes));
  }
  if (nodes.empty()) return not_found("{}: is not a Zarr store (no zarr.json, .zgroup or .zarray)", store);
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return nodes;
}

Status write_zarr_group(const Path& folder, int version, std::string_view attributes) {
  const Path file = folder / (version == 2 ? ".zgroup" : "zarr.json");
  if (path_exists(file)) return {};
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  Json document = {{"zarr_format", version}};
  if (version == 3) {
    document["node_type"] = "group";
    document["attributes"] = parse_json<Json>(attributes);
  } else if (attributes != "{}") {
    STOKER_RETURN_IF_ERROR(write_file(folder / ".zattrs", attributes));
  }
  return write_file(file, json_text(document, 1) + "\n", Durability::synced);
}

Status consolidate_zarr(const Path& store) {
  std::vector<ZarrNode> nodes;
  STOKER_ASSIGN_OR_RETURN(files, ZarrFiles::open(store));
  STOKER_RETURN_IF_ERROR(walk(*files, "", 0, nodes));
  if (nodes.empty() || nodes[0].kind != ZarrNode::Kind::group)
    return invalid("{}: is not a Zarr group", store);
  Json metadata = Json::object();
  for (const ZarrNode& node : nodes) {
    if (node.version != nodes[0].version) continue;
    for (const char* name : {"zarr.json", ".zarray", ".zgroup", ".zattrs"}) {
      if ((std::string_view(name) == "zarr.json") != (node.version == 3)) continue;
      if (node.version == 3 && node.path.empty()) continue;
      STOKER_ASSIGN_OR_RETURN(text, files->text(key_of(node.path, name)));
      if (text)
        metadata[node.version == 3 ? node.path : key_of(node.path, name)] =
            parse_json<Json>(quote_bare_numbers(*text));
    }
  }
  if (nodes[0].version == 2) {
    const Json document = {{"metadata", std::move(metadata)}, {"zarr_consolidated_format", 1}};
    return write_file(store / ".zmetadata", json_text(document, 1) + "\n", Durability::synced);
  }
  STOKER_ASSIGN_OR_RETURN(text, read_file(store / "zarr.json", kMetadataLimit));
  Json root = parse_json<Json>(quote_bare_numbers(text));
  root["consolidated_metadata"] = {
      {"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}};
  return write_file(store / "zarr.json", json_text(root, 1) + "\n", Durability::synced);
}

}  // namespace stoker::arrays
