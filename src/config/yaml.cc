#include "config/yaml.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <sys/stat.h>
#include <utility>

#include <yaml.h>

#include "base/file.h"
#include "config/yaml_text.h"
#include "stoker/bytes.h"

namespace stoker::config {
namespace {

// An event of libyaml, freed by the destructor.
class YamlEvent {
 public:
  YamlEvent() = default;
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;
  ~YamlEvent() { yaml_event_delete(&event_); }
  yaml_event_t* get() { return &event_; }
  yaml_event_type_t type() const { return event_.type; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_{};
};

std::string_view text_of(const yaml_char_t* text) {
  return text ? std::string_view(reinterpret_cast<const char*>(text)) : std::string_view();
}

// Builds the tree from libyaml's events. A function that returns false has added an error.
class Builder {
 public:
  Builder(const std::shared_ptr<const Source>& source, ErrorList& errors, const Limits& limits)
      : source_(source), errors_(errors), limits_(limits) {
    const std::string& text = source_->text();
    for (std::size_t i = 0; i < text.size(); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xC0u) != 0x80u) character_offsets_.push_back(i);
    }
    STOKER_CHECK(yaml_parser_initialize(&parser_));
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() { yaml_parser_delete(&parser_); }

  std::optional<Node> build() {
    Node root;
    for (;;) {
      YamlEvent event;
      if (!next(event)) return std::nullopt;
      switch (event.type()) {
        case YAML_STREAM_END_EVENT:
          return root;
        case YAML_DOCUMENT_START_EVENT:
          if (has_document_) {
            fail(offset(event->start_mark), "a second document starts here; a file must contain exactly one");
            return std::nullopt;
          }
          has_document_ = true;
          break;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
          break;
        default:
          if (!read(event, 1, root)) return std::nullopt;
      }
    }
  }

 private:
  std::size_t offset(const yaml_mark_t& mark) const {
    return mark.index < character_offsets_.size() ? character_offsets_[mark.index] : source_->text().size();
  }

  bool fail(std::size_t at, std::string_view text) {
    errors_.add({source_, at}, text);
    return false;
  }

  bool next(YamlEvent& event) {
    if (yaml_parser_parse(&parser_, event.get())) return true;
    const SyntaxError error{.problem = parser_.problem ? parser_.problem : "out of memory",
                            .context = parser_.context ? parser_.context : "",
                            .at = offset(parser_.problem_mark),
                            .context_at = offset(parser_.context_mark)};
    const TextError mistake = explain_syntax(source_->text(), error);
    return fail(mistake.at, mistake.text);
  }

  bool charge(std::size_t at, std::size_t bytes) {
    nodes_ += 1;
    bytes_ += bytes;
    if (nodes_ > limits_.nodes) return fail(at, format("more than {} values", grouped(limits_.nodes)));
    if (bytes_ > limits_.expanded_bytes) {
      return fail(at, format("more than {} of text once aliases are copied",
                             rounded(ByteCount{limits_.expanded_bytes})));
    }
    return true;
  }

  // Everything below an alias counts again, at its new depth.
  bool charge_copy(std::size_t at, const Node& node, std::size_t depth) {
    if (depth > limits_.depth) return fail(at, format("nested more than {} deep", limits_.depth));
    if (!charge(at, node.text.size())) return false;
    for (const Node& item : node.items) {
      if (!charge_copy(at, item, depth + 1)) return false;
    }
    for (const Member& member : node.members) {
      bytes_ += member.key.size();
      if (!charge_copy(at, member.value, depth + 1)) return false;
    }
    return true;
  }

  bool read(YamlEvent& event, std::size_t depth, Node& node) {
    node.offset = offset(event->start_mark);
    node.end = offset(event->end_mark);
    if (depth > limits_.depth) return fail(node.offset, format("nested more than {} deep", limits_.depth));
    switch (event.type()) {
      case YAML_ALIAS_EVENT:
        return read_alias(text_of(event->data.alias.anchor), depth, node);
      case YAML_SCALAR_EVENT:
        return accept(text_of(event->data.scalar.anchor), text_of(event->data.scalar.tag), node) &&
               read_scalar(event, node) && remember(text_of(event->data.scalar.anchor), node);
      case YAML_SEQUENCE_START_EVENT:
        return accept(text_of(event->data.sequence_start.anchor), text_of(event->data.sequence_start.tag),
                      node) &&
               read_list(depth, node) && remember(text_of(event->data.sequence_start.anchor), node);
      case YAML_MAPPING_START_EVENT:
        return accept(text_of(event->data.mapping_start.anchor), text_of(event->data.mapping_start.tag),
                      node) &&
               read_map(depth, node) && remember(text_of(event->data.mapping_start.anchor), node);
      default:
        return fail(node.offset, "expected a value here");
    }
  }

  bool accept(std::string_view anchor, std::string_view tag, const Node& node) {
    if (!tag.empty()) {
      constexpr std::string_view kCore = "tag:yaml.org,2002:";
      const std::string as_written =
          tag.starts_with(kCore) ? format("!!{}", tag.substr(kCore.size())) : std::string(tag);
      return fail(node.offset,
                  format("tag '{}' is not supported; write the value plainly, or in quotes for text",
                         printable(as_written)));
    }
    if (!anchor.empty() && anchors_.contains(std::string(anchor))) {
      return fail(node.offset, format("anchor '{}' already exists", anchor));
    }
    return true;
  }

  bool remember(std::string_view anchor, const Node& node) {
    if (!anchor.empty()) anchors_.emplace(anchor, node);
    return true;
  }

  bool read_alias(std::string_view anchor, std::size_t depth, Node& node) {
    const auto found = anchors_.find(std::string(anchor));
    if (found == anchors_.end()) {
      return fail(node.offset, format("alias '{}' refers to no earlier anchor", anchor));
    }
    if (!charge_copy(node.offset, found->second, depth)) return false;
    node = found->second;
    return true;
  }

  bool read_scalar(YamlEvent& event, Node& node) {
    node.text.assign(reinterpret_cast<const char*>(event->data.scalar.value), event->data.scalar.length);
    node.is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node.kind = !node.is_quoted && is_null_word(node.text) ? Node::Kind::null : Node::Kind::scalar;
    if (node.text.find('\0') != std::string::npos) return fail(node.offset, "text contains a zero byte");
    return charge(node.offset, node.text.size());
  }

  bool read_list(std::size_t depth, Node& node) {
    node.kind = Node::Kind::list;
    if (!charge(node.offset, 0)) return false;
    for (;;) {
      YamlEvent event;
      if (!next(event)) return false;
      if (event.type() == YAML_SEQUENCE_END_EVENT) return true;
      if (!read(event, depth + 1, node.items.emplace_back())) return false;
    }
  }

  bool read_map(std::size_t depth, Node& node) {
    node.kind = Node::Kind::map;
    if (!charge(node.offset, 0)) return false;
    std::map<std::string, std::size_t> seen;
    for (;;) {
      YamlEvent event;
      if (!next(event)) return false;
      if (event.type() == YAML_MAPPING_END_EVENT) return true;
      Member member;
      if (!read_key(event, member)) return false;
      YamlEvent value;
      if (!next(value) || !read(value, depth + 1, member.value)) return false;
      const auto [first, is_new] = seen.emplace(member.key, member.offset);
      if (is_new) {
        node.members.push_back(std::move(member));
      } else {
        const Mark mark = source_->mark(first->second);
        fail(member.offset,
             format("duplicate key '{}' (first at {}:{})", printable(member.key), mark.line, mark.column));
      }
    }
  }

  bool read_key(YamlEvent& event, Member& member) {
    member.offset = offset(event->start_mark);
    if (event.type() != YAML_SCALAR_EVENT) return fail(member.offset, "a key must be a scalar");
    Node key;
    key.offset = member.offset;
    if (!accept(text_of(event->data.scalar.anchor), text_of(event->data.scalar.tag), key)) return false;
    if (!read_scalar(event, key)) return false;
    if (key.text == "<<" && !key.is_quoted) {
      return fail(member.offset, "merge key '<<' is not supported; repeat the keys");
    }
    if (key.text.empty()) return fail(member.offset, "a key is missing before ':'");
    member.key = std::move(key.text);
    return true;
  }

  const std::shared_ptr<const Source>& source_;
  ErrorList& errors_;
  const Limits& limits_;
  std::vector<std::size_t> character_offsets_;  // libyaml counts characters
  yaml_parser_t parser_{};
  bool has_document_ = false;
  std::map<std::string, Node> anchors_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::optional<Node> parse_yaml(const std::shared_ptr<const Source>& source, ErrorList& errors,
                               const Limits& limits) {
  if (source->text().size() > limits.bytes) {
    errors.add({source, 0}, format("longer than {}", rounded(ByteCount{limits.bytes})));
    return std::nullopt;
  }
  if (const auto bad = find_bad_text(source->text())) {
    errors.add({source, bad->at}, bad->text);
    return std::nullopt;
  }
  return Builder(source, errors, limits).build();
}

Result<std::string> read_config_file(const Path& path, const Limits& limits) {
  struct stat facts{};
  // Checked before opening, because opening a pipe would block.
  if (::stat(path.c_str(), &facts) != 0) return posix_error(printable(path.string()), errno);
  if (S_ISDIR(facts.st_mode)) return invalid("{}: expected a file, got a folder", printable(path.string()));
  if (!S_ISREG(facts.st_mode)) return invalid("{}: is not a regular file", printable(path.string()));
  return read_file(path, ByteCount{limits.bytes});
}

}  // namespace stoker::config
