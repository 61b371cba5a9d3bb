#include "sources/arrays/row_scan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "archive/decompress_file.h"
#include "arrays/samples/rows.h"
#include "base/encode.h"
#include "base/language/counted.h"
#include "codec/npy.h"
#include "sources/arrays/value_rows.h"

namespace stoker::sources {

namespace {

using arrays::RowArrays;

constexpr std::uint64_t kPiece = 8u << 20;

bool is_signed(DType type) {
  return type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
}

bool is_whole(DType type) {
  return is_signed(type) || type == DType::u8 || type == DType::u16 || type == DType::u32 ||
         type == DType::u64;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_label_name(std::string_view path) {
  const std::string name = to_lower(base_name(path));
  return name.ends_with("label") || name.ends_with("labels") || name == "y" || name == "target" ||
         name == "targets";
}

// The array of labels, integers or texts; empty if no array or several qualify.
struct Label {
  const RowArrays::Array* numbers = nullptr;
  const RowArrays::Values* texts = nullptr;
};

Label label_of(const RowArrays& arrays) {
  Label label;
  std::size_t found = 0;
  for (const RowArrays::Array& array : arrays.arrays()) {
    const bool is_list = array.row.empty() || (array.row.size() == 1 && array.row[0] == 1);
    if (!is_label_name(array.name) || !is_list || !is_whole(array.type)) continue;
    label.numbers = &array;
    ++found;
  }
  for (const RowArrays::Values& values : arrays.values()) {
    if (!is_label_name(values.name) || !values.is_text()) continue;
    label.texts = &values;
    ++found;
  }
  return found == 1 ? label : Label();
}

std::vector<const RowArrays::Values*> values_for_files(const RowArrays& arrays, const Label& label) {
  std::vector<const RowArrays::Values*> values;
  for (const RowArrays::Values& one : arrays.values()) {
    if (&one != label.texts) values.push_back(&one);
  }
  return values;
}

// "train/images" as "train.images.npy"; a single array as "npy".
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

// A component: a row of the array after a .npy header.
struct RowComponent {
  const RowArrays::Array* array = nullptr;
  std::string extension;
  std::string header;

  std::uint64_t bytes() const { return header.size() + array->row_bytes; }
};

std::vector<RowComponent> components_of(const RowArrays& arrays, const Label& label) {
  std::vector<RowComponent> kinds;
  const std::size_t files = arrays.arrays().size() - (label.numbers ? 1 : 0);
  for (const RowArrays::Array& array : arrays.arrays()) {
    if (&array != label.numbers)
      kinds.push_back(
          {&array, extension_of_array(array.name, files == 1), codec::npy_header(array.type, array.row)});
  }
  return kinds;
}

// With the reason if it is named like a label.
std::string name_of_other(const RowArrays::IgnoredArray& other) {
  if (other.rows == 0 || !is_label_name(other.name)) return format("array '{}'", other.name);
  return format("array '{}' as the label, because it has {}", other.name, counted(other.rows, "row"));
}

ShardScan begin_scan(const RowArrays& arrays, const std::string& stem) {
  ShardScan scan;
  scan.samples.resize(arrays.rows());
  for (std::uint64_t i = 0; i < arrays.rows(); ++i) scan.samples[i].key = format("{}/{:08}", stem, i);
  for (const RowArrays::IgnoredArray& other : arrays.ignored_arrays())
    scan.skipped_fields[name_of_other(other)] = arrays.rows();
  return scan;
}

void add_member(ShardSample& sample, const std::string& extension, std::uint64_t place, std::uint64_t bytes) {
  sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                            .extension = extension,
                            .header_offset = place,
                            .data_offset = place,
                            .bytes = bytes});
}

// Array names may differ only in characters that file names do not allow.
Status check_extensions(const std::vector<RowComponent>& kinds, const ValueRows& values,
                        const std::string& subject) {
  std::set<std::string> seen;
  const auto twice = [&](const std::string& extension) {
    return invalid("{}: two of its arrays would become the file '{}'", subject, extension);
  };
  for (const RowComponent& kind : kinds) {
    if (!seen.insert(kind.extension).second) return twice(kind.extension);
  }
  for (const ValueRows::Kind& kind : values.kinds()) {
    if (!seen.insert(kind.extension).second) return twice(kind.extension);
  }
  return {};
}

// Labels of `count` rows from `first` on, if they are numbers.
Status add_labels(const RowArrays& arrays, const Label& label, std::uint64_t first, std::uint64_t count,
                  ShardScan& scan) {
  if (!label.numbers) return {};
  const std::uint64_t bytes = label.numbers->row_bytes;
  std::vector<std::byte> rows(count * bytes);
  STOKER_RETURN_IF_ERROR(arrays.read(*label.numbers, first, count, rows));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span<const std::byte>(rows).subspan(i * bytes, bytes);
    const std::int64_t number = number_in(row, label.numbers->type);
    if (number >= 0) scan.samples[first + i].label = number;
  }
  return {};
}

// Text labels: samples get their index in `classes`. An empty text is no label.
Status add_classes(const Path& file, const RowArrays& arrays, const Label& label, ShardScan& scan) {
  if (!label.texts) return {};
  STOKER_ASSIGN_OR_RETURN(texts, read_texts(file, arrays, *label.texts));
  std::map<std::string, std::int64_t> numbers;
  for (std::uint64_t row = 0; row < texts.size(); ++row) {
    if (texts[row].empty()) continue;
    const auto [found, is_new] =
        numbers.try_emplace(texts[row], static_cast<std::int64_t>(scan.classes.size()));
    if (is_new) scan.classes.push_back(texts[row]);
    scan.samples[row].label = found->second;
  }
  return {};
}

// Writes the rows to a file and makes their samples.
class RowUnpacker {
 public:
  // The components of the samples.
  struct Content {
    Label label;
    std::vector<RowComponent> kinds;
    ValueRows values;
  };
  RowUnpacker(const RowArrays& arrays, Content content, ShardScan scan, File& out)
      : arrays_(arrays), out_(out), content_(std::move(content)), scan_(std::move(scan)) {}

  Status add(std::uint64_t first, std::uint64_t count) {
    for (const RowComponent& kind : content_.kinds) {
      const std::uint64_t bytes = kind.array->row_bytes;
      rows_.resize(count * bytes);
      STOKER_RETURN_IF_ERROR(arrays_.read(*kind.array, first, count, rows_));
      text_.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        ShardSample& sample = scan_.samples[first + i];
        const std::uint64_t place = at_ + text_.size();
        text_ += kind.header;
        text_.append(reinterpret_cast<const char*>(rows_.data()) + i * bytes, bytes);
        add_member(sample, kind.extension, place, kind.bytes());
      }
      STOKER_RETURN_IF_ERROR(flush());
    }
    for (const ValueRows::Kind& kind : content_.values.kinds()) {
      for (std::uint64_t row = first; row < first + count; ++row) {
        if (text_.size() >= kPiece) STOKER_RETURN_IF_ERROR(flush());
        const std::uint64_t place = text_.size();
        STOKER_RETURN_IF_ERROR(content_.values.append(kind, row, text_));
        add_member(scan_.samples[row], kind.extension, at_ + place, text_.size() - place);
      }
      STOKER_RETURN_IF_ERROR(flush());
    }
    return add_labels(arrays_, content_.label, first, count, scan_);
  }

  ShardScan finish() {
    scan_.bytes = at_;
    scan_.end = at_;
    return std::move(scan_);
  }

 private:
  Status flush() {
    STOKER_RETURN_IF_ERROR(out_.write(text_));
    at_ += text_.size();
    text_.clear();
    return {};
  }

  const RowArrays& arrays_;
  File& out_;
  Content content_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> rows_;
  std::string text_;
  ShardScan scan_;
};

// The error of an array that is read only in a copy, with the command that makes one.
Status needs_copy(const Path& path, const Status& why) {
  if (why.code() != Code::invalid || !why.cure().empty()) return why;
  return Status(why).cure("stoker data convert {} OUT", shell_quote(path.parent_path().string()));
}

// The numeric arrays of a scan.
struct ScannedArrays {
  const Label& label;
  const std::vector<RowComponent>& kinds;
  std::uint64_t bytes = 0;  // unpacked
};

// Variable-length values in place.
Status add_values(const Path& path, const RowArrays& arrays, const ScannedArrays& added, ShardScan& scan,
                  RowChunks& chunks) {
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(values, ValueRows::open(path, arrays, values_for_files(arrays, added.label),
                                                  ValueRows::Access::in_place, scan));
  STOKER_RETURN_IF_ERROR(check_extensions(added.kinds, values, subject));
  for (const ValueRows::Kind& kind : values.kinds()) {
    for (std::uint64_t row = 0; row < arrays.rows(); ++row)
      add_member(scan.samples[row], kind.extension, added.bytes + kind.places[row].begin,
                 kind.places[row].bytes);
  }
  if (!values.kinds().empty()) {
    for (codec::ChunkedArray& array : values.arrays()) chunks.arrays.push_back(std::move(array));
  }
  if (!chunks.arrays.empty()) return {};
  if (values_for_files(arrays, added.label).empty()) return invalid("{}: has only labels", subject);
  return needs_copy(path, invalid("{}: none of its arrays can be read in place", subject));
}

}  // namespace

Result<RowArrays> open_rows(const Path& path) {
  const bool is_hdf5 = kind_of_shard(path.filename().string()) == dataset::ContainerKind::hdf5;
  return RowArrays::open(path, is_hdf5 ? arrays::ArrayFormat::hdf5 : arrays::ArrayFormat::zarr);
}

Result<ShardScan> scan_rows(const RowSource& source, RowChunks& chunks) {
  const RowArrays& arrays = source.arrays;
  const Path& path = source.path;
  const Label label = label_of(arrays);
  ShardScan scan = begin_scan(arrays, source.stem);
  std::uint64_t begin = 0;
  const std::vector<RowComponent> kinds = components_of(arrays, label);
  for (const RowComponent& kind : kinds) {
    Result<std::vector<arrays::RowPiece>> pieces = arrays.pieces(*kind.array);
    if (!pieces.ok()) return needs_copy(path, pieces.status());
    for (arrays::RowPiece& piece : *pieces) {
      const std::uint64_t first = begin + piece.source_row * kind.bytes();
      for (std::uint64_t i = 0; i < piece.rows; ++i)
        add_member(scan.samples[piece.first_row + i], kind.extension, first + i * kind.bytes(), kind.bytes());
      begin += piece.array.shape[0] * kind.bytes();
      piece.array.head = kind.header;
      chunks.arrays.push_back(std::move(piece.array));
    }
  }
  STOKER_RETURN_IF_ERROR(add_values(path, arrays, {label, kinds, begin}, scan, chunks));
  STOKER_ASSIGN_OR_RETURN(parts, arrays.parts());
  chunks.parts = std::move(parts);
  STOKER_RETURN_IF_ERROR(add_labels(arrays, label, 0, arrays.rows(), scan));
  STOKER_RETURN_IF_ERROR(add_classes(path, arrays, label, scan));
  return scan;
}

Result<UnpackedShard> unpack_rows(const RowSource& source, const Path& scratch, Progress& progress) {
  const RowArrays& arrays = source.arrays;
  const Path& path = source.path;
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(out, archive::create_unnamed_file(scratch));
  STOKER_ASSIGN_OR_RETURN(free, free_space(scratch));
  const Label label = label_of(arrays);
  std::vector<RowComponent> kinds = components_of(arrays, label);
  ShardScan scan = begin_scan(arrays, source.stem);
  STOKER_ASSIGN_OR_RETURN(
      values, ValueRows::open(path, arrays, values_for_files(arrays, label), ValueRows::Access::copy, scan));
  if (kinds.empty() && values.kinds().empty()) return invalid("{}: has only labels", subject);
  STOKER_RETURN_IF_ERROR(check_extensions(kinds, values, subject));
  STOKER_RETURN_IF_ERROR(add_classes(path, arrays, label, scan));
  std::uint64_t row_bytes = 0;
  for (const RowComponent& kind : kinds) row_bytes += kind.bytes();
  if (values.bytes() > free.value || row_bytes > (free.value - values.bytes()) / arrays.rows()) {
    return no_space("{}: needs {} of {} bytes as files, but only {} are free", subject,
                    counted(arrays.rows(), "row"), row_bytes + values.bytes() / arrays.rows(), rounded(free));
  }
  const std::uint64_t at_once =
      std::clamp<std::uint64_t>(kPiece / std::max<std::uint64_t>(1, row_bytes), 1, kPiece);
  RowUnpacker unpacking(arrays, {label, std::move(kinds), std::move(values)}, std::move(scan), out);
  for (std::uint64_t row = 0; row < arrays.rows(); row += at_once) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", subject);
    STOKER_RETURN_IF_ERROR(unpacking.add(row, std::min(at_once, arrays.rows() - row)));
  }
  return UnpackedShard{unpacking.finish(), std::move(out)};
}

}  // namespace stoker::sources
