#include "data/look/arrays/row_scan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/encode.h"
#include "data/components/npy.h"
#include "data/look/arrays/value_rows.h"
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

bool is_called_label(std::string_view path) {
  const std::string name = to_lower(base_name(path));
  return name.ends_with("label") || name.ends_with("labels") || name == "y" || name == "target" ||
         name == "targets";
}

// The label's array, of whole numbers or of texts; or nothing where none or several could be it.
struct Label {
  const RowArrays::Array* numbers = nullptr;
  const RowArrays::Values* texts = nullptr;
};

Label label_of(const RowArrays& arrays) {
  Label label;
  std::size_t found = 0;
  for (const RowArrays::Array& array : arrays.arrays()) {
    const bool is_list = array.row.empty() || (array.row.size() == 1 && array.row[0] == 1);
    if (!is_called_label(array.name) || !is_list || !is_whole(array.type)) continue;
    label.numbers = &array;
    ++found;
  }
  for (const RowArrays::Values& values : arrays.values()) {
    if (!is_called_label(values.name) || !values.is_text()) continue;
    label.texts = &values;
    ++found;
  }
  return found == 1 ? label : Label();
}

// All but the label.
std::vector<const RowArrays::Values*> values_for_files(const RowArrays& arrays, const Label& label) {
  std::vector<const RowArrays::Values*> values;
  for (const RowArrays::Values& one : arrays.values()) {
    if (&one != label.texts) values.push_back(&one);
  }
  return values;
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

std::vector<Kind> kinds_of(const RowArrays& arrays, const Label& label) {
  std::vector<Kind> kinds;
  const std::size_t files = arrays.arrays().size() - (label.numbers ? 1 : 0);
  for (const RowArrays::Array& array : arrays.arrays()) {
    if (&array != label.numbers)
      kinds.push_back(
          {&array, extension_of_array(array.name, files == 1), npy_header(array.type, array.row)});
  }
  return kinds;
}

// With the reason where it would be the label.
std::string name_of_other(const RowArrays::Other& other) {
  if (other.rows == 0 || !is_called_label(other.name)) return format("array '{}'", other.name);
  return format("array '{}' as the label: it has {} rows", other.name, grouped(other.rows));
}

ShardScan begin_scan(const RowArrays& arrays, const std::string& stem) {
  ShardScan scan;
  scan.samples.resize(arrays.rows());
  for (std::uint64_t i = 0; i < arrays.rows(); ++i) scan.samples[i].key = format("{}/{:08}", stem, i);
  for (const RowArrays::Other& other : arrays.others()) scan.not_taken[name_of_other(other)] = arrays.rows();
  return scan;
}

void add_member(ShardSample& sample, const std::string& extension, std::uint64_t place, std::uint64_t bytes) {
  sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                            .extension = extension,
                            .header_offset = place,
                            .data_offset = place,
                            .bytes = bytes});
}

// Two arrays may be called the same but for what a file's name cannot have.
Status check_extensions(const std::vector<Kind>& kinds, const ValueRows& values, const std::string& subject) {
  std::set<std::string> seen;
  const auto twice = [&](const std::string& extension) {
    return invalid("{}: two of its arrays make a file '{}'", subject, extension);
  };
  for (const Kind& kind : kinds) {
    if (!seen.insert(kind.extension).second) return twice(kind.extension);
  }
  for (const ValueRows::Kind& kind : values.kinds()) {
    if (!seen.insert(kind.extension).second) return twice(kind.extension);
  }
  return {};
}

// Labels of `count` rows from `first` on, where they are numbers.
Status add_labels(const RowArrays& arrays, const Label& label, std::uint64_t first, std::uint64_t count,
                  ShardScan& scan) {
  if (!label.numbers) return {};
  const std::uint64_t bytes = label.numbers->row_bytes;
  std::vector<std::byte> rows(count * bytes);
  RETURN_IF_ERROR(arrays.read(*label.numbers, first, count, rows));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span<const std::byte>(rows).subspan(i * bytes, bytes);
    const std::int64_t number = number_in(row, label.numbers->type);
    if (number >= 0) scan.samples[first + i].label = number;
  }
  return {};
}

// Those that are texts: samples have their numbers in `classes`. An empty one is none.
Status add_classes(const Path& file, const RowArrays& arrays, const Label& label, ShardScan& scan) {
  if (!label.texts) return {};
  OK_OR_RETURN(texts, read_texts(file, arrays, *label.texts));
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

// Writes the rows one behind the other, and makes their samples.
class Unpacking {
 public:
  // What samples are made of.
  struct Content {
    Label label;
    std::vector<Kind> kinds;
    ValueRows values;
  };
  Unpacking(const RowArrays& arrays, Content content, ShardScan scan, File& out)
      : arrays_(arrays), out_(out), content_(std::move(content)), scan_(std::move(scan)) {}

  Status add(std::uint64_t first, std::uint64_t count) {
    for (const Kind& kind : content_.kinds) {
      const std::uint64_t bytes = kind.array->row_bytes;
      rows_.resize(count * bytes);
      RETURN_IF_ERROR(arrays_.read(*kind.array, first, count, rows_));
      text_.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        ShardSample& sample = scan_.samples[first + i];
        const std::uint64_t place = at_ + text_.size();
        text_ += kind.header;
        text_.append(reinterpret_cast<const char*>(rows_.data()) + i * bytes, bytes);
        add_member(sample, kind.extension, place, kind.bytes());
      }
      RETURN_IF_ERROR(flush());
    }
    for (const ValueRows::Kind& kind : content_.values.kinds()) {
      for (std::uint64_t row = first; row < first + count; ++row) {
        if (text_.size() >= kPiece) RETURN_IF_ERROR(flush());
        const std::uint64_t place = text_.size();
        RETURN_IF_ERROR(content_.values.append(kind, row, text_));
        add_member(scan_.samples[row], kind.extension, at_ + place, text_.size() - place);
      }
      RETURN_IF_ERROR(flush());
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
    RETURN_IF_ERROR(out_.write(text_));
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

// What was added of arrays of numbers.
struct Added {
  const Label& label;
  const std::vector<Kind>& kinds;
  std::uint64_t bytes = 0;  // unpacked
};

// Values of different lengths where they lie.
Status add_values(const Path& path, const RowArrays& arrays, const Added& added, ShardScan& scan,
                  RowChunks& chunks) {
  const std::string subject = printable(path.string());
  OK_OR_RETURN(values, ValueRows::open(path, arrays, values_for_files(arrays, added.label),
                                       ValueRows::From::where_they_lie, scan));
  RETURN_IF_ERROR(check_extensions(added.kinds, values, subject));
  for (const ValueRows::Kind& kind : values.kinds()) {
    for (std::uint64_t row = 0; row < arrays.rows(); ++row)
      add_member(scan.samples[row], kind.extension, added.bytes + kind.places[row].begin,
                 kind.places[row].bytes);
  }
  if (!values.kinds().empty()) {
    for (formats::ChunkedArray& array : values.arrays()) chunks.arrays.push_back(std::move(array));
  }
  if (!chunks.arrays.empty()) return {};
  const bool needs_copy = !values_for_files(arrays, added.label).empty();
  if (!needs_copy) return invalid("{}: has labels and nothing else", subject);
  return invalid("{}: none of its arrays can be read where it lies", subject)
      .cure("stoker data convert {} OUT", shell_quote(path.parent_path().string()));
}

}  // namespace

Result<RowArrays> open_rows(const Path& path) {
  const bool is_hdf5 = kind_of_shard(path.filename().string()) == ContainerKind::hdf5;
  return RowArrays::open(path, is_hdf5 ? formats::ArrayFormat::hdf5 : formats::ArrayFormat::zarr);
}

Result<ShardScan> scan_rows(const RowSource& source, RowChunks& chunks) {
  const RowArrays& arrays = source.arrays;
  const Path& path = source.path;
  const Label label = label_of(arrays);
  ShardScan scan = begin_scan(arrays, source.stem);
  std::uint64_t begin = 0;
  const std::vector<Kind> kinds = kinds_of(arrays, label);
  for (const Kind& kind : kinds) {
    OK_OR_RETURN(pieces, arrays.pieces(*kind.array));
    for (formats::RowPiece& piece : pieces) {
      const std::uint64_t first = begin + piece.source_row * kind.bytes();
      for (std::uint64_t i = 0; i < piece.rows; ++i)
        add_member(scan.samples[piece.first_row + i], kind.extension, first + i * kind.bytes(), kind.bytes());
      begin += piece.array.shape[0] * kind.bytes();
      piece.array.head = kind.header;
      chunks.arrays.push_back(std::move(piece.array));
    }
  }
  RETURN_IF_ERROR(add_values(path, arrays, {label, kinds, begin}, scan, chunks));
  OK_OR_RETURN(parts, arrays.parts());
  chunks.parts = std::move(parts);
  RETURN_IF_ERROR(add_labels(arrays, label, 0, arrays.rows(), scan));
  RETURN_IF_ERROR(add_classes(path, arrays, label, scan));
  return scan;
}

Result<UnpackedShard> unpack_rows(const RowSource& source, const Path& scratch, Progress& progress) {
  const RowArrays& arrays = source.arrays;
  const Path& path = source.path;
  const std::string subject = printable(path.string());
  OK_OR_RETURN(out, formats::nameless_file(scratch));
  OK_OR_RETURN(free, free_space(scratch));
  const Label label = label_of(arrays);
  std::vector<Kind> kinds = kinds_of(arrays, label);
  ShardScan scan = begin_scan(arrays, source.stem);
  OK_OR_RETURN(values,
               ValueRows::open(path, arrays, values_for_files(arrays, label), ValueRows::From::copy, scan));
  if (kinds.empty() && values.kinds().empty()) return invalid("{}: has labels and nothing else", subject);
  RETURN_IF_ERROR(check_extensions(kinds, values, subject));
  RETURN_IF_ERROR(add_classes(path, arrays, label, scan));
  std::uint64_t row_bytes = 0;
  for (const Kind& kind : kinds) row_bytes += kind.bytes();
  if (values.bytes() > free.value || row_bytes > (free.value - values.bytes()) / arrays.rows()) {
    return no_space("{}: {} rows of {} bytes as files, {} are free for them", subject, arrays.rows(),
                    row_bytes + values.bytes() / arrays.rows(), rounded(free));
  }
  const std::uint64_t at_once =
      std::clamp<std::uint64_t>(kPiece / std::max<std::uint64_t>(1, row_bytes), 1, kPiece);
  Unpacking unpacking(arrays, {label, std::move(kinds), std::move(values)}, std::move(scan), out);
  for (std::uint64_t row = 0; row < arrays.rows(); row += at_once) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    RETURN_IF_ERROR(unpacking.add(row, std::min(at_once, arrays.rows() - row)));
  }
  return UnpackedShard{unpacking.finish(), std::move(out)};
}

}  // namespace stoker::data
