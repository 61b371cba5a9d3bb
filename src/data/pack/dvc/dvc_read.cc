#include "data/pack/dvc/dvc_read.h"

#include "base/text.h"
#include "config/yaml.h"

namespace stoker::data {

namespace {

using config::Node;

// A pipeline of thousands of stages, each with many files.
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
  config::Mistakes mistakes;
  const auto source = std::make_shared<config::Source>(config::Layer::file, subject, std::string(text));
  std::optional<Node> root = config::parse_yaml(source, mistakes, kLimits);
  if (!root) return mistakes.status();
  return std::move(*root);
}

// One of `outs`: nothing where it has no MD5, or one of another kind.
Result<std::optional<DvcFile>> version_in(const Node& out, const std::string& subject, bool is_folder) {
  const std::string md5 = text_of(out, "md5");
  if (md5.empty()) return std::optional<DvcFile>();  // by another hash, or not yet there
  if (!is_md5(md5, is_folder)) {
    return corrupt("{}: '{}' is no MD5 of a {}", subject, printable(md5),
                   is_folder ? "folder (with .dir behind it)" : "file");
  }
  DvcFile dvc;
  dvc.version.md5 = md5;
  dvc.has_old_hashes = text_of(out, "hash").empty();
  dvc.version.bytes = number_of(out, "size");
  dvc.version.files = number_of(out, "nfiles");
  return std::optional(std::move(dvc));
}

// The one of `outs` that is the target, whose paths count from `folder`.
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

// From where the paths of a stage count: "prepare@train" is one of those that "prepare" stands for.
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
  OK_OR_RETURN(root, parse(text, subject));
  const Node* outs = root.find("outs");
  if (!outs || outs->kind != Node::Kind::list) return corrupt("{}: has no outs", subject);
  const Node* out = out_of(*outs, text_of(root, "wdir"), target);
  if (!out) return std::optional<DvcFile>();
  return version_in(*out, subject, target.is_folder);
}

Result<std::optional<DvcFile>> read_dvc_lock(std::string_view text, std::string_view pipeline,
                                             const std::string& subject, const DvcTarget& target) {
  OK_OR_RETURN(root, parse(text, subject));
  // Before DVC 2 the stages were not below a key of their own.
  const bool is_old = root.kind == Node::Kind::map && !root.find("schema");
  const Node* stages = is_old ? &root : root.find("stages");
  if (root.kind == Node::Kind::null || !stages) return std::optional<DvcFile>();
  if (stages->kind != Node::Kind::map) return corrupt("{}: its stages are no map", subject);
  Node described;
  if (!trim(pipeline).empty()) {
    OK_OR_RETURN(yaml, parse(pipeline, subject + "'s dvc.yaml"));
    if (const Node* found = yaml.find("stages")) described = *found;
  }
  for (const config::Member& stage : stages->members) {
    const Node* outs = stage.value.find("outs");
    const Node* out = outs ? out_of(*outs, folder_of(described, stage.key), target) : nullptr;
    if (!out) continue;
    OK_OR_RETURN(version, version_in(*out, subject, target.is_folder));
    if (version) version->stage = stage.key;
    return std::move(version);
  }
  return std::optional<DvcFile>();
}

}  // namespace stoker::data
