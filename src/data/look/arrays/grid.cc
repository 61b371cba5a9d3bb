#include "data/look/arrays/grid.h"

#include "base/text.h"
#include "data/look/arrays/numpy/npy_sets.h"
#include "data/look/arrays/numpy/npy_store.h"
#include "data/look/arrays/row_scan.h"
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

// The members of an archive that nothing packs.
Result<RowArrays> open_archive(const Path& file) {
  const std::string subject = printable(file.string());
  OK_OR_RETURN(sets, npy_shards(file.parent_path(), {file.filename().string()}));
  OK_OR_RETURN(archive, open_npz(file));
  for (const formats::ZipMember& member : archive.zip.members()) {
    if (!is_npy(member.name) || !member.is_readable() || member.method == 0) continue;
    return invalid("{}: member '{}': is compressed, and windows are read where they lie", subject,
                   printable(member.name))
        .cure(
            "python3 -c 'import numpy, sys; numpy.savez(sys.argv[2], **numpy.load(sys.argv[1]))' {} OUT.npz",
            shell_quote(file.string()));
  }
  OK_OR_RETURN(store, open_npy_store(file.parent_path(), sets[0]));
  return RowArrays::open(std::move(store), subject);
}

}  // namespace

Result<std::unique_ptr<Grid>> Grid::open(const Path& file) {
  OK_OR_RETURN(rows, is_npz(file.filename().string()) ? open_archive(file) : open_rows(file));
  return std::unique_ptr<Grid>(std::make_unique<RowGrid>(std::move(rows)));
}

}  // namespace stoker::data
