#include "checkpoint/json_fields.h"

#include <optional>
#include <utility>

#include "base/json/json.h"

namespace stoker::checkpoint {

using Json = nlohmann::json;

struct JsonText::Tree {
  Json root;
};

namespace {

const Json& as_json(const void* value) { return *static_cast<const Json*>(value); }

}  // namespace

JsonText::JsonText(std::string_view subject, std::string_view text)
    : subject_(subject), tree_(std::make_unique<Tree>(Tree{parse_json<Json>(text)})) {
  if (!tree_->root.is_object()) status_ = corrupt("{}: is not a JSON object", subject_);
}

JsonText::~JsonText() = default;

JsonFields JsonText::fields() { return {this, &tree_->root}; }

void JsonFields::fail(std::string_view what) {
  if (ok()) text_->status_ = corrupt("{}: {}", text_->subject_, what);
}

const void* JsonFields::find(std::string_view key) {
  if (!ok()) return nullptr;
  const Json& object = as_json(object_);
  const auto found = object.find(std::string(key));
  if (found != object.end()) return &*found;
  fail(format("'{}' is missing", key));
  return nullptr;
}

std::string JsonFields::text(std::string_view key) {
  const void* value = find(key);
  if (value != nullptr && as_json(value).is_string()) return as_json(value).get<std::string>();
  fail(format("'{}' is not a string", key));
  return {};
}

std::uint64_t JsonFields::natural(std::string_view key) {
  const void* value = find(key);
  if (value != nullptr && as_json(value).is_number_unsigned()) return as_json(value).get<std::uint64_t>();
  fail(format("'{}' is not a whole number", key));
  return 0;
}

std::int64_t JsonFields::integer(std::string_view key) {
  const std::uint64_t value = natural(key);
  if (!std::in_range<std::int64_t>(value)) {
    fail(format("'{}' is too large", key));
    return 0;
  }
  return static_cast<std::int64_t>(value);
}

double JsonFields::number(std::string_view key) {
  const void* value = find(key);
  if (value != nullptr && as_json(value).is_number()) return as_json(value).get<double>();
  fail(format("'{}' is not a number", key));
  return 0;
}

namespace {

StateValues state_of(std::string_view subject, const Json& json, Status* error) {
  auto state = StateValues::parse(subject, json_text(json));
  if (state.ok()) return std::move(*state);
  *error = std::move(state).error();
  return {};
}

}  // namespace

StateValues JsonFields::state(std::string_view key) {
  const void* value = find(key);
  if (value == nullptr) return {};
  Status error;
  StateValues state = state_of(text_->subject_, as_json(value), &error);
  if (!error.ok()) text_->status_ = error;
  return state;
}

// Calls `read` for each element of a list; it returns nullopt for an element of the wrong kind.
template <typename Item, typename Read>
std::vector<Item> JsonFields::list(std::string_view key, Read read) {
  const void* value = find(key);
  if (value != nullptr && !as_json(value).is_array()) fail(format("'{}' is not a list", key));
  if (value == nullptr || !ok()) return {};
  std::vector<Item> items;
  items.reserve(as_json(value).size());
  for (const Json& element : as_json(value)) {
    std::optional<Item> item = read(element);
    if (!item) {
      fail(format("'{}' has an invalid element", key));
      return {};
    }
    items.push_back(std::move(*item));
  }
  return items;
}

std::vector<std::uint64_t> JsonFields::naturals(std::string_view key) {
  return list<std::uint64_t>(key, [](const Json& element) -> std::optional<std::uint64_t> {
    if (!element.is_number_unsigned()) return std::nullopt;
    return element.get<std::uint64_t>();
  });
}

std::vector<std::string> JsonFields::texts(std::string_view key) {
  return list<std::string>(key, [](const Json& element) -> std::optional<std::string> {
    if (!element.is_string()) return std::nullopt;
    return element.get<std::string>();
  });
}

std::vector<StateValues> JsonFields::states(std::string_view key) {
  return list<StateValues>(key, [&](const Json& element) -> std::optional<StateValues> {
    Status error;
    StateValues state = state_of(text_->subject_, element, &error);
    if (!error.ok()) return std::nullopt;
    return state;
  });
}

std::vector<JsonFields> JsonFields::objects(std::string_view key) {
  return list<JsonFields>(key, [&](const Json& element) -> std::optional<JsonFields> {
    if (!element.is_object()) return std::nullopt;
    return JsonFields(text_, &element);
  });
}

}  // namespace stoker::checkpoint
