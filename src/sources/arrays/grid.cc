#include "sources/arrays/grid.h"

#include <algorithm>

#include "archive/zip.h"
#include "arrays/numpy/npy_chunks.h"
#include "arrays/numpy/npy_store.h"
#include "arrays/samples/rows.h"
#include "codec/npy.h"
#include "sources/arrays/npy_sets.h"
#include "sources/arrays/row_scan.h"
#include "sources/shard_scan.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using arrays::RowArrays;

class RowGrid final : public Grid {
 public:
  explicit RowGrid(RowArrays rows) : rows_(std::move(rows)) {
    for (const RowArrays::Array& array : rows_.arrays()) {
      GridArray& added = arrays_.emplace_back(GridArray{array.name, array.type, {rows_.rows()}});
      for (const std::int64_t size : array.row) added.shape.push_back(static_cast<std::uint64_t>(size));
    }
    for (const RowArrays::Values& values : rows_.values())
      unusable_.push_back({values.name, codec::type_name(values.type)});
    for (const RowArrays::IgnoredArray& other : rows_.ignored_arrays())
      unusable_.push_back({other.name, other.reason});
  }
  Result<codec::ChunkedArray> chunked(std::size_t number) const override {
    return rows_.chunked(rows_.arrays()[number]);
  }
  Result<std::vector<codec::ShardPart>> parts() const override { return rows_.parts(); }

 private:
  RowArrays rows_;
};

// The members of an uncompressed archive.
Result<RowArrays> open_archive(const Path& file) {
  const std::string subject = printable(file.string());
  STOKER_ASSIGN_OR_RETURN(sets, npy_shards(file.parent_path(), {file.filename().string()}));
  STOKER_ASSIGN_OR_RETURN(archive, archive::open_zip_file(file));
  for (const archive::ZipMember& member : archive.zip.members()) {
    if (!is_npy(member.name) || !member.is_readable() || member.method == 0) continue;
    return invalid("{}: member '{}': is compressed, but windows are read in place", subject,
                   printable(member.name))
        .cure(
            "python3 -c 'import numpy, sys; numpy.savez(sys.argv[2], **numpy.load(sys.argv[1]))' {} OUT.npz",
            shell_quote(file.string()));
  }
  STOKER_ASSIGN_OR_RETURN(store, arrays::open_npy_store(file.parent_path(), sets[0]));
  return RowArrays::open(std::move(store), subject);
}

}  // namespace

Result<std::unique_ptr<Grid>> Grid::open(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(rows, is_npz(file.filename().string()) ? open_archive(file) : open_rows(file));
  return std::unique_ptr<Grid>(std::make_unique<RowGrid>(std::move(rows)));
}

namespace {

using codec::ChunkedArray;
using codec::Extents;

constexpr std::string_view kNpy = ".npy";

class NpyGrid final : public Grid {
 public:
  Status add(const Path& file, const std::string& name) {
    const std::string subject = printable(file.string());
    STOKER_ASSIGN_OR_RETURN(opened, File::open_read(file));
    STOKER_ASSIGN_OR_RETURN(size, opened.size());
    std::vector<std::byte> beginning(std::min<std::uint64_t>(size, codec::kMaxNpyHeaderBytes));
    STOKER_RETURN_IF_ERROR(opened.read_at(0, beginning));
    const auto read = codec::read_npy_header(beginning, size);
    if (!read.ok()) return read.status().with_context(subject);
    const std::uint64_t element_bytes = size_of(read->element);
    const Extents shape(read->shape.begin(), read->shape.end());
    if (shape.empty()) return invalid("{}: is a single value, but windows need an axis (--window)", subject);
    if (std::find(shape.begin(), shape.end(), 0u) != shape.end())
      return invalid("{}: has no elements (shape {})", subject, codec::shape_text(shape));
    STOKER_ASSIGN_OR_RETURN(chunked,
                            arrays::npy_chunks({.name = name,
                                                .shape = shape,
                                                .element_bytes = static_cast<std::uint32_t>(element_bytes),
                                                .swap_unit = read->is_big_endian ? element_bytes : 1,
                                                .begin = end_ + read->data_offset},
                                               subject));
    arrays_.push_back({name, read->element, shape});
    chunked_.push_back(std::move(chunked));
    parts_.push_back({file.filename().string(), size});
    end_ += size;
    return {};
  }

  Result<ChunkedArray> chunked(std::size_t number) const override { return chunked_[number]; }
  Result<std::vector<codec::ShardPart>> parts() const override {
    return parts_.size() == 1 ? std::vector<codec::ShardPart>() : parts_;
  }

 private:
  std::vector<ChunkedArray> chunked_;
  std::vector<codec::ShardPart> parts_;
  std::uint64_t end_ = 0;
};

}  // namespace

std::vector<std::string> npy_grids(const std::vector<std::string>& files,
                                   const std::vector<std::string>& variables) {
  std::vector<std::string> grids;
  const std::string first = variables.empty() ? "" : variables[0] + std::string(kNpy);
  for (const std::string& file : files) {
    const bool is_first = first.empty() || file == first || file.ends_with("." + first);
    if (is_npy(file) && !file.starts_with('.') && is_first) grids.push_back(file);
  }
  std::sort(grids.begin(), grids.end());
  return grids;
}

std::string_view before_variable(std::string_view file, const std::vector<std::string>& variables) {
  return file.substr(0, file.size() - kNpy.size() - (variables.empty() ? 0 : variables[0].size()));
}

Result<std::unique_ptr<Grid>> open_npy_grid(const Path& file, const std::vector<std::string>& names) {
  auto grid = std::make_unique<NpyGrid>();
  const std::string name = file.filename().string();
  if (names.empty()) {
    STOKER_RETURN_IF_ERROR(grid->add(file, name.substr(0, name.size() - kNpy.size())));
    return std::unique_ptr<Grid>(std::move(grid));
  }
  if (npy_grids({name}, names).empty())
    return invalid("{}: is not a file of variable '{}' (--variable)", printable(file.string()),
                   printable(names[0]));
  const std::string before(before_variable(name, names));
  for (const std::string& variable : names) {
    const auto& known = grid->arrays();
    if (std::any_of(known.begin(), known.end(), [&](const GridArray& a) { return a.name == variable; }))
      continue;
    const std::string beside = before + variable + std::string(kNpy);
    if (!codec::unsafe_part(beside).empty() || beside.find('/') != std::string::npos)
      return invalid("--variable, --target: '{}' is not a file name", printable(variable));
    STOKER_RETURN_IF_ERROR(grid->add(file.parent_path() / beside, variable));
  }
  return std::unique_ptr<Grid>(std::move(grid));
}

}  // namespace stoker::sources
