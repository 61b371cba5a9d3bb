#include "dataset/coders.h"

#include "arrays/hdf5/coder.h"
#include "arrays/zarr/coder.h"
#include "parquet/columns/column_coder.h"

namespace stoker::dataset {

Result<std::shared_ptr<const codec::ChunkCoder>> parse_any_coder(std::string_view kind,
                                                                 const std::string& text,
                                                                 const codec::ChunkedArray& array,
                                                                 std::string_view subject) {
  if (kind == "hdf5" || kind == "record") return arrays::hdf5::parse_hdf5_coder(kind, text, array, subject);
  if (kind == "zarr") return arrays::parse_zarr_coder(text, array, subject);
  if (kind == "column") return parquet::parse_column_coder(text, array, subject);
  return codec::parse_coder(kind, text, array, subject);
}

}  // namespace stoker::dataset
