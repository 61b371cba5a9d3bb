#include "arrays/samples/writer.h"

#include "arrays/samples/array_file.h"
#include "base/hash.h"

namespace stoker::arrays {

namespace {

// Marks a missing file: it ends before it begins.
constexpr std::uint64_t kNoFileBegin = 1;
constexpr std::uint64_t kNoFileEnd = 0;

}  // namespace

std::string_view unsafe_array_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('/') != std::string_view::npos) return "has a /";
  if (name.find_first_not_of('.') == std::string_view::npos) return "is dots and nothing else";
  if (name.starts_with("__")) return "begins with __, which is reserved in Zarr";
  constexpr std::size_t kLongest = 255;
  if (name.size() > kLongest) return "is longer than 255 bytes";
  return "";
}

SampleArraysWriter::SampleArraysWriter(ArrayFormat format, archive::ByteSink& sink,
                                       std::vector<std::string> files, bool has_labels)
    : file_(ArrayFile::make(format, sink)), has_labels_(has_labels) {
  for (std::string& name : files) files_.push_back({stoker::format("{}/{}", kSampleFiles, name), {}});
}

SampleArraysWriter::~SampleArraysWriter() = default;

Status SampleArraysWriter::begin() {
  if (has_begun_) return {};
  has_begun_ = true;
  return file_->begin();
}

Status SampleArraysWriter::begin_sample(std::string_view key, std::optional<std::int64_t> label) {
  STOKER_RETURN_IF_ERROR(begin());
  STOKER_CHECK(remaining_ == 0);
  ++samples_;
  for (Places& kind : files_) kind.numbers.insert(kind.numbers.end(), {kNoFileBegin, kNoFileEnd});
  if (has_labels_) labels_.push_back(label.value_or(-1));
  keys_ += key;
  key_ends_.push_back(keys_.size());
  return {};
}

Result<std::uint64_t> SampleArraysWriter::begin_file(std::size_t which, std::uint64_t bytes) {
  STOKER_CHECK(remaining_ == 0 && which < files_.size() && samples_ > 0);
  std::vector<std::uint64_t>& numbers = files_[which].numbers;
  STOKER_CHECK(numbers[numbers.size() - 2] == kNoFileBegin && numbers.back() == kNoFileEnd);
  numbers[numbers.size() - 2] = at_;
  numbers.back() = at_ + bytes;
  const std::uint64_t place = file_->bytes_begin() + at_;
  at_ += bytes;
  remaining_ = bytes;
  return place;
}

Status SampleArraysWriter::append(std::span<const std::byte> piece, std::uint32_t crc32c) {
  STOKER_CHECK(piece.size() <= remaining_);
  remaining_ -= piece.size();
  return file_->append(piece, crc32c);
}

// The keys follow the files, with ranges like theirs.
Status SampleArraysWriter::write_keys() {
  const auto text = std::as_bytes(std::span(keys_));
  STOKER_RETURN_IF_ERROR(file_->append(text, crc32c(text)));
  STOKER_RETURN_IF_ERROR(file_->end_bytes());
  std::vector<std::uint64_t> places;
  places.reserve(2 * key_ends_.size());
  std::uint64_t begin = at_;
  for (const std::uint64_t end : key_ends_) {
    places.insert(places.end(), {begin, at_ + end});
    begin = at_ + end;
  }
  return file_->add({.path = std::string(kSampleKeys),
                     .is_signed = false,
                     .shape = {samples_, 2},
                     .numbers = std::as_bytes(std::span(places))});
}

Status SampleArraysWriter::finish() {
  STOKER_RETURN_IF_ERROR(begin());
  STOKER_CHECK(remaining_ == 0);
  STOKER_RETURN_IF_ERROR(write_keys());
  for (const Places& kind : files_) {
    STOKER_RETURN_IF_ERROR(file_->add({.path = kind.path,
                                       .is_signed = false,
                                       .shape = {samples_, 2},
                                       .numbers = std::as_bytes(std::span(kind.numbers))}));
  }
  if (has_labels_) {
    STOKER_RETURN_IF_ERROR(file_->add({.path = std::string(kSampleLabels),
                                       .is_signed = true,
                                       .shape = {samples_},
                                       .numbers = std::as_bytes(std::span(labels_))}));
  }
  return file_->finish();
}

}  // namespace stoker::arrays
