#include "data/look/arrays/row_scan.h"

#include <algorithm>
#include <cstring>

#include "base/encode.h"
#include "data/components/npy.h"
#include "format/expanded_file.h"
#include "format/samples/rows.h"

namespace stoker::data {

namespace {

using formats::RowArrays;

constexpr std::uint64_t kPiece = 8u << 20;

bool is_signed(DType type) {
  return type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
}

bool is_whole(DType type) {
  return is_signed(type) || type == DType::u8 || type == DType::u16 || type == DType::u32 ||
         type == DType::u64;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The label's array, or nothing where none or several could be it.
const RowArrays::Array* label_of(const RowArrays& arrays) {
  const RowArrays::Array* only = nullptr;
  for (const RowArrays::Array& array : arrays.arrays()) {
    const std::string name = to_lower(base_name(array.name));
    const bool is_called_so = name.ends_with("label") || name.ends_with("labels") || name == "y" ||
                              name == "target" || name == "targets";
    const bool is_list = array.row.empty() || (array.row.size() == 1 && array.row[0] == 1);
    if (!is_called_so || !is_list || !is_whole(array.type)) continue;
    if (only) return nullptr;
    only = &array;
  }
  return only;
}

// "train/images" as "train.images.npy"; an only array as "npy".
std::string extension_of_array(std::string_view name, bool is_only) {
  if (is_only) return "npy";
  std::string extension = to_lower(name);
  std::replace(extension.begin(), extension.end(), '/', '.');
  return extension + ".npy";
}

std::int64_t number_in(std::span<const std::byte> bytes, DType type) {
  const bool is_negative = is_signed(type) && (bytes.back() & std::byte{128}) != std::byte{0};
  std::int64_t value = is_negative ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

// A file that each sample has: a row of the array behind a .npy header.
struct Kind {
  const RowArrays::Array* array = nullptr;
  std::string extension;
  std::string header;

  std::uint64_t bytes() const { return header.size() + array->row_bytes; }
};

std::vector<Kind> kinds_of(const RowArrays& arrays, const RowArrays::Array* label) {
  std::vector<Kind> kinds;
  const std::size_t files = arrays.arrays().size() - (label ? 1 : 0);
  for (const RowArrays::Array& array : arrays.arrays()) {
    if (&array != label)
      kinds.push_back(
          {&array, extension_of_array(array.name, files == 1), npy_header(array.type, array.row)});
  }
  return kinds;
}

ShardScan begin_scan(const RowArrays& arrays, const std::string& stem) {
  ShardScan scan;
  scan.samples.resize(arrays.rows());
  for (std::uint64_t i = 0; i < arrays.rows(); ++i) scan.samples[i].key = format("{}/{:08}", stem, i);
  for (const std::string& name : arrays.others()) scan.not_taken[format("array '{}'", name)] = arrays.rows();
  return scan;
}

void add_member(ShardSample& sample, const Kind& kind, std::uint64_t place) {
  sample.members.push_back({.name = format("{}.{}", sample.key, kind.extension),
                            .extension = kind.extension,
                            .header_offset = place,
                            .data_offset = place,
                            .bytes = kind.bytes()});
}

// Labels of `count` rows from `first` on.
Status add_labels(const RowArrays& arrays, const RowArrays::Array* label, std::uint64_t first,
                  std::uint64_t count, ShardScan& scan) {
  if (!label) return {};
  std::vector<std::byte> rows(count * label->row_bytes);
  RETURN_IF_ERROR(arrays.read(*label, first, count, rows));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span<const std::byte>(rows).subspan(i * label->row_bytes, label->row_bytes);
    const std::int64_t number = number_in(row, label->type);
    if (number >= 0) scan.samples[first + i].label = number;
  }
  return {};
}

// Writes the rows one behind the other, and makes their samples.
class Unpacking {
 public:
  Unpacking(const RowArrays& arrays, const std::string& stem, File& out)
      : arrays_(arrays),
        out_(out),
        label_(label_of(arrays)),
        kinds_(kinds_of(arrays, label_)),
        scan_(begin_scan(arrays, stem)) {
    for (const Kind& kind : kinds_) row_bytes_ += kind.bytes();
  }

  /// Of one sample.
  std::uint64_t row_bytes() const { return row_bytes_; }
  bool has_files() const { return !kinds_.empty(); }

  Status add(std::uint64_t first, std::uint64_t count) {
    for (const Kind& kind : kinds_) {
      const std::uint64_t bytes = kind.array->row_bytes;
      rows_.resize(count * bytes);
      RETURN_IF_ERROR(arrays_.read(*kind.array, first, count, rows_));
      text_.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        ShardSample& sample = scan_.samples[first + i];
        const std::uint64_t place = at_ + text_.size();
        text_ += kind.header;
        text_.append(reinterpret_cast<const char*>(rows_.data()) + i * bytes, bytes);
        add_member(sample, kind, place);
      }
      RETURN_IF_ERROR(out_.write(text_));
      at_ += text_.size();
    }
    return add_labels(arrays_, label_, first, count, scan_);
  }

  ShardScan finish() {
    scan_.bytes = at_;
    scan_.end = at_;
    return std::move(scan_);
  }

 private:
  const RowArrays& arrays_;
  File& out_;
  const RowArrays::Array* label_;
  std::vector<Kind> kinds_;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t at_ = 0;
  std::vector<std::byte> rows_;
  std::string text_;
  ShardScan scan_;
};

}  // namespace

Result<ShardScan> scan_rows(const Path& path, const std::string& stem, RowChunks& chunks) {
  const bool is_hdf5 = kind_of_shard(path.filename().string()) == ContainerKind::hdf5;
  OK_OR_RETURN(arrays,
               RowArrays::open(path, is_hdf5 ? formats::ArrayFormat::hdf5 : formats::ArrayFormat::zarr));
  const RowArrays::Array* label = label_of(arrays);
  ShardScan scan = begin_scan(arrays, stem);
  std::uint64_t begin = 0;
  for (const Kind& kind : kinds_of(arrays, label)) {
    OK_OR_RETURN(pieces, arrays.pieces(*kind.array));
    for (formats::RowPiece& piece : pieces) {
      const std::uint64_t first = begin + piece.source_row * kind.bytes();
      for (std::uint64_t i = 0; i < piece.rows; ++i)
        add_member(scan.samples[piece.first_row + i], kind, first + i * kind.bytes());
      begin += piece.array.shape[0] * kind.bytes();
      piece.array.head = kind.header;
      chunks.arrays.push_back(std::move(piece.array));
    }
  }
  OK_OR_RETURN(parts, arrays.parts());
  chunks.parts = std::move(parts);
  if (chunks.arrays.empty()) return invalid("{}: has labels and nothing else", printable(path.string()));
  RETURN_IF_ERROR(add_labels(arrays, label, 0, arrays.rows(), scan));
  return scan;
}

Result<UnpackedShard> unpack_rows(const Path& path, const std::string& stem, const Path& scratch,
                                  Progress& progress) {
  const std::string subject = printable(path.string());
  const bool is_hdf5 = kind_of_shard(path.filename().string()) == ContainerKind::hdf5;
  OK_OR_RETURN(arrays,
               RowArrays::open(path, is_hdf5 ? formats::ArrayFormat::hdf5 : formats::ArrayFormat::zarr));
  OK_OR_RETURN(out, formats::nameless_file(scratch));
  OK_OR_RETURN(free, free_space(scratch));
  Unpacking unpacking(arrays, stem, out);
  if (!unpacking.has_files()) return invalid("{}: has labels and nothing else", subject);
  if (unpacking.row_bytes() > free.value / arrays.rows()) {
    return no_space("{}: {} rows of {} bytes as files, {} are free for them", subject, arrays.rows(),
                    unpacking.row_bytes(), rounded(free));
  }
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kPiece / unpacking.row_bytes());
  for (std::uint64_t row = 0; row < arrays.rows(); row += at_once) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    RETURN_IF_ERROR(unpacking.add(row, std::min(at_once, arrays.rows() - row)));
  }
  return UnpackedShard{unpacking.finish(), std::move(out)};
}

}  // namespace stoker::data
