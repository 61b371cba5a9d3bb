#include "sweep/file/node_values.h"

#include <charconv>
#include <cmath>

namespace stoker::sweep {

using config::Node;

void NodeValues::expect_keys(const Node& map, std::span<const std::string_view> keys) {
  if (map.kind != Node::Kind::map) return fail(map, "is not a map");
  for (const config::Member& member : map.members) {
    if (std::find(keys.begin(), keys.end(), member.key) == keys.end())
      fail(member, format("'{}' is no key here{}", printable(member.key), suggestion(member.key, keys)));
  }
}

Value NodeValues::value(const Node& node) {
  if (node.kind != Node::Kind::scalar) {
    fail(node, "is not a single value");
    return std::string();
  }
  if (node.is_quoted) return node.text;
  if (node.text == "true" || node.text == "True") return true;
  if (node.text == "false" || node.text == "False") return false;
  if (std::int64_t whole = 0; parse_number(node.text, &whole)) return whole;
  if (double number = 0; parse_number(node.text, &number) && std::isfinite(number)) return number;
  return node.text;
}

std::vector<Value> NodeValues::values(const Node& node) {
  std::vector<Value> values;
  if (node.kind != Node::Kind::list) {
    values.push_back(value(node));
    return values;
  }
  if (node.items.empty()) fail(node, "is an empty list");
  for (const Node& item : node.items) values.push_back(value(item));
  return values;
}

std::string NodeValues::text(const Node& node) {
  if (node.kind == Node::Kind::scalar) return node.text;
  fail(node, "is not a text");
  return "";
}

double NodeValues::number(const Node& node) {
  double number = 0;
  if (node.kind == Node::Kind::scalar && !node.is_quoted && parse_number(node.text, &number) &&
      std::isfinite(number))
    return number;
  fail(node, format("'{}' is not a number", printable(node.text)));
  return 0;
}

std::int64_t NodeValues::whole(const Node& node, std::int64_t least) {
  std::int64_t number = 0;
  if (node.kind != Node::Kind::scalar || node.is_quoted || !parse_number(node.text, &number)) {
    fail(node, format("'{}' is not a whole number", printable(node.text)));
    return least;
  }
  if (number < least) fail(node, format("{} is less than {}", number, least));
  return std::max(number, least);
}

bool NodeValues::boolean(const Node& node) {
  const Value read = value(node);
  if (const bool* const truth = std::get_if<bool>(&read)) return *truth;
  fail(node, format("'{}' is neither true nor false", printable(node.text)));
  return false;
}

}  // namespace stoker::sweep
