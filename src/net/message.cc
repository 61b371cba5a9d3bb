#include "net/message.h"

namespace stoker::net {
namespace {

// Magic, then the length of the body. Integers are little-endian.
constexpr std::string_view kMagic = "STK1";
constexpr std::size_t kHeader = 8;

void put(std::string* out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

// Reads from the front of a body. Every read is bounds-checked.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  bool number(int bytes, std::uint64_t* out) {
    if (rest_.size() < static_cast<std::size_t>(bytes)) return false;
    *out = 0;
    for (int i = 0; i < bytes; ++i) {
      *out |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[static_cast<std::size_t>(i)]))
              << (8 * i);
    }
    rest_.remove_prefix(static_cast<std::size_t>(bytes));
    return true;
  }
  bool text(int length_bytes, std::string* out) {
    std::uint64_t length = 0;
    if (!number(length_bytes, &length) || length > rest_.size()) return false;
    *out = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool decode(std::string_view body, ControlMessage* out) {
  BodyReader reader(body);
  std::uint64_t count = 0;
  if (!reader.text(2, &out->kind) || !reader.number(2, &count) || count > kMaxFields) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    std::string value;
    if (!reader.text(2, &name) || !reader.text(4, &value)) return false;
    if (!out->fields.emplace(std::move(name), std::move(value)).second) return false;
  }
  return reader.at_end();
}

}  // namespace

ControlMessage& ControlMessage::with(std::string name, std::string value) {
  fields.insert_or_assign(std::move(name), std::move(value));
  return *this;
}
ControlMessage& ControlMessage::with(std::string name, std::int64_t value) {
  return with(std::move(name), std::to_string(value));
}
ControlMessage& ControlMessage::with(std::string name, double value) {
  return with(std::move(name), format("{:.6f}", value));
}

std::string_view ControlMessage::text(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::int64_t> ControlMessage::integer(std::string_view name) const {
  std::int64_t value = 0;
  if (!parse_number(text(name), &value)) return std::nullopt;
  return value;
}

std::optional<double> ControlMessage::number(std::string_view name) const {
  double value = 0;
  if (!parse_number(text(name), &value)) return std::nullopt;
  return value;
}

std::string encode(const ControlMessage& message) {
  STOKER_CHECK(message.fields.size() <= kMaxFields);
  std::string body;
  put(&body, message.kind.size(), 2);
  body += message.kind;
  put(&body, message.fields.size(), 2);
  for (const auto& [name, value] : message.fields) {
    put(&body, name.size(), 2);
    body += name;
    put(&body, value.size(), 4);
    body += value;
  }
  STOKER_CHECK(body.size() <= kLargestFrame);
  std::string frame(kMagic);
  put(&frame, body.size(), 4);
  return frame + body;
}

Result<std::optional<ControlMessage>> FrameParser::next() {
  // Rejects a foreign client at its first wrong byte, before a complete header has arrived.
  const std::size_t known = std::min(pending_.size(), kMagic.size());
  if (pending_.compare(0, known, kMagic, 0, known) != 0)
    return corrupt("message: does not start like a stoker message");
  if (pending_.size() < kHeader) return std::optional<ControlMessage>();
  std::uint64_t length = 0;
  BodyReader(std::string_view(pending_).substr(kMagic.size())).number(4, &length);
  if (length > kLargestFrame) return corrupt("message: {} bytes long (at most {})", length, kLargestFrame);
  if (pending_.size() < kHeader + length) return std::optional<ControlMessage>();
  ControlMessage message;
  if (!decode(std::string_view(pending_).substr(kHeader, length), &message)) {
    return corrupt("message: its {} bytes are not a valid list of fields", length);
  }
  pending_.erase(0, kHeader + length);
  return std::optional<ControlMessage>(std::move(message));
}

}  // namespace stoker::net
