// NumPy's .npy files as grids: one array each, in one piece behind its header.
#include <algorithm>

#include "base/text.h"
#include "data/components/npy.h"
#include "data/look/arrays/grid.h"
#include "data/look/arrays/numpy/npy_chunks.h"
#include "data/look/shard_scan.h"

namespace stoker::data {

namespace {

using formats::ChunkedArray;
using formats::Extents;

constexpr std::string_view kNpy = ".npy";

class NpyGrid final : public Grid {
 public:
  Status add(const Path& file, const std::string& name) {
    const std::string subject = printable(file.string());
    OK_OR_RETURN(opened, File::open_read(file));
    OK_OR_RETURN(size, opened.size());
    std::vector<std::byte> beginning(std::min<std::uint64_t>(size, kLongestNpyHeader));
    RETURN_IF_ERROR(opened.read_at(0, beginning));
    const auto read = read_npy_header(beginning, size);
    if (!read.ok()) return read.status().with_context(subject);
    const std::uint64_t element_bytes = size_of(read->element);
    const Extents shape(read->shape.begin(), read->shape.end());
    if (shape.empty() || std::find(shape.begin(), shape.end(), 0u) != shape.end())
      return invalid("{}: has no elements along an axis", subject);
    OK_OR_RETURN(chunked, npy_chunks({.name = name,
                                      .shape = shape,
                                      .element_bytes = static_cast<std::uint32_t>(element_bytes),
                                      .swap_unit = read->is_big_endian ? element_bytes : 1,
                                      .begin = end_ + read->data_at},
                                     subject));
    arrays_.push_back({name, read->element, shape});
    chunked_.push_back(std::move(chunked));
    parts_.push_back({file.filename().string(), size});
    end_ += size;
    return {};
  }

  Result<ChunkedArray> chunked(std::size_t number) const override { return chunked_[number]; }
  Result<std::vector<formats::ShardPart>> parts() const override {
    return parts_.size() == 1 ? std::vector<formats::ShardPart>() : parts_;
  }

 private:
  std::vector<ChunkedArray> chunked_;
  std::vector<formats::ShardPart> parts_;
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
    RETURN_IF_ERROR(grid->add(file, name.substr(0, name.size() - kNpy.size())));
    return std::unique_ptr<Grid>(std::move(grid));
  }
  if (npy_grids({name}, names).empty())
    return invalid("{}: is no file of '{}' (--variable)", printable(file.string()), printable(names[0]));
  const std::string before(before_variable(name, names));
  for (const std::string& variable : names) {
    const auto& known = grid->arrays();
    if (std::any_of(known.begin(), known.end(), [&](const GridArray& a) { return a.name == variable; }))
      continue;
    const std::string beside = before + variable + std::string(kNpy);
    if (!formats::unsafe_part(beside).empty() || beside.find('/') != std::string::npos)
      return invalid("--variable, --target: '{}' is no name of a file", printable(variable));
    RETURN_IF_ERROR(grid->add(file.parent_path() / beside, variable));
  }
  return std::unique_ptr<Grid>(std::move(grid));
}

}  // namespace stoker::data
