#include "archive/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <ranges>
#include <set>
#include <tuple>

#include "base/encode.h"
#include "base/file.h"
#include "base/json/json.h"

namespace stoker::archive {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian and read in place");

namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::uint64_t kLengthBytes = 8;
// Far beyond any tensor; keeps a hostile header from growing one entry's shape without end.
constexpr std::size_t kMaxDimensions = 64;

// Accepts exactly one form of document:
//   { name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]}, "__metadata__": {text: text} }
// Deeper levels are never entered, so hostile nesting ends at its first bracket.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == ParseState::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return fail("size {} is too large", value);
      }
      if (entry_.shape.size() == kMaxDimensions) return fail("has more than {} dimensions", kMaxDimensions);
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (state_ == ParseState::offsets) {
      if (offsets_seen_ == 2) return fail("data_offsets has more than two numbers");
      (offsets_seen_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return unexpected("a number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is not an integer of 64 bits");
  }
  bool string(string_t& value) override {
    if (state_ == ParseState::metadata) {
      header.metadata[key_] = value;
      return true;
    }
    if (state_ != ParseState::entry || key_ != "dtype") return unexpected("text");
    const std::optional<DType> dtype = dtype_named(value);
    if (!dtype) return fail("dtype '{}' is not supported", printable(value));
    entry_.dtype = *dtype;
    return true;
  }
  bool binary(binary_t&) override { return unexpected("binary"); }

  bool start_object(std::size_t) override {
    if (state_ == ParseState::start) {
      state_ = ParseState::top;
      return true;
    }
    if (state_ != ParseState::top) return unexpected("an object");
    if (name_ == kMetadata) {
      state_ = ParseState::metadata;
      return true;
    }
    entry_ = SafetensorsEntry{.name = name_, .shape = {}};
    offsets_seen_ = 0;
    fields_.clear();
    state_ = ParseState::entry;
    return true;
  }
  bool key(string_t& key) override {
    if (state_ == ParseState::top) return begin_entry(key);
    key_ = key;
    if (state_ == ParseState::metadata) {
      return header.metadata.contains(key) ? fail("key '{}' appears twice", printable(key)) : true;
    }
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return fail("key '{}' is not known", printable(key));
    }
    return fields_.insert(key).second ? true : fail("key '{}' appears twice", key);
  }
  bool end_object() override {
    if (state_ == ParseState::entry) {
      for (const std::string_view field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) return fail("key '{}' is missing", field);
      }
      header.entries.push_back(std::move(entry_));
    }
    state_ = state_ == ParseState::top ? ParseState::done : ParseState::top;
    return true;
  }
  bool start_array(std::size_t) override {
    if (state_ != ParseState::entry || key_ == "dtype") return unexpected("a list");
    state_ = key_ == "shape" ? ParseState::shape : ParseState::offsets;
    return true;
  }
  bool end_array() override {
    if (state_ == ParseState::offsets && offsets_seen_ != 2)
      return fail("data_offsets has fewer than two numbers");
    state_ = ParseState::entry;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem = format("header is not JSON (byte {} of it)", position);
    return false;
  }

 private:
  enum class ParseState { start, top, entry, metadata, shape, offsets, done };

  bool begin_entry(const std::string& name) {
    name_ = name;
    key_.clear();
    if (name.empty()) return fail("a name is empty");
    return names_.insert(name).second ? true : fail("appears twice");
  }
  template <typename... Args>
  bool fail(std::string_view pattern, const Args&... args) {
    problem = format(pattern, args...);
    if (!name_.empty()) problem = format("tensor '{}': {}", printable(name_), problem);
    return false;
  }
  bool unexpected(std::string_view what) {
    if (state_ == ParseState::start) return fail("header is {}, not an object", what);
    if (state_ == ParseState::shape) return fail("shape holds {}", what);
    if (state_ == ParseState::offsets) return fail("data_offsets holds {}", what);
    if (state_ == ParseState::top) return fail("is {}, not an object", what);
    return fail("key '{}' is {}", printable(key_), what);
  }

  ParseState state_ = ParseState::start;
  std::string name_;
  std::string key_;
  SafetensorsEntry entry_;
  int offsets_seen_ = 0;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> fields_;
};

// The data must be covered from its first to its last byte, once.
Status check_coverage(std::string_view subject, SafetensorsHeader& header) {
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const std::uint64_t data_bytes = header.file_bytes - header.data_begin;
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string where = format("{}: tensor '{}'", subject, printable(entry.name));
    if (entry.end < entry.begin) return corrupt("{}: data_offsets end before they begin", where);
    const std::optional<std::uint64_t> bytes = tensor_bytes(entry.dtype, entry.shape);
    if (!bytes) return corrupt("{}: shape is too large", where);
    if (*bytes != entry.end - entry.begin) {
      return corrupt("{}: data_offsets span {} bytes, shape and dtype need {}", where,
                     entry.end - entry.begin, *bytes);
    }
    if (entry.begin > covered) {
      return corrupt("{}: begins at byte {} of the data, {} belongs to no tensor", where, entry.begin,
                     covered);
    }
    if (entry.begin < covered) return corrupt("{}: overlaps the tensor before it", where);
    covered = entry.end;
  }
  if (covered > data_bytes) {
    return corrupt("{}: is {} bytes long, its header needs {}", subject, header.file_bytes,
                   header.data_begin + covered);
  }
  if (covered < data_bytes) {
    return corrupt("{}: is {} bytes long, its header accounts for {}", subject, header.file_bytes,
                   header.data_begin + covered);
  }
  return {};
}

std::uint64_t header_length(std::span<const std::byte> start) {
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  return length;
}

Status check_length(std::string_view subject, std::uint64_t length, std::uint64_t file_bytes) {
  if (length > kSafetensorsHeaderLimit) {
    return corrupt("{}: header is {} bytes long (at most {})", subject, length, kSafetensorsHeaderLimit);
  }
  if (length > file_bytes - kLengthBytes) {
    return corrupt("{}: is {} bytes long, its header alone needs {}", subject, file_bytes,
                   kLengthBytes + length);
  }
  return {};
}

Status too_short(std::string_view subject, std::uint64_t file_bytes) {
  return corrupt("{}: is {} bytes long, too short for a safetensors file", subject, file_bytes);
}

}  // namespace

std::optional<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  // A size of zero makes the product zero, whatever the other sizes.
  std::uint64_t bytes = size_of(dtype);
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      is_empty = true;
    } else if (bytes > kMax / static_cast<std::uint64_t>(size)) {
      return std::nullopt;
    } else {
      bytes *= static_cast<std::uint64_t>(size);
    }
  }
  return is_empty ? 0 : bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view subject, std::span<const std::byte> start,
                                                   std::uint64_t file_bytes) {
  if (file_bytes < kLengthBytes || start.size() < kLengthBytes) return too_short(subject, file_bytes);
  const std::uint64_t length = header_length(start);
  STOKER_RETURN_IF_ERROR(check_length(subject, length, file_bytes));
  if (length > start.size() - kLengthBytes) {
    return corrupt("{}: header is cut off at byte {}", subject, start.size());
  }
  const char* text = reinterpret_cast<const char*>(start.data()) + kLengthBytes;
  if (length == 0 || *text != '{') return corrupt("{}: header does not begin with '{{'", subject);
  HeaderReader reader;
  // sax_parse() does not throw here: parse_error() above receives the errors.
  if (!nlohmann::json::sax_parse(text, text + length, &reader)) {
    return corrupt("{}: {}", subject, reader.problem);
  }
  reader.header.data_begin = kLengthBytes + length;
  reader.header.file_bytes = file_bytes;
  STOKER_RETURN_IF_ERROR(check_coverage(subject, reader.header));
  return std::move(reader.header);
}

Result<SafetensorsHeader> read_safetensors_header(const Path& path) {
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size < kLengthBytes) return too_short(subject, size);
  std::vector<std::byte> start(kLengthBytes);
  STOKER_RETURN_IF_ERROR(file.read_at(0, start));
  const std::uint64_t length = header_length(start);
  STOKER_RETURN_IF_ERROR(check_length(subject, length, size));
  start.resize(kLengthBytes + length);
  STOKER_RETURN_IF_ERROR(file.read_at(0, start));
  return parse_safetensors_header(subject, start, size);
}

namespace {

Status check_entries(const std::vector<SafetensorsEntry>& entries) {
  std::set<std::string_view> names;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name.empty()) return invalid("safetensors: a tensor has no name");
    if (printable(entry.name) != entry.name) {
      return invalid("safetensors: tensor '{}': name is not plain text", printable(entry.name));
    }
    if (entry.name == kMetadata) return invalid("safetensors: a tensor must not be named '{}'", kMetadata);
    if (!names.insert(entry.name).second)
      return invalid("safetensors: tensor '{}' appears twice", entry.name);
    if (entry.shape.size() > kMaxDimensions) {
      return invalid("safetensors: tensor '{}': has more than {} dimensions", entry.name, kMaxDimensions);
    }
    if (!tensor_bytes(entry.dtype, entry.shape)) {
      return invalid("safetensors: tensor '{}': shape is negative or too large", entry.name);
    }
  }
  return {};
}

Status check_metadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (printable(key) != key || printable(value) != value) {
      return invalid("safetensors: metadata '{}' is not plain text", printable(key));
    }
  }
  return {};
}

// The length, the text and blanks, so that the data begins on a page.
std::string pad_to_page(std::string text) {
  const std::uint64_t whole = kLengthBytes + text.size();
  text.append((kSafetensorsAlignment - whole % kSafetensorsAlignment) % kSafetensorsAlignment, ' ');
  const std::uint64_t length = text.size();
  text.insert(0, kLengthBytes, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text;
}

// A member of the metadata.
std::string member_text(const std::string& key, std::string_view text) {
  return format("{}:{}", json_string(key), json_string(text));
}

// A name needs the library only when something in it is to be escaped.
void add_name(std::string& to, const std::string& name) {
  const bool is_plain =
      std::ranges::all_of(name, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (is_plain) {
    to.append("\"").append(name).append("\"");
  } else {
    to += json_string(name);
  }
}

Status check_header(const std::string& bytes) {
  const std::uint64_t length = bytes.size() - kLengthBytes;
  if (length <= kSafetensorsHeaderLimit) return {};
  return invalid("safetensors: header is {} bytes long (at most {})", length, kSafetensorsHeaderLimit);
}

// Written by hand: the library's ordered object searches all keys for each new one.
std::string padded_header(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += format("{}:{}", json_string(kMetadata), json_text(nlohmann::json(header.metadata)));
  }
  for (const SafetensorsEntry& entry : header.entries) {
    if (text.size() > 1) text += ',';
    add_name(text, entry.name);
    text.append(":{\"dtype\":\"").append(to_text(entry.dtype)).append("\",\"shape\":[");
    for (std::size_t i = 0; i < entry.shape.size(); ++i) {
      if (i > 0) text += ',';
      text += std::to_string(entry.shape[i]);
    }
    text.append("],\"data_offsets\":[").append(std::to_string(entry.begin)).append(",");
    text.append(std::to_string(entry.end)).append("]}");
  }
  return pad_to_page(text + "}");
}

}  // namespace

Result<std::string> header_with_metadata(const SafetensorsPlan& plan, const std::string& key,
                                         std::string_view text) {
  STOKER_RETURN_IF_ERROR(check_metadata({{key, std::string(text)}}));
  // A quote inside any text of the metadata is escaped, so the member is found where it is, not in a text.
  const std::string old = member_text(key, plan.header.metadata.at(key));
  const std::size_t at = plan.bytes.find(old, kLengthBytes);
  STOKER_CHECK(at != std::string::npos);
  std::string header = plan.bytes.substr(kLengthBytes, plan.bytes.find_last_not_of(' ') + 1 - kLengthBytes);
  header.replace(at - kLengthBytes, old.size(), member_text(key, text));
  std::string bytes = pad_to_page(std::move(header));
  STOKER_RETURN_IF_ERROR(check_header(bytes));
  return bytes;
}

Result<SafetensorsPlan> plan_safetensors(std::vector<SafetensorsEntry> entries,
                                         std::map<std::string, std::string> metadata) {
  STOKER_RETURN_IF_ERROR(check_entries(entries));
  STOKER_RETURN_IF_ERROR(check_metadata(metadata));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(-static_cast<int>(size_of(a.dtype)), std::string_view(a.name)) <
           std::make_tuple(-static_cast<int>(size_of(b.dtype)), std::string_view(b.name));
  });
  SafetensorsPlan plan;
  std::uint64_t offset = 0;
  for (SafetensorsEntry& entry : entries) {
    const std::uint64_t bytes = *tensor_bytes(entry.dtype, entry.shape);
    entry.begin = offset;
    entry.end = offset + bytes;
    if (entry.end > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return invalid("safetensors: tensor '{}': the file becomes too large", entry.name);
    }
    offset = entry.end;
  }
  plan.header.entries = std::move(entries);
  plan.header.metadata = std::move(metadata);
  plan.bytes = padded_header(plan.header);
  STOKER_RETURN_IF_ERROR(check_header(plan.bytes));
  plan.header.data_begin = plan.bytes.size();
  plan.header.file_bytes = plan.bytes.size() + offset;
  return plan;
}

}  // namespace stoker::archive
