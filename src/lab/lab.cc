#include "lab/lab.h"

#include <algorithm>
#include <cstdint>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/json/json.h"

namespace stoker::lab {

using Json = nlohmann::ordered_json;

std::string_view to_text(LabMode mode) { return mode == LabMode::namespaces ? "namespaces" : "processes"; }

Result<LabMode> parse_mode(std::string_view text) {
  if (text == "processes") return LabMode::processes;
  if (text == "namespaces") return LabMode::namespaces;
  return invalid("lab: mode '{}': must be processes or namespaces", printable(text));
}

Path Lab::local(const LabNode& node) const {
  return mode == LabMode::namespaces ? folder / "local" : folder / "nodes" / node.name / "local";
}

Path Lab::local_from_host(const LabNode& node) const {
  if (mode == LabMode::processes) return local(node);
  return Path(format("/proc/{}/root{}", node.holder, local(node)));
}

const LabNode* Lab::find(std::string_view node) const {
  const auto found = std::ranges::find(nodes, node, &LabNode::name);
  return found == nodes.end() ? nullptr : &*found;
}

LabNode* Lab::find(std::string_view node) {
  const auto found = std::ranges::find(nodes, node, &LabNode::name);
  return found == nodes.end() ? nullptr : &*found;
}

Path labs_folder() {
  if (const auto folder = environment_value("STOKER_LAB_DIR"); folder && !folder->empty()) {
    return std::filesystem::absolute(*folder).lexically_normal();
  }
  return format("/tmp/stoker-lab-{}", ::getuid());
}

Status check_name(std::string_view name) {
  constexpr std::size_t kLongest = 11;  // a link is named "<name>-n64"; Linux allows 15 characters
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9'); };
  if (!name.empty() && name.size() <= kLongest && is_lower(name[0]) &&
      std::ranges::all_of(name, is_allowed)) {
    return {};
  }
  return invalid("lab: name '{}': must be a lower-case letter, then up to {} letters and digits",
                 printable(name), kLongest - 1);
}

namespace {

template <typename T>
void read(const Json& object, const char* key, T* out) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) *out = found->template get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) *out = found->template get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (found->is_number()) *out = found->template get<double>();
  } else {
    if (!found->is_number_integer()) return;
    if (found->is_number_unsigned() && found->template get<std::uint64_t>() > INT64_MAX) return;
    const auto value = found->template get<std::int64_t>();
    if (std::in_range<T>(value)) *out = static_cast<T>(value);
  }
}

LabNode node_from(const Json& object) {
  LabNode node;
  read(object, "name", &node.name);
  read(object, "address", &node.address);
  read(object, "port", &node.port);
  read(object, "network_namespace", &node.network_namespace);
  read(object, "link", &node.link);
  read(object, "core", &node.core);
  read(object, "holder", &node.holder);
  read(object, "slurmd", &node.slurmd);
  return node;
}

Json to_json(const LabNode& node) {
  return {{"name", node.name},     {"address", node.address},
          {"port", node.port},     {"network_namespace", node.network_namespace},
          {"link", node.link},     {"core", node.core},
          {"holder", node.holder}, {"slurmd", node.slurmd}};
}

// One list of fields for reading and writing. `Visit` is called as visit("key", field).
template <typename LabType, typename Visit>
void each_field(LabType& lab, const Visit& visit) {
  visit("cpus", lab.cpus);
  visit("gpus", lab.gpus);
  visit("memory_mb", lab.memory_mb);
  visit("max_array_size", lab.max_array_size);
  visit("accounting", lab.has_accounting);
  visit("slurm_version", lab.slurm_version);
  visit("started", lab.started);
  visit("bridge", lab.bridge);
  visit("host_address", lab.host_address);
  visit("controller_port", lab.controller_port);
  visit("database_port", lab.database_port);
  visit("starter", lab.starter);
  visit("guardian", lab.guardian);
  visit("owner", lab.owner);
  visit("login", lab.login);
  visit("munged", lab.munged);
  visit("controller", lab.controller);
  visit("database", lab.database);
  visit("slurmdbd", lab.accounting);
}

}  // namespace

Result<Lab> parse(std::string_view text, const Path& folder) {
  const Json object = parse_json<Json>(text);
  if (!object.is_object()) return corrupt("{}: not a JSON object", printable((folder / "lab.json").string()));
  Lab lab;
  lab.folder = folder;
  lab.name = folder.filename().string();
  std::string phase;
  std::string mode;
  read(object, "phase", &phase);
  read(object, "mode", &mode);
  lab.phase = phase == "up" ? LabPhase::up : LabPhase::starting;
  lab.mode = mode == "namespaces" ? LabMode::namespaces : LabMode::processes;
  each_field(lab, [&](const char* key, auto& field) { read(object, key, &field); });
  if (const auto nodes = object.find("nodes"); nodes != object.end() && nodes->is_array()) {
    for (const Json& node : *nodes) {
      if (node.is_object()) lab.nodes.push_back(node_from(node));
    }
  }
  return lab;
}

namespace {

Result<Lab> load(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(folder / "lab.json", 1_MiB));
  return parse(text, folder);
}

std::vector<std::string> names() {
  const auto entries = list_directory(labs_folder());
  std::vector<std::string> names;
  if (!entries) return names;
  for (const std::string& entry : *entries) {
    if (check_name(entry).ok() && path_exists(labs_folder() / entry / "lab.json")) names.push_back(entry);
  }
  return names;
}

}  // namespace

Result<Lab> open(std::string_view name) {
  STOKER_RETURN_IF_ERROR(check_name(name));
  const Path folder = labs_folder() / name;
  if (!path_exists(folder / "lab.json")) {
    const std::vector<std::string> there = names();
    const std::string others = there.empty() ? "" : format(" (available: {})", join(there, ", "));
    return not_found("{}: no such lab{}", name, others).cure("stoker lab up --name {}", name);
  }
  return load(folder);
}

Result<std::vector<Lab>> list() {
  std::vector<Lab> labs;
  for (const std::string& name : names()) {
    if (auto lab = load(labs_folder() / name)) labs.push_back(*std::move(lab));
  }
  return labs;
}

Result<const LabNode*> find_node(const Lab& lab, std::string_view name) {
  if (const LabNode* node = lab.find(name)) return node;
  std::vector<std::string> names;
  for (const LabNode& node : lab.nodes) names.push_back(node.name);
  return not_found("{}: no such node in {} (available: {})", printable(name), lab.name, join(names, ", "));
}

Status save(const Lab& lab) {
  Json object = {{"name", lab.name},
                 {"phase", lab.phase == LabPhase::up ? "up" : "starting"},
                 {"mode", to_text(lab.mode)}};
  each_field(lab, [&](const char* key, const auto& field) { object[key] = field; });
  object["nodes"] = Json::array();
  for (const LabNode& node : lab.nodes) object["nodes"].push_back(to_json(node));
  return write_file(lab.folder / "lab.json", json_text(object, 2) + "\n");
}

namespace {

Command in_namespaces_of(pid_t holder, const Path& directory, std::vector<std::string> argv) {
  // --wdns: the folder in the node's namespace.
  Command command;
  command.argv = {"nsenter", "--target", std::to_string(holder),         "--mount",
                  "--uts",   "--net",    format("--wdns={}", directory), "--"};
  command.argv.insert(command.argv.end(), std::make_move_iterator(argv.begin()),
                      std::make_move_iterator(argv.end()));
  return command;
}

}  // namespace

Environment lab_variables(const Lab& lab) {
  Environment variables = {{"SLURM_CONF", lab.slurm_conf().string()}};
  const std::string modules = (lab.folder / "modules").string();
  const std::string before = environment_value("MODULEPATH").value_or("");
  const bool is_there = (":" + before + ":").find(":" + modules + ":") != std::string::npos;
  variables.emplace_back("MODULEPATH", before.empty() ? modules : is_there ? before : modules + ":" + before);
  return variables;
}

Command client_command(const Lab& lab, std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.environment = current_environment();
  for (const auto& [name, value] : lab_variables(lab)) set_variable(*command.environment, name, value);
  return command;
}

Command node_command(const Lab& lab, const LabNode& node, std::vector<std::string> argv,
                     const Path& directory) {
  Command command = client_command(lab, std::move(argv));
  if (lab.mode == LabMode::processes) {
    command.directory = directory;
    return command;
  }
  Command entered = in_namespaces_of(node.holder, directory, std::move(command.argv));
  entered.environment = std::move(command.environment);
  return entered;
}

Command login_command(const Lab& lab, std::vector<std::string> argv, const Path& directory) {
  LabNode host;
  host.holder = lab.login;
  return node_command(lab, host, std::move(argv), directory);
}

}  // namespace stoker::lab
