// LitData's form of lists and objects: a byte that says what follows, then that.
#include <string_view>

#include "base/json/json.h"
#include "format/load.h"
#include "format/streams/stream_values.h"

namespace stoker::formats {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kDeepestJson = 32;

enum Tag : unsigned {
  kJson,
  kTexts,
  kIntegers,
  kReals,
  kBooleans,
  kObject,
  kRecords,
  kText,
  kInteger,
  kReal,
  kBoolean,
  kNone,
  kRecord = 0x10,  // in records: none, text, integer, real, boolean behind it
};

class Nested {
 public:
  explicit Nested(std::span<const std::byte> bytes) : left_(bytes) {}

  bool is_at_end() const { return left_.empty(); }

  // False for damage.
  bool read(OrderedJson& into, int depth) {
    if (left_.empty() || depth > kDeepestJson) return false;
    return value(take<std::uint8_t>(), into, depth);
  }

 private:
  template <typename T>
  T take() {
    const T number = load<T>(left_, 0);
    left_ = left_.subspan(sizeof(T));
    return number;
  }
  template <typename T>
  bool number(OrderedJson& into) {
    if (left_.size() < sizeof(T)) return false;
    into = take<T>();
    return true;
  }
  bool text(std::string& into) {
    if (left_.size() < kStreamWord) return false;
    const auto bytes = take<std::uint32_t>();
    if (bytes > left_.size()) return false;
    into.assign(reinterpret_cast<const char*>(left_.data()), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }
  bool text(OrderedJson& into) {
    std::string found;
    if (!text(found)) return false;
    into = std::move(found);
    return true;
  }
  bool boolean(OrderedJson& into) {
    if (left_.empty()) return false;
    into = take<std::uint8_t>() != 0;
    return true;
  }

  bool value(unsigned tag, OrderedJson& into, int depth) {
    switch (tag) {
      case kText:
      case kRecord + 1:
        return text(into);
      case kInteger:
      case kRecord + 2:
        return number<std::int64_t>(into);
      case kReal:
      case kRecord + 3:
        return number<double>(into);
      case kBoolean:
      case kRecord + 4:
        return boolean(into);
      case kNone:
      case kRecord:
        into = nullptr;
        return true;
      default:
        return tag <= kRecords && several(tag, into, depth);
    }
  }

  bool several(unsigned tag, OrderedJson& into, int depth) {
    if (tag == kJson) {
      std::string found;
      if (!text(found)) return false;
      into = parse_json<OrderedJson>(found);
      return !into.is_discarded();
    }
    if (left_.size() < kStreamWord) return false;
    const auto count = take<std::uint32_t>();
    if (count > left_.size()) return false;  // each takes a byte at least
    if (tag == kRecords) return records(count, into);
    into = tag == kObject ? OrderedJson::object() : OrderedJson::array();
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string key;
      if (tag == kObject && (!text(key) || !read(into[key], depth + 1))) return false;
      if (tag == kObject) continue;
      const unsigned each = tag == kTexts      ? kText
                            : tag == kIntegers ? kInteger
                            : tag == kReals    ? kReal
                                               : kBoolean;
      if (!value(each, into.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool records(std::uint32_t count, OrderedJson& into) {
    if (left_.size() < kStreamWord) return false;
    const auto keys = take<std::uint32_t>();
    if (keys == 0 || keys > left_.size()) return false;
    std::vector<std::string> names(keys);
    for (std::string& name : names) {
      if (!text(name)) return false;
    }
    into = OrderedJson::array();
    for (std::uint32_t i = 0; i < count; ++i) {
      OrderedJson& row = into.emplace_back(OrderedJson::object());
      for (const std::string& name : names) {
        if (left_.empty()) return false;
        const unsigned tag = take<std::uint8_t>();
        if (tag < kRecord || !value(tag, row[name], 0)) return false;
      }
    }
    return true;
  }

  std::span<const std::byte> left_;
};

}  // namespace

Result<std::string> nested_to_json(std::span<const std::byte> bytes, const std::string& subject) {
  constexpr unsigned kFirstOfText = 0x20;
  OrderedJson json;
  Nested nested(bytes);
  // Older ones are JSON as it is.
  const bool is_text = !bytes.empty() && static_cast<unsigned>(bytes[0]) > kFirstOfText;
  if (is_text) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    json = parse_json<OrderedJson>(text);
  }
  if (is_text ? json.is_discarded() : !nested.read(json, 0) || !nested.is_at_end())
    return corrupt("{}: lists and objects that cannot be read", subject);
  return json_text(json);
}

}  // namespace stoker::formats
