#include "format/samples/rows.h"

#include <algorithm>
#include <utility>

#include "format/samples/store.h"

namespace stoker::formats {

namespace {

constexpr std::size_t kMostArrays = 256;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 27;

// Nothing for one that has no rows of numbers.
std::optional<RowArrays::Array> array_of(const SampleArrays::Store& store, const std::string& name) {
  const Extents& shape = store.shape(name);
  const std::optional<DType> type = store.type(name).dtype();
  if (shape.empty() || shape[0] == 0 || !type || *type == DType::bf16)
    return std::nullopt;  // NumPy has no bf16
  const std::optional<std::uint64_t> bytes = product(std::span(shape).subspan(1), size_of(*type));
  if (!bytes || *bytes == 0) return std::nullopt;
  RowArrays::Array array{.name = name, .type = *type, .row = {}, .row_bytes = *bytes};
  for (const std::uint64_t size : std::span(shape).subspan(1))
    array.row.push_back(static_cast<std::int64_t>(size));
  return array;
}

}  // namespace

RowArrays::RowArrays(std::unique_ptr<SampleArrays::Store> store) : store_(std::move(store)) {}
RowArrays::~RowArrays() = default;
RowArrays::RowArrays(RowArrays&&) noexcept = default;

Status RowArrays::take(const std::string& subject) {
  if (store_->names().size() > kMostArrays) {
    return invalid("{}: has {} arrays (at most {} are read)", subject, store_->names().size(), kMostArrays);
  }
  long double most = 0;
  Status why;  // the first array that is not read
  for (const std::string& name : store_->names()) {
    const Status status = store_->open_arrays({name});
    if (!status.ok() && status.code() != Code::invalid) return status;
    if (!status.ok() && why.ok()) why = status;
    const std::optional<Array> array = status.ok() ? array_of(*store_, name) : std::nullopt;
    if (!array) {
      others_.push_back(name);
      continue;
    }
    arrays_.push_back(*array);
    const std::uint64_t rows = store_->shape(name)[0];
    const long double bytes = static_cast<long double>(rows) * static_cast<long double>(array->row_bytes);
    if (bytes > most) rows_ = rows;
    most = std::max(most, bytes);
  }
  if (arrays_.empty() && !why.ok()) return why;
  if (arrays_.empty()) return invalid("{}: has no array with rows of numbers", subject);
  if (rows_ > kMostRows) return invalid("{}: has {} rows (at most {} are read)", subject, rows_, kMostRows);
  std::erase_if(arrays_, [&](const Array& array) {
    const bool is_other = store_->shape(array.name)[0] != rows_;
    if (is_other) others_.push_back(array.name);
    return is_other;
  });
  return {};
}

Result<RowArrays> RowArrays::open(const Path& file, ArrayFormat format) {
  OK_OR_RETURN(store, SampleArrays::Store::open(file, format));
  RowArrays arrays(std::move(store));
  RETURN_IF_ERROR(arrays.take(printable(file.string())));
  return arrays;
}

Result<ChunkedArray> RowArrays::chunked(const Array& array) const { return store_->chunked(array.name); }

Result<std::vector<RowPiece>> RowArrays::pieces(const Array& array) const {
  return store_->pieces(array.name);
}

Result<std::vector<ShardPart>> RowArrays::parts() const { return store_->parts(); }

Status RowArrays::read(const Array& array, std::uint64_t first, std::uint64_t count,
                       std::span<std::byte> out) const {
  return store_->read_rows(array.name, first, count, out);
}

}  // namespace stoker::formats
