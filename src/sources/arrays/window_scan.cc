#include "sources/arrays/window_scan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/encode.h"
#include "base/language/counted.h"
#include "codec/npy.h"
#include "sources/arrays/grid.h"

namespace stoker::sources {

namespace {

using codec::ChunkedArray;
using codec::Extents;
using codec::shape_text;
using codec::Windows;
using Variables = std::vector<const GridArray*>;

constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 27;

std::uint64_t bytes_of(const GridArray& array) {
  return codec::product(array.shape, size_of(array.type)).value_or(~std::uint64_t{0});
}

// Windows over a file: arrays and positions.
class WindowScanner {
 public:
  WindowScanner(const Grid& grid, const WindowOptions& options, std::string subject)
      : grid_(grid), options_(options), subject_(std::move(subject)) {}

  Status choose();
  Result<ShardScan> samples(const std::string& stem, std::uint64_t file_bytes,
                            std::vector<codec::ShardPart> parts);

 private:
  // A component of each sample.
  struct Kind {
    std::string extension;
    Variables variables;
    Windows windows;  // without its parts
  };
  Result<const GridArray*> find(const std::string& name) const;
  Status choose_variables();
  Status choose_places();
  std::vector<Kind> kinds() const;
  void add_kinds(std::string_view prefix, const Variables& variables, const Windows& windows,
                 std::vector<Kind>& kinds) const;
  Result<std::vector<ChunkedArray>> add_arrays(const std::vector<Kind>& kinds);
  std::string key_of(const std::string& stem, std::uint64_t row) const;

  const Grid& grid_;
  const WindowOptions& options_;
  const std::string subject_;
  Extents shape_;
  Variables variables_;
  Variables targets_;
  Windows places_;  // with one part that begins at 0
  Windows target_;  // the same positions, after the windows
};

Result<const GridArray*> WindowScanner::find(const std::string& name) const {
  std::vector<std::string_view> known;
  for (const GridArray& array : grid_.arrays()) {
    if (array.name == name) return &array;
    known.push_back(array.name);
  }
  for (const UnusableGridArray& other : grid_.unusable_arrays()) {
    if (other.name != name) continue;
    return invalid("{}: array '{}' cannot be cut into windows: {}", subject_, printable(name), other.reason);
  }
  return invalid("{}: has no array '{}' of numbers with {}{}", subject_, printable(name),
                 counted(grid_.arrays()[0].shape[0], "row"), suggestion(name, known));
}

Status WindowScanner::choose_variables() {
  const auto take = [&](const std::vector<std::string>& names, Variables& into) -> Status {
    for (const std::string& name : names) {
      STOKER_ASSIGN_OR_RETURN(array, find(name));
      into.push_back(array);
      if (shape_.empty()) shape_ = array->shape;
      if (array->shape == shape_) continue;
      return invalid("{}: '{}' is {}, '{}' is {}: windows need arrays of one shape", subject_, into[0]->name,
                     shape_text(shape_), name, shape_text(array->shape));
    }
    return {};
  };
  if (options_.variables.empty()) {
    const auto most =
        std::max_element(grid_.arrays().begin(), grid_.arrays().end(),
                         [](const GridArray& a, const GridArray& b) { return bytes_of(a) < bytes_of(b); });
    shape_ = most->shape;
    for (const GridArray& array : grid_.arrays()) {
      if (array.shape == shape_) variables_.push_back(&array);
    }
  }
  STOKER_RETURN_IF_ERROR(take(options_.variables, variables_));
  STOKER_RETURN_IF_ERROR(take(options_.targets, targets_));
  if (targets_.empty()) targets_ = variables_;
  if (options_.layout == WindowOptions::Variables::apart) return {};
  for (const Variables* list : {&variables_, &targets_}) {
    for (const GridArray* array : *list) {
      if (array->type == list->front()->type) continue;
      return invalid("{}: '{}' and '{}' have numbers of different types (--stack)", subject_,
                     list->front()->name, array->name);
    }
  }
  return {};
}

Status WindowScanner::choose_places() {
  places_.size = shape_;
  places_.step.assign(shape_.size(), 1);
  std::vector<bool> is_cut(shape_.size());
  for (const WindowAxis& cut : options_.axes) {
    if (cut.axis >= shape_.size()) {
      return invalid("{}: has no axis {}: its arrays are {} (--window)", subject_, cut.axis,
                     shape_text(shape_));
    }
    if (is_cut[cut.axis]) return invalid("data index: --window: axis {} appears twice", cut.axis);
    is_cut[cut.axis] = true;
    places_.size[cut.axis] = cut.size;
    places_.step[cut.axis] = cut.step;
  }
  const std::size_t along = options_.axes.front().axis;
  // Elements after the window that must exist.
  const std::uint64_t behind = options_.lead > 0 ? options_.lead - 1 + options_.lead_size : 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const std::uint64_t more = d == along ? behind : 0;
    if (places_.size[d] > shape_[d] || more > shape_[d] - places_.size[d]) {
      return invalid("{}: a window of {}{} does not fit axis {} of {} (--window)", subject_, places_.size[d],
                     more > 0 ? format(" and {} after it", more) : "", d, shape_text(shape_));
    }
    places_.counts.push_back((shape_[d] - places_.size[d] - more) / places_.step[d] + 1);
  }
  if (const auto samples = codec::product(places_.counts); !samples || *samples > kMaxSamples)
    return invalid("{}: {} window positions are too many (at most {})", subject_, shape_text(places_.counts),
                   kMaxSamples);
  places_.parts = {{0, Extents(shape_.size())}};
  target_ = places_;
  target_.size[along] = options_.lead_size;
  target_.parts[0].begin[along] = places_.size[along] - 1 + options_.lead;
  return {};
}

Status WindowScanner::choose() {
  STOKER_RETURN_IF_ERROR(choose_variables());
  return choose_places();
}

void WindowScanner::add_kinds(std::string_view prefix, const Variables& variables, const Windows& windows,
                              std::vector<Kind>& kinds) const {
  if (variables.size() == 1 || options_.layout == WindowOptions::Variables::stacked) {
    kinds.push_back({std::string(prefix) + "npy", variables, windows});
    return;
  }
  for (const GridArray* variable : variables) {
    std::string name = to_lower(variable->name);
    std::replace(name.begin(), name.end(), '/', '.');
    kinds.push_back({std::string(prefix) + name + ".npy", {variable}, windows});
  }
}

std::vector<WindowScanner::Kind> WindowScanner::kinds() const {
  std::vector<Kind> kinds;
  add_kinds("", variables_, places_, kinds);
  if (options_.lead > 0) add_kinds("target.", targets_, target_, kinds);
  return kinds;
}

// The chunked arrays, each once, then the windows over them in the order of `kinds`.
Result<std::vector<ChunkedArray>> WindowScanner::add_arrays(const std::vector<Kind>& kinds) {
  std::vector<ChunkedArray> all;
  std::map<const GridArray*, std::uint32_t> numbers;
  for (const Kind& kind : kinds) {
    for (const GridArray* variable : kind.variables) {
      if (numbers.contains(variable)) continue;
      numbers[variable] = static_cast<std::uint32_t>(all.size());
      STOKER_ASSIGN_OR_RETURN(array,
                              grid_.chunked(static_cast<std::size_t>(variable - grid_.arrays().data())));
      all.push_back(std::move(array));
    }
  }
  for (const Kind& kind : kinds) {
    ChunkedArray array;
    array.name = format("windows of '{}'", kind.variables[0]->name);
    array.windows = kind.windows;
    array.windows->parts.clear();
    Shape shape;
    if (kind.variables.size() > 1) shape.push_back(static_cast<std::int64_t>(kind.variables.size()));
    for (const std::uint64_t size : kind.windows.size) shape.push_back(static_cast<std::int64_t>(size));
    array.head = codec::npy_header(kind.variables[0]->type, shape);
    for (const GridArray* variable : kind.variables)
      array.windows->parts.push_back({numbers[variable], kind.windows.parts[0].begin});
    all.push_back(std::move(array));
  }
  return all;
}

// The start of the window along each of its axes.
std::string WindowScanner::key_of(const std::string& stem, std::uint64_t row) const {
  const Extents begin = places_.window_begin(places_.parts[0], row);
  std::string key = stem;
  for (std::size_t i = 0; i < options_.axes.size(); ++i)
    key += format("{}{:08}", i == 0 ? '/' : '-', begin[options_.axes[i].axis]);
  return key;
}

Result<ShardScan> WindowScanner::samples(const std::string& stem, std::uint64_t file_bytes,
                                         std::vector<codec::ShardPart> parts) {
  const std::vector<Kind> kinds = this->kinds();
  STOKER_ASSIGN_OR_RETURN(arrays, add_arrays(kinds));
  STOKER_ASSIGN_OR_RETURN(chunks,
                          codec::ChunkMap::create(std::move(arrays), file_bytes, subject_, std::move(parts)));
  const std::span<const codec::ChunkMap::Array> of_kinds(
      chunks.arrays().data() + (chunks.arrays().size() - kinds.size()), kinds.size());
  std::vector<std::uint64_t> rows(places_.rows());
  std::iota(rows.begin(), rows.end(), 0u);
  std::vector<std::uint64_t> blocks;
  for (const std::uint64_t row : rows)
    blocks.push_back(chunks.block(of_kinds[0].begin + row * of_kinds[0].row_stride()));
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return blocks[a] < blocks[b]; });
  ShardScan scan;
  scan.samples.reserve(rows.size());
  for (const std::uint64_t row : rows) {
    ShardSample& sample = scan.samples.emplace_back();
    sample.key = key_of(stem, row);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::uint64_t place = of_kinds[i].begin + row * of_kinds[i].row_stride();
      sample.members.push_back({.name = format("{}.{}", sample.key, kinds[i].extension),
                                .extension = kinds[i].extension,
                                .header_offset = place,
                                .data_offset = place,
                                .bytes = of_kinds[i].row_stride()});
    }
  }
  scan.chunks = std::make_shared<const codec::ChunkMap>(std::move(chunks));
  scan.bytes = file_bytes;
  scan.end = file_bytes;
  return scan;
}

}  // namespace

Result<WindowAxis> parse_window_axis(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ':');
  std::vector<std::uint64_t> numbers;
  for (const std::string_view word : words) {
    std::int64_t number = 0;
    if (!parse_number(word, &number) || number < 0) break;
    numbers.push_back(static_cast<std::uint64_t>(number));
  }
  const bool holds = numbers.size() == words.size() && (words.size() == 2 || words.size() == 3) &&
                     std::find(numbers.begin() + 1, numbers.end(), 0u) == numbers.end();
  if (!holds)
    return invalid("data index: --window: '{}' is not AXIS:SIZE[:STEP] (as in 0:24:6)", printable(text));
  return WindowAxis{numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : numbers[1]};
}

namespace {

// The requested arrays, or all of the file.
Result<std::unique_ptr<Grid>> open_grid(const Path& path, const WindowOptions& options) {
  const std::string name = path.filename().string();
  if (is_hdf5(name) || is_zarr(name) || is_npz(name)) return Grid::open(path);
  if (!is_npy(name))
    return invalid("{}: windows need arrays of HDF5, Zarr or NumPy (--window)", printable(path.string()));
  std::vector<std::string> names = options.variables;
  if (!names.empty()) names.insert(names.end(), options.targets.begin(), options.targets.end());
  return open_npy_grid(path, names);
}

}  // namespace

Result<ShardScan> scan_windows(const Path& path, const std::string& stem, const WindowOptions& options) {
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(grid, open_grid(path, options));
  if (grid->arrays().empty())
    return invalid("{}: has only text and lists, but windows need arrays of numbers (--window)", subject);
  WindowScanner scan(*grid, options, subject);
  STOKER_RETURN_IF_ERROR(scan.choose());
  STOKER_ASSIGN_OR_RETURN(parts, grid->parts());
  STOKER_ASSIGN_OR_RETURN(shard, codec::ShardFile::open(path, parts));
  STOKER_ASSIGN_OR_RETURN(size, shard.size());
  return scan.samples(stem, size, std::move(parts));
}

}  // namespace stoker::sources
