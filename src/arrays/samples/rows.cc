#include "arrays/samples/rows.h"

#include <algorithm>
#include <utility>

#include "arrays/samples/store.h"
#include "arrays/samples/unusable_array.h"
#include "base/language/counted.h"

namespace stoker::arrays {

namespace {

constexpr std::size_t kMaxArrays = 256;
constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 27;
constexpr std::uint64_t kTextsAtOnce = 1u << 12;  // a text has at most 1 MiB

// Nothing for an array without rows of numbers.
std::optional<RowArrays::Array> array_of(const SampleArrays::Store& store, const std::string& name) {
  const codec::Extents& shape = store.shape(name);
  const std::optional<DType> type = store.type(name).dtype();
  if (shape.empty() || shape[0] == 0 || !type || *type == DType::bf16)
    return std::nullopt;  // NumPy has no bf16
  const std::optional<std::uint64_t> bytes = codec::product(std::span(shape).subspan(1), size_of(*type));
  if (!bytes || *bytes == 0) return std::nullopt;
  RowArrays::Array array{.name = name, .type = *type, .row = {}, .row_bytes = *bytes};
  for (const std::uint64_t size : std::span(shape).subspan(1))
    array.row.push_back(static_cast<std::int64_t>(size));
  return array;
}

// Nothing unless the array is a list of text, bytes or lists of numbers.
std::optional<RowArrays::Values> values_of(const SampleArrays::Store& store, const std::string& name) {
  const codec::Extents& shape = store.shape(name);
  const codec::ElementType& type = store.type(name);
  const bool is_variable_length = type.kind == codec::ElementType::Kind::variable_length;
  const bool is_text = type.kind == codec::ElementType::Kind::text || type.letter == 'S';
  const bool is_list = shape.size() == 1 || (is_variable_length && shape.size() == 2 && shape[1] == 1);
  if (!is_list || shape[0] == 0 || !(is_variable_length || is_text)) return std::nullopt;
  return RowArrays::Values{name, type};
}

}  // namespace

RowArrays::RowArrays(std::unique_ptr<SampleArrays::Store> store) : store_(std::move(store)) {}
RowArrays::~RowArrays() = default;
RowArrays::RowArrays(RowArrays&&) noexcept = default;

Status RowArrays::load(const std::string& subject) {
  if (store_->names().size() > kMaxArrays) {
    return invalid("{}: has {} arrays (at most {} are supported)", subject, store_->names().size(),
                   kMaxArrays);
  }
  long double most = 0;
  std::vector<UnusableArray> unusable;
  for (const std::string& name : store_->names()) {
    const Status status = store_->open_arrays({name});
    if (!status.ok() && status.code() != Code::invalid) return status;
    const std::optional<Array> array = status.ok() ? array_of(*store_, name) : std::nullopt;
    const std::optional<Values> values = status.ok() && !array ? values_of(*store_, name) : std::nullopt;
    if (!array && !values) {
      unusable.push_back(status.ok() ? unusable_array(name, store_->shape(name), store_->type(name))
                                     : unopened_array(name, status, subject));
      ignored_.push_back({.name = name, .rows = 0, .reason = unusable.back().reason});
      continue;
    }
    if (array) arrays_.push_back(*array);
    if (values) values_.push_back(*values);
    const std::uint64_t rows = store_->shape(name)[0];
    const std::uint64_t row_bytes = array ? array->row_bytes : values->type.bytes;
    const long double bytes = static_cast<long double>(rows) * static_cast<long double>(row_bytes);
    if (bytes > most) rows_ = rows;
    most = std::max(most, bytes);
  }
  if (arrays_.empty() && values_.empty()) return no_usable_array(unusable, subject);
  if (rows_ > kMaxRows)
    return invalid("{}: has {} (at most {} are supported)", subject, counted(rows_, "row"),
                   grouped(kMaxRows));
  const auto is_ignored = [&](const auto& array) {
    const std::uint64_t rows = store_->shape(array.name)[0];
    const bool differs = rows != rows_;
    const std::string reason = stoker::format("{}, not {}", counted(rows, "row"), grouped(rows_));
    if (differs) ignored_.push_back({array.name, rows, reason});
    return differs;
  };
  std::erase_if(arrays_, is_ignored);
  std::erase_if(values_, is_ignored);
  return {};
}

Result<RowArrays> RowArrays::open(const Path& file, ArrayFormat format) {
  STOKER_ASSIGN_OR_RETURN(store, SampleArrays::Store::open(file, format));
  return open(std::move(store), printable(file.string()));
}

Result<RowArrays> RowArrays::open(std::unique_ptr<SampleArrays::Store> store, const std::string& subject) {
  RowArrays arrays(std::move(store));
  STOKER_RETURN_IF_ERROR(arrays.load(subject));
  return arrays;
}

Result<codec::ChunkedArray> RowArrays::chunked(const Array& array) const {
  return store_->chunked(array.name);
}

Result<std::vector<RowPiece>> RowArrays::pieces(const Array& array) const {
  return store_->pieces(array.name);
}

Result<codec::ValueArray> RowArrays::places(const Values& values) const {
  if (values.type.kind == codec::ElementType::Kind::variable_length) return store_->values(values.name);
  STOKER_ASSIGN_OR_RETURN(array, store_->chunked(values.name));
  codec::ValueArray found;
  found.array = std::move(array);
  const std::uint64_t bytes = values.type.bytes;
  std::vector<std::byte> texts;
  for (std::uint64_t row = 0; row < rows_; row += kTextsAtOnce) {
    texts.resize(std::min(kTextsAtOnce, rows_ - row) * bytes);
    STOKER_RETURN_IF_ERROR(store_->read_rows(values.name, row, texts.size() / bytes, texts));
    for (std::uint64_t at = 0; at < texts.size(); at += bytes) {
      const std::uint64_t length = text_length(values.type, std::span(texts).subspan(at, bytes));
      found.places.push_back({row * bytes + at, length});
    }
  }
  return found;
}

Result<std::string> RowArrays::text(const Values& values, std::uint64_t row) const {
  std::vector<std::byte> letters(values.type.bytes);
  STOKER_RETURN_IF_ERROR(store_->read_rows(values.name, row, 1, letters));
  if (values.is_utf32()) return codec::utf32_to_utf8(letters);
  return std::string(reinterpret_cast<const char*>(letters.data()), text_length(values.type, letters));
}

Result<std::vector<codec::ShardPart>> RowArrays::parts() const { return store_->parts(); }

Status RowArrays::read(const Array& array, std::uint64_t first, std::uint64_t count,
                       std::span<std::byte> out) const {
  return store_->read_rows(array.name, first, count, out);
}

}  // namespace stoker::arrays
