#include "data/look/arrays/grid.h"

#include "data/look/shard_scan.h"
#include "format/samples/rows.h"

namespace stoker::data {

namespace {

using formats::RowArrays;

class RowGrid final : public Grid {
 public:
  explicit RowGrid(RowArrays rows) : rows_(std::move(rows)) {
    for (const RowArrays::Array& array : rows_.arrays()) {
      GridArray& added = arrays_.emplace_back(GridArray{array.name, array.type, {rows_.rows()}});
      for (const std::int64_t size : array.row) added.shape.push_back(static_cast<std::uint64_t>(size));
    }
  }
  Result<formats::ChunkedArray> chunked(std::size_t number) const override {
    return rows_.chunked(rows_.arrays()[number]);
  }
  Result<std::vector<formats::ShardPart>> parts() const override { return rows_.parts(); }

 private:
  RowArrays rows_;
};

}  // namespace

Result<std::unique_ptr<Grid>> Grid::open(const Path& file) {
  const bool is_hdf5_file = is_hdf5(file.filename().string());
  OK_OR_RETURN(rows,
               RowArrays::open(file, is_hdf5_file ? formats::ArrayFormat::hdf5 : formats::ArrayFormat::zarr));
  return std::unique_ptr<Grid>(std::make_unique<RowGrid>(std::move(rows)));
}

}  // namespace stoker::data
