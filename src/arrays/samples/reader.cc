#include "arrays/samples/reader.h"

#include <algorithm>
#include <cstring>

#include "arrays/samples/store.h"
#include "arrays/samples/writer.h"
#include "base/language/counted.h"

namespace stoker::arrays {

namespace {

constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 27;  // its table of ranges takes 2 GiB
constexpr std::uint64_t kRowsAtOnce = std::uint64_t{1} << 18;

bool is_integer(const codec::ElementType& type) {
  return type.kind == codec::ElementType::Kind::signed_integer ||
         type.kind == codec::ElementType::Kind::unsigned_integer;
}

// Extends integers of any width to 64 bits.
void widen(std::span<const std::byte> bytes, const codec::ElementType& type,
           std::vector<std::int64_t>& into) {
  for (std::size_t at = 0; at < bytes.size(); at += type.bytes) {
    const std::span<const std::byte> element = bytes.subspan(at, type.bytes);
    const bool is_negative = type.kind == codec::ElementType::Kind::signed_integer &&
                             (element.back() & std::byte{128}) != std::byte{0};
    std::int64_t value = is_negative ? -1 : 0;
    std::memcpy(&value, element.data(), element.size());
    into.push_back(value);
  }
}

std::string_view file_kind(std::string_view name) {
  const std::string_view prefix = "files/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view();
}

// "float64 values (shape 20 x 3)", "a single int64".
std::string description_of(const SampleArrays::Store& store, const std::string& name) {
  const std::string type = codec::type_name(store.type(name));
  const codec::Extents& shape = store.shape(name);
  if (shape.empty()) return format("a single {}", type);
  return format("{} values (shape {})", type, codec::shape_text(shape));
}

// All numbers of an array with one or `columns` columns.
Result<std::vector<std::int64_t>> numbers_of(const SampleArrays::Store& store, const std::string& name,
                                             const std::string& subject) {
  const codec::Extents& shape = store.shape(name);
  const codec::ElementType& type = store.type(name);
  const std::uint64_t columns = shape.size() == 2 ? shape[1] : 1;
  std::vector<std::int64_t> numbers;
  for (std::uint64_t row = 0; row < shape[0]; row += kRowsAtOnce) {
    const std::uint64_t count = std::min(kRowsAtOnce, shape[0] - row);
    std::vector<std::byte> bytes(count * columns * type.bytes);
    STOKER_RETURN_IF_ERROR(std::move(store.read_rows(name, row, count, bytes)).with_context(subject));
    widen(bytes, type, numbers);
  }
  return numbers;
}

}  // namespace

SampleArrays::SampleArrays(std::unique_ptr<Store> store) : store_(std::move(store)) {}
SampleArrays::~SampleArrays() = default;
SampleArrays::SampleArrays(SampleArrays&&) noexcept = default;

// Pairs of begin and end, or one list of N + 1 numbers in which each file ends where the next begins.
Result<std::vector<SampleArrays::ByteSpan>> SampleArrays::places(const std::string& name,
                                                                 const std::string& subject) const {
  const codec::Extents& shape = store_->shape(name);
  const bool is_list = shape.size() == 1;
  if (!is_integer(store_->type(name)) || !(is_list || (shape.size() == 2 && shape[1] == 2)) ||
      (is_list && shape[0] == 0)) {
    return invalid("{}: array '{}': is neither N pairs of offsets nor a list of N + 1: it has {}", subject,
                   printable(name), description_of(*store_, name));
  }
  if (shape[0] > kMaxSamples) {
    return invalid("{}: array '{}': has {} (at most {} are supported)", subject, printable(name),
                   counted(shape[0], "row"), grouped(kMaxSamples));
  }
  STOKER_ASSIGN_OR_RETURN(numbers, numbers_of(*store_, name, subject));
  std::vector<ByteSpan> places;
  places.reserve(shape[0]);
  const std::size_t step = is_list ? 1 : 2;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += step) {
    const ByteSpan place{static_cast<std::uint64_t>(numbers[i]), static_cast<std::uint64_t>(numbers[i + 1])};
    const bool may_lack = !is_list;  // begin > end
    if ((!place.is_present() && !may_lack) || (place.is_present() && place.end > bytes_)) {
      return corrupt("{}: array '{}': row {}: {} to {} are outside 'bytes', which has {}", subject,
                     printable(name), i / step, place.begin, place.end, bytes_);
    }
    places.push_back(place);
  }
  return places;
}

// Opens the arrays with a known meaning.
Status SampleArrays::open_arrays(const std::string& subject) {
  std::vector<std::string> wanted;
  for (const std::string& name : store_->names()) {
    const bool is_known = name == kSampleBytes || name == kSampleKeys || name == kSampleLabels ||
                          unsafe_array_name(file_kind(name)).empty();
    (is_known ? wanted : ignored_).push_back(name);
  }
  for (const std::string& name : wanted) {
    if (!file_kind(name).empty()) files_.push_back({std::string(file_kind(name)), {}});
    has_bytes_ = has_bytes_ || name == kSampleBytes;
    has_keys_ = has_keys_ || name == kSampleKeys;
    has_labels_ = has_labels_ || name == kSampleLabels;
  }
  if (!has_bytes_) {
    return not_found("{}: its arrays are not samples: 'bytes' is missing", subject)
        .cure("stoker data convert FOLDER OUT, which reads arrays with one row per sample");
  }
  if (files_.empty()) {
    return invalid(
        "{}: its arrays are not samples: an array of ranges in 'bytes', such as 'files/jpg', is missing",
        subject);
  }
  return store_->open_arrays(wanted);
}

Status SampleArrays::load(const std::string& subject) {
  STOKER_RETURN_IF_ERROR(open_arrays(subject));
  const std::string bytes(kSampleBytes);
  if (store_->shape(bytes).size() != 1 || store_->type(bytes).bytes != 1)
    return invalid("{}: array 'bytes': is not a list of bytes: it has {}", subject,
                   description_of(*store_, bytes));
  bytes_ = store_->shape(bytes)[0];
  const auto count_mismatch = [&](std::string_view name, std::uint64_t samples) {
    return corrupt("{}: array 'files/{}' has {}, '{}' has {}", subject, printable(files_[0].name),
                   counted(samples_, "sample"), printable(name), samples);
  };
  for (Kind& kind : files_) {
    const std::string name = stoker::format("{}/{}", kSampleFiles, kind.name);
    STOKER_ASSIGN_OR_RETURN(found, places(name, subject));
    kind.places = std::move(found);
    if (&kind == &files_[0]) samples_ = kind.places.size();
    if (kind.places.size() != samples_) return count_mismatch(name, kind.places.size());
  }
  if (has_keys_) {
    STOKER_ASSIGN_OR_RETURN(found, places(std::string(kSampleKeys), subject));
    keys_ = std::move(found);
    if (keys_.size() != samples_) return count_mismatch(kSampleKeys, keys_.size());
  }
  if (has_labels_) {
    const std::string labels(kSampleLabels);
    if (!is_integer(store_->type(labels)) || store_->shape(labels) != codec::Extents{samples_})
      return invalid("{}: array 'label': is not a list of one integer per sample: it has {}", subject,
                     description_of(*store_, labels));
    STOKER_ASSIGN_OR_RETURN(found, numbers_of(*store_, labels, subject));
    labels_ = std::move(found);
  }
  return {};
}

Result<SampleArrays> SampleArrays::open(const Path& file, ArrayFormat format) {
  STOKER_ASSIGN_OR_RETURN(store, Store::open(file, format));
  SampleArrays samples(std::move(store));
  STOKER_RETURN_IF_ERROR(samples.load(printable(file.string())));
  return samples;
}

Result<std::uint64_t> SampleArrays::contiguous_offset() const {
  return store_->contiguous_offset(std::string(kSampleBytes));
}

Result<codec::ChunkedArray> SampleArrays::chunked() const {
  return store_->chunked(std::string(kSampleBytes));
}

Result<std::vector<codec::ShardPart>> SampleArrays::parts() const { return store_->parts(); }

Status SampleArrays::read(std::uint64_t begin, std::span<std::byte> out) const {
  return store_->read_rows(std::string(kSampleBytes), begin, out.size(), out);
}

}  // namespace stoker::arrays
