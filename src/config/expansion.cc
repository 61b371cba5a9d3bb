#include "config/expansion.h"

#include <algorithm>
#include <utility>

#include "config/shell_words.h"
#include "stoker/text.h"

namespace stoker::config {
namespace {

constexpr std::size_t kLongest = 64 * 1024;
constexpr std::size_t kDeepest = 32;

}  // namespace

std::optional<Node> Expansion::expand(const std::string& path) {
  if (const auto found = done_.find(path); found != done_.end()) return found->second;
  const Layers::Assignment& assignment = layers_.assignments_.find(path)->second;
  open_.push_back(path);
  Node node = assignment.node;
  bool is_good = true;
  const Type type = assignment.setting->type;
  if ((type == Type::words || type == Type::texts) && node.kind == Node::Kind::scalar) {
    Result<std::vector<std::string>> words =
        type == Type::words ? split_command(node.text) : split_words(node.text);
    if (words.ok()) {
      for (const std::string& word : *words) {
        Node& item = node.items.emplace_back();
        item.kind = Node::Kind::scalar;
        item.text = word;
        item.offset = node.offset;
        item.end = node.end;
      }
      node.kind = Node::Kind::list;
    }
  }
  const auto replace = [&](Node& scalar) {
    if (scalar.kind != Node::Kind::scalar || scalar.text.find("${") == std::string::npos) return;
    const bool is_whole = scalar.text.starts_with("${") && scalar.text.find('}') + 1 == scalar.text.size();
    std::optional<std::string> text = expand_text(scalar, assignment);
    is_good = is_good && text.has_value();
    if (!text) return;
    scalar.text = std::move(*text);
    // "${train.batch}" is the number itself, quoted or not (YAML requires the quotes inside {...}).
    if (is_whole) scalar.is_quoted = false;
  };
  replace(node);
  for (Node& item : node.items) replace(item);
  open_.pop_back();
  const std::optional<Node> result = is_good ? std::optional<Node>(std::move(node)) : std::nullopt;
  done_.emplace(path, result);
  return result;
}

std::optional<std::string> Expansion::expand_text(const Node& node, const Layers::Assignment& holder) {
  const std::string_view text = node.text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("$${")) {
      out += "${";
      i += 3;
    } else if (text.substr(i).starts_with("${")) {
      const std::size_t end = text.find('}', i);
      const std::string_view reference = text.substr(i, end == std::string_view::npos ? end : end + 1 - i);
      const Origin at = locate(reference, node, holder);
      if (end == std::string_view::npos) {
        layers_.errors_.add(at, "'${' has no closing '}'; write $${ for a literal ${");
        return std::nullopt;
      }
      const std::optional<std::string> value = value_of(text.substr(i + 2, end - i - 2), at);
      if (!value) return std::nullopt;
      out += *value;
      i = end + 1;
    } else {
      out += text[i++];
    }
    if (out.size() > kLongest) {
      layers_.errors_.add(holder.origin, "longer than 64 KiB after its references are expanded");
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> Expansion::value_of(std::string_view name, const Origin& at) {
  if (const auto variable = layers_.variables_.find(std::string(name));
      variable != layers_.variables_.end()) {
    return variable->second;
  }
  const std::string path(name);
  if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
    std::string chain;
    for (auto key = std::find(open_.begin(), open_.end(), path); key != open_.end(); ++key)
      chain += *key + " -> ";
    layers_.errors_.add(at, format("'${{{}}}' is a circular reference ({}{})", name, chain, path));
    return std::nullopt;
  }
  if (open_.size() >= kDeepest) {
    layers_.errors_.add(at, format("references nested more than {} deep", kDeepest));
    return std::nullopt;
  }
  if (layers_.assignments_.contains(path)) {
    const std::optional<Node> node = expand(path);
    if (!node) return std::nullopt;  // the error was already added
    if (node->kind == Node::Kind::scalar) return node->text;
    layers_.errors_.add(at, format("'${{{}}}' is not a single value", name));
    return std::nullopt;
  }
  const Setting* setting = layers_.schema_.find(path).setting;
  if (setting && !setting->fallback.empty()) return std::string(setting->fallback);
  if (setting && setting->key.find('*') == std::string_view::npos) {
    layers_.errors_.add(at, format("'${{{}}}' is not set", name));
    return std::nullopt;
  }
  std::vector<std::string_view> known;
  for (const auto& [key, assignment] : layers_.assignments_) known.push_back(key);
  for (const auto& [key, value] : layers_.variables_) known.push_back(key);
  const std::string_view best = closest(name, known);
  layers_.errors_.add(
      at, format("'${{{}}}' is not a setting{}", printable(name),
                 best.empty() ? "; write $${ for a literal ${" : format("; did you mean '{}'?", best)));
  return std::nullopt;
}

// Points at the reference in the source text if it is there, else at the value.
Origin Expansion::locate(std::string_view reference, const Node& node,
                         const Layers::Assignment& holder) const {
  if (!holder.origin.source || !holder.origin.source->has_lines()) return holder.origin;
  const std::string& text = holder.origin.source->text();
  const std::size_t found = text.find(reference, node.offset);
  const bool is_inside = found != std::string::npos && found < node.end;
  return {holder.origin.source, is_inside ? found : node.offset};
}

}  // namespace stoker::config
