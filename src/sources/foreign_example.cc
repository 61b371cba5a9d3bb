#include "sources/foreign_example.h"

#include <algorithm>
#include <array>

#include "base/encode.h"
#include "image/decode/decode.h"
#include "sources/source.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

constexpr std::size_t kMaxKey = 1024;

// Names in the scripts of TensorFlow's models, tensorflow_datasets and similar tools; the first match wins.
constexpr std::string_view kKeys[] = {
    "image/filename", "filename", "file_name", "image/file_name", "image/source_id", "id", "key",
    "image.path",     "path"};
constexpr std::string_view kLabels[] = {"label", "image/class/label"};

// "photos/cat.1.JPEG" as "photos/cat.1"; empty if it is not a file name.
std::string key_in(std::string_view text) {
  if (!is_utf8(text) || printable(text) != text) return {};
  const std::size_t slash = text.rfind('/');
  const std::size_t dot = text.rfind('.');
  const bool has_extension =
      dot != std::string_view::npos && dot > 0 && (slash == std::string_view::npos || dot > slash + 1);
  return std::string(has_extension ? text.substr(0, dot) : text);
}

// The number with the label, or null.
const archive::RecordNumber* label_in(const archive::ExampleRecord& record) {
  std::vector<std::string_view> names;
  for (const archive::RecordNumber& number : record.numbers) names.push_back(number.name);
  const auto found = find_label(names);
  return found ? &record.numbers[*found] : nullptr;
}

Result<std::string> key_of(const archive::ExampleRecord& record, const archive::ReadAt& read) {
  for (std::string_view name : kKeys) {
    for (const archive::RecordFile& file : record.files) {
      if (file.name != name || file.bytes == 0 || file.bytes > kMaxKey) continue;
      std::string text(file.bytes, '\0');
      STOKER_RETURN_IF_ERROR(read(file.offset, std::as_writable_bytes(std::span(text))));
      if (std::string key = key_in(text); !key.empty()) return key;
    }
  }
  return std::string();
}

Result<std::string> sniff_extension(const archive::RecordFile& file, const archive::ReadAt& read) {
  std::array<std::byte, image::kImageHeaderBytes> head{};
  const auto bytes = std::span(head).first(std::min<std::uint64_t>(head.size(), file.bytes));
  STOKER_RETURN_IF_ERROR(read(file.offset, bytes));
  return std::string(image::image_extension(bytes));
}

}  // namespace

std::optional<std::size_t> find_label(std::span<const std::string_view> names) {
  for (const std::string_view known : kLabels) {
    const auto found = std::ranges::find(names, known);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].ends_with("label")) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

bool is_key_feature(std::string_view name) { return std::ranges::find(kKeys, name) != std::end(kKeys); }

std::string extension_for_feature(std::string_view feature) {
  std::string name = to_lower(feature);
  for (char& c : name) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!is_kept) c = c == '/' ? '.' : '_';
  }
  return name;
}

Result<ShardSample> sample_from_example(const archive::ExampleRecord& record, const archive::ReadAt& read,
                                        const std::string& fallback_key, SkippedFields& skipped_fields) {
  ShardSample sample;
  STOKER_ASSIGN_OR_RETURN(key, key_of(record, read));
  sample.key = std::move(key);
  if (sample.key.empty()) sample.key = fallback_key;
  const archive::RecordNumber* label = record.label ? nullptr : label_in(record);
  sample.label = record.label;
  if (label) sample.label = label->value;
  for (const archive::RecordNumber& number : record.numbers) {
    if (&number != label) ++skipped_fields[number.name];
  }
  for (const std::string& name : record.unsupported_features) ++skipped_fields[name];
  sample.offset = record.offset;
  sample.bytes = record.bytes;
  std::vector<std::string> kinds;
  for (const archive::RecordFile& file : record.files) {
    STOKER_ASSIGN_OR_RETURN(kind, sniff_extension(file, read));
    kinds.push_back(std::move(kind));
  }
  const auto images = std::count_if(kinds.begin(), kinds.end(), [](auto& kind) { return !kind.empty(); });
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    const archive::RecordFile& file = record.files[i];
    std::string extension = extension_for_feature(file.name);
    if (images == 1 && !kinds[i].empty()) {
      extension = kinds[i];
    } else if (!kinds[i].empty()) {
      extension += '.' + kinds[i];
    } else if (is_image_extension(extension)) {
      extension += ".bin";
    }
    sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                              .extension = std::move(extension),
                              .header_offset = record.offset,
                              .data_offset = file.offset,
                              .bytes = file.bytes});
  }
  return sample;
}

}  // namespace stoker::sources
