#include "archive/tfrecord.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/hash.h"

namespace stoker::archive {

static_assert(std::endian::native == std::endian::little, "TFRecord is little-endian");

namespace {

constexpr std::string_view kKey = "__key__";
constexpr std::string_view kLabel = "cls";
constexpr std::uint64_t kHeadBytes = 12;  // length and its CRC
constexpr std::uint64_t kRecordCrcBytes = 4;
constexpr std::uint64_t kTextLimit = 4096;  // of keys and names
constexpr std::size_t kMaxFeatures = 1000;
constexpr std::size_t kCombineFrom = 16u << 10;  // from there on adding up CRCs is cheaper than computing one

// Tags of the three messages: field number << 3 | wire type.
constexpr unsigned kFirstField =
    1 << 3 | 2;  // Example.features, Features.feature, an entry's key, the lists' value
constexpr unsigned kSecondField = 2 << 3 | 2;  // an entry's value
constexpr unsigned kIntegers = 3 << 3 | 2;     // Feature.int64_list
constexpr unsigned kNumber = 1 << 3;           // a number of a list that is not packed

std::uint64_t varint_bytes(std::uint64_t value) {
  std::uint64_t bytes = 1;
  for (; value >= 128; value >>= 7) ++bytes;
  return bytes;
}

// A tag, a length and the content.
std::uint64_t field_bytes(std::uint64_t content) { return 1 + varint_bytes(content) + content; }

void put_varint(std::string& text, std::uint64_t value) {
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  text += static_cast<char>(value);
}

void put_field(std::string& text, unsigned tag, std::uint64_t content) {
  text += static_cast<char>(tag);
  put_varint(text, content);
}

// An entry of the feature map whose feature is one list, of `list` bytes with its tags.
std::uint64_t entry_bytes(std::string_view name, std::uint64_t list) {
  return field_bytes(name.size()) + field_bytes(field_bytes(list));
}

void put_entry(std::string& text, std::string_view name, unsigned kind, std::uint64_t list) {
  put_field(text, kFirstField, entry_bytes(name, list));
  put_field(text, kFirstField, name.size());
  text += name;
  put_field(text, kSecondField, field_bytes(list));
  put_field(text, kind, list);
}

std::uint64_t label_list(std::int64_t label) {
  return field_bytes(varint_bytes(static_cast<std::uint64_t>(label)));
}

std::uint64_t features_bytes(const ExampleHead& head, std::span<const ExampleFile> files) {
  std::uint64_t bytes = field_bytes(entry_bytes(kKey, field_bytes(head.key.size())));
  if (head.label) bytes += field_bytes(entry_bytes(kLabel, label_list(*head.label)));
  for (const ExampleFile& file : files) bytes += field_bytes(entry_bytes(file.name, field_bytes(file.bytes)));
  return bytes;
}

// Whether the first bytes, read as the length of the first record, are a zlib header.
bool looks_like_zlib(std::uint64_t length) {
  constexpr std::uint64_t kDeflate = 0x78;  // in a window of 32 KiB
  constexpr std::uint64_t kDictionary = 0x20;
  const std::uint64_t first = length & 255;
  const std::uint64_t second = length >> 8 & 255;
  return length >= kTfRecordLimit && first == kDeflate && (first << 8 | second) % 31 == 0 &&
         (second & kDictionary) == 0;
}

template <typename T>
void put_number(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::uint64_t tfrecord_bytes(const ExampleHead& head, std::span<const ExampleFile> files) {
  return kHeadBytes + field_bytes(features_bytes(head, files)) + kRecordCrcBytes;
}

Status TfRecordWriter::put(std::span<const std::byte> data) {
  STOKER_RETURN_IF_ERROR(sink_.write(data));
  position_ += data.size();
  return {};
}

Status TfRecordWriter::begin(const ExampleHead& head, std::span<const ExampleFile> files) {
  STOKER_CHECK(remaining_ == 0 && next_file_ == files_.size());
  const std::uint64_t features = features_bytes(head, files);
  if (features >= kTfRecordLimit - 16) {
    return invalid("sample '{}': has {} bytes (a record may have 2 GiB)", printable(head.key), features);
  }
  text_.clear();
  put_number(text_, field_bytes(features));
  put_number(text_, masked_crc(crc32c(text_)));
  put_field(text_, kFirstField, features);
  put_entry(text_, kKey, kFirstField, field_bytes(head.key.size()));
  put_field(text_, kFirstField, head.key.size());
  text_ += head.key;
  if (head.label) {
    put_entry(text_, kLabel, kIntegers, label_list(*head.label));
    const auto value = static_cast<std::uint64_t>(*head.label);
    put_field(text_, kFirstField, varint_bytes(value));
    put_varint(text_, value);
  }
  files_ = files;
  next_file_ = 0;
  crc_ = crc32c(std::string_view(text_).substr(kHeadBytes));
  return put(std::as_bytes(std::span(text_)));
}

Result<std::uint64_t> TfRecordWriter::begin_file() {
  STOKER_CHECK(remaining_ == 0 && next_file_ < files_.size());
  const ExampleFile& file = files_[next_file_++];
  text_.clear();
  put_entry(text_, file.name, kFirstField, field_bytes(file.bytes));
  put_field(text_, kFirstField, file.bytes);
  crc_ = crc32c(text_, crc_);
  STOKER_RETURN_IF_ERROR(put(std::as_bytes(std::span(text_))));
  remaining_ = file.bytes;
  return position_;
}

Status TfRecordWriter::append(std::span<const std::byte> data, std::uint32_t crc32c) {
  STOKER_CHECK(data.size() <= remaining_);
  remaining_ -= data.size();
  crc_ = data.size() < kCombineFrom ? stoker::crc32c(data, crc_) : crc32c_combine(crc_, crc32c, data.size());
  STOKER_RETURN_IF_ERROR(sink_.write_with_crc(data, crc32c));
  position_ += data.size();
  return {};
}

Status TfRecordWriter::end() {
  if (remaining_ != 0) return internal("record: {} bytes short of the announced size", remaining_);
  STOKER_CHECK(next_file_ == files_.size());
  const std::uint32_t crc = masked_crc(crc_);
  return put(std::as_bytes(std::span(&crc, 1)));
}

bool TfRecordCheck::update(std::uint64_t begin, std::span<const std::byte> block) {
  const std::uint64_t end = begin + block.size();
  const auto part = [&](std::uint64_t from, std::uint64_t to) {
    from = std::clamp(from, begin, end);
    return block.subspan(from - begin, std::clamp(to, from, end) - from);
  };
  const std::uint64_t data_end = offset_ + bytes_ - kRecordCrcBytes;
  crc_ = crc32c(part(offset_ + kHeadBytes, data_end), crc_);
  const std::span<const std::byte> stored = part(data_end, data_end + kRecordCrcBytes);
  if (!stored.empty())
    std::memcpy(stored_.data() + (std::max(begin, data_end) - data_end), stored.data(), stored.size());
  return data_end + kRecordCrcBytes <= end;
}

bool TfRecordCheck::is_valid() const {
  std::uint32_t stored = 0;
  std::memcpy(&stored, stored_.data(), sizeof stored);
  return stored == masked_crc(crc_);
}

// A stretch of a record that is one message.
struct TfRecordReader::Scope {
  std::uint64_t at = 0;
  std::uint64_t end = 0;
  bool is_done() const { return at >= end; }
  std::uint64_t bytes() const { return end - at; }
};

Status TfRecordReader::damaged(std::string_view what) const {
  return corrupt("{}: byte {}: {}", subject_, position_, what);
}

Result<std::optional<ExampleRecord>> TfRecordReader::next() {
  Result<std::optional<ExampleRecord>> record = next_record();
  if (!record.ok()) position_ = size_;
  return record;
}

// Makes the window cover the bytes from `at` on, up to `bytes` or the end.
Status TfRecordReader::fill(std::uint64_t at, std::size_t bytes) {
  constexpr std::uint64_t kWindow = 64u << 10;
  const std::uint64_t wanted = std::min<std::uint64_t>(at + bytes, size_);
  if (at >= window_begin_ && wanted <= window_begin_ + window_.size()) return {};
  window_.resize(std::min(kWindow, size_ - at));
  window_begin_ = at;
  return read_(at, window_);
}

Result<std::uint64_t> TfRecordReader::varint(Scope& scope) {
  constexpr std::size_t kMax = 10;
  STOKER_RETURN_IF_ERROR(fill(scope.at, kMax));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMax && scope.at < scope.end; ++i) {
    const auto byte = static_cast<unsigned>(window_[scope.at++ - window_begin_]);
    if (i == kMax - 1 && byte > 1) break;
    value |= std::uint64_t{byte & 127} << 7 * i;
    if (byte < 128) return value;
  }
  return damaged("a number without an end");
}

// A length-delimited message.
Result<TfRecordReader::Scope> TfRecordReader::content(Scope& scope) {
  STOKER_ASSIGN_OR_RETURN(length, varint(scope));
  if (length > scope.bytes()) return damaged("a field reaches beyond its message");
  const Scope content{scope.at, scope.at + length};
  scope.at += length;
  return content;
}

// The content of the next field, which must have this tag.
Result<TfRecordReader::Scope> TfRecordReader::field(Scope& scope, unsigned tag, std::string_view what) {
  STOKER_ASSIGN_OR_RETURN(found, varint(scope));
  if (found != tag) return damaged(what);
  return content(scope);
}

Result<std::string> TfRecordReader::text_of(const Scope& scope, std::string_view what) {
  if (scope.bytes() > kTextLimit) return damaged(what);
  std::string text(scope.bytes(), '\0');
  STOKER_RETURN_IF_ERROR(read_(scope.at, std::as_writable_bytes(std::span(text))));
  return text;
}

// A map entry: a name and a Feature with one list. An empty list is ignored.
Status TfRecordReader::read_feature(Scope entry, ExampleRecord& into) {
  constexpr std::string_view kTorn = "a feature that is not a list of bytes or numbers";
  std::string name;
  Scope feature;
  while (!entry.is_done()) {
    STOKER_ASSIGN_OR_RETURN(tag, varint(entry));
    if (tag != kFirstField && tag != kSecondField) return damaged(kTorn);
    STOKER_ASSIGN_OR_RETURN(part, content(entry));
    if (tag == kSecondField) {
      feature = part;
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(text, text_of(part, "a name over 4096 bytes"));
    name = std::move(text);
  }
  if (feature.is_done()) return {};
  STOKER_ASSIGN_OR_RETURN(kind, varint(feature));
  STOKER_ASSIGN_OR_RETURN(list, content(feature));
  if (!feature.is_done() || (kind != kFirstField && kind != kSecondField && kind != kIntegers))
    return damaged(kTorn);
  if (list.is_done()) return {};
  if (kind == kFirstField) return read_bytes(list, std::move(name), into);
  if (kind == kIntegers) return read_integer(list, std::move(name), into);
  return skip_feature(std::move(name), into);
}

// A feature of several values.
Status TfRecordReader::skip_feature(std::string name, ExampleRecord& into) {
  into.unsupported_features.push_back(std::move(name));
  return {};
}

Status TfRecordReader::read_bytes(Scope list, std::string name, ExampleRecord& into) {
  STOKER_ASSIGN_OR_RETURN(bytes, field(list, kFirstField, "a list of bytes that holds something else"));
  if (!list.is_done()) return skip_feature(std::move(name), into);
  if (name != kKey) {
    into.files.push_back({.name = std::move(name), .offset = bytes.at, .bytes = bytes.bytes()});
    return {};
  }
  STOKER_ASSIGN_OR_RETURN(key, text_of(bytes, "a key over 4096 bytes"));
  into.key = std::move(key);
  return {};
}

Status TfRecordReader::read_integer(Scope list, std::string name, ExampleRecord& into) {
  STOKER_ASSIGN_OR_RETURN(tag, varint(list));
  if (tag == kFirstField) {  // packed
    STOKER_ASSIGN_OR_RETURN(packed, content(list));
    if (!list.is_done()) return skip_feature(std::move(name), into);
    list = packed;
    if (list.is_done()) return {};
  } else if (tag != kNumber) {
    return damaged("a list of numbers that holds something else");
  }
  STOKER_ASSIGN_OR_RETURN(value, varint(list));
  if (!list.is_done()) return skip_feature(std::move(name), into);
  if (name == kLabel) into.label = static_cast<std::int64_t>(value);
  if (name != kLabel) into.numbers.push_back({std::move(name), static_cast<std::int64_t>(value)});
  return {};
}

Result<std::optional<ExampleRecord>> TfRecordReader::next_record() {
  if (position_ == size_) return std::optional<ExampleRecord>();
  if (size_ - position_ < kHeadBytes + kRecordCrcBytes) return damaged("a truncated record");
  STOKER_RETURN_IF_ERROR(fill(position_, kHeadBytes));
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
  const std::byte* head = window_.data() + (position_ - window_begin_);
  std::memcpy(&length, head, sizeof length);
  std::memcpy(&crc, head + sizeof length, sizeof crc);
  if (crc != masked_crc(crc32c(std::span(head, sizeof length)))) {
    if (position_ == 0 && looks_like_zlib(length))
      return invalid("{}: looks compressed with ZLIB, which is not supported (gzip and zstd are)", subject_);
    return damaged("the length's CRC is wrong");
  }
  if (length > size_ - position_ - kHeadBytes - kRecordCrcBytes)
    return damaged("a record reaches beyond the end");
  ExampleRecord record;
  record.offset = position_;
  record.bytes = kHeadBytes + length + kRecordCrcBytes;
  Scope example{position_ + kHeadBytes, position_ + kHeadBytes + length};
  STOKER_ASSIGN_OR_RETURN(features, field(example, kFirstField, "is not a tf.train.Example"));
  if (!example.is_done()) return damaged("is not a tf.train.Example");
  for (std::size_t read = 0; !features.is_done(); ++read) {
    if (read == kMaxFeatures) return damaged("over 1000 features");
    STOKER_ASSIGN_OR_RETURN(entry, field(features, kFirstField, "is not a tf.train.Example"));
    STOKER_RETURN_IF_ERROR(read_feature(entry, record));
  }
  position_ += record.bytes;
  return std::optional(std::move(record));
}

}  // namespace stoker::archive
