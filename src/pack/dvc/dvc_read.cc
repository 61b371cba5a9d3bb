#include "pack/dvc/dvc_read.h"

#include "config/yaml.h"
#include "stoker/text.h"

namespace stoker::pack {

namespace {

using config::Node;

// Enough for thousands of stages with many files each.
constexpr config::Limits kLimits = {
    .bytes = 64'000'000, .depth = 32, .nodes = 4'000'000, .expanded_bytes = 64'000'000};

bool is_md5(std::string_view text, bool is_folder) {
  constexpr std::size_t kDigits = 32;
  const std::string_view digits = text.substr(0, kDigits);
  return digits.size() == kDigits && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.substr(kDigits) == (is_folder ? kDvcFolder : "");
}

std::string text_of(const Node& map, std::string_view key) {
  const Node* found = map.find(key);
  return found && found->kind == Node::Kind::scalar ? found->text : std::string();
}

std::uint64_t number_of(const Node& map, std::string_view key) {
  std::uint64_t number = 0;
  return parse_number(text_of(map, key), &number) ? number : 0;
}

Result<Node> parse(std::string_view text, const std::string& subject) {
  config::ErrorList errors;
  const auto source = std::make_shared<config::Source>(config::Layer::file, subject, std::string(text));
  std::optional<Node> root = config::parse_yaml(source, errors, kLimits);
  if (!root) return errors.status();
  return std::move(*root);
}

// One entry of `outs`: nullopt without an MD5.
Result<std::optional<DvcFile>> version_in(const Node& out, const std::string& subject, bool is_folder) {
  const std::string md5 = text_of(out, "md5");
  if (md5.empty()) return std::optional<DvcFile>();  // a different hash, or no version yet
  if (!is_md5(md5, is_folder)) {
    return corrupt("{}: '{}' is not the MD5 of a {}", subject, printable(md5),
                   is_folder ? "folder (ending in .dir)" : "file");
  }
  DvcFile dvc;
  dvc.version.md5 = md5;
  dvc.has_old_hashes = text_of(out, "hash").empty();
  dvc.version.bytes = number_of(out, "size");
  dvc.version.files = number_of(out, "nfiles");
  return std::optional(std::move(dvc));
}

// The entry of `outs` for the target. Paths are relative to `folder`.
const Node* out_of(const Node& outs, const Path& folder, const DvcTarget& target) {
  if (outs.kind != Node::Kind::list) return nullptr;
  for (const Node& out : outs.items) {
    const std::string path = text_of(out, "path");
    if (path.empty()) continue;
    Path normal = (folder / path).lexically_normal();
    if (!normal.has_filename()) normal = normal.parent_path();
    if (normal == target.path) return &out;
  }
  return nullptr;
}

// The working folder of a stage. "prepare@train" is an instance of the stage "prepare".
Path folder_of(const Node& stages, std::string_view stage) {
  const Node* found = stages.find(stage);
  if (!found) found = stages.find(stage.substr(0, stage.find('@')));
  if (!found) return {};
  const Node* each = found->find("do");
  return text_of(each ? *each : *found, "wdir");
}

}  // namespace

Result<std::optional<DvcFile>> read_dvc_file(std::string_view text, const std::string& subject,
                                             const DvcTarget& target) {
  STOKER_ASSIGN_OR_RETURN(root, parse(text, subject));
  const Node* outs = root.find("outs");
  if (!outs || outs->kind != Node::Kind::list) return corrupt("{}: has no outs", subject);
  const Node* out = out_of(*outs, text_of(root, "wdir"), target);
  if (!out) return std::optional<DvcFile>();
  return version_in(*out, subject, target.is_folder);
}

Result<std::optional<DvcFile>> read_dvc_lock(std::string_view text, std::string_view pipeline,
                                             const std::string& subject, const DvcTarget& target) {
  STOKER_ASSIGN_OR_RETURN(root, parse(text, subject));
  // Before DVC 2 the stages were top-level keys.
  const bool is_old = root.kind == Node::Kind::map && !root.find("schema");
  const Node* stages = is_old ? &root : root.find("stages");
  if (root.kind == Node::Kind::null || !stages) return std::optional<DvcFile>();
  if (stages->kind != Node::Kind::map) return corrupt("{}: 'stages' is not a map", subject);
  Node described;
  if (!trim(pipeline).empty()) {
    STOKER_ASSIGN_OR_RETURN(yaml, parse(pipeline, subject + "'s dvc.yaml"));
    if (const Node* found = yaml.find("stages")) described = *found;
  }
  for (const config::Member& stage : stages->members) {
    const Node* outs = stage.value.find("outs");
    const Node* out = outs ? out_of(*outs, folder_of(described, stage.key), target) : nullptr;
    if (!out) continue;
    STOKER_ASSIGN_OR_RETURN(version, version_in(*out, subject, target.is_folder));
    if (version) version->stage = stage.key;
    return std::move(version);
  }
  return std::optional<DvcFile>();
}

}  // namespace stoker::pack
