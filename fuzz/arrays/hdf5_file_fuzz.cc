// HDF5 files of any bytes. libhdf5 reads them in a child process, whose crashes are errors. Its description
// is checked against the file, the first rows of each dataset are read or are an error, and variable-length
// values are inside the file.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "arrays/hdf5/dataset.h"
#include "base/file.h"

namespace {

// A sanitizer finding in our half of the child has this message; libhdf5 itself dies of a signal.
bool is_silent(const stoker::Status& status) {
  return status.message().find("ended without a response") != std::string::npos;
}

void check_values(const stoker::arrays::Hdf5Dataset& dataset, std::size_t size) {
  using namespace stoker::codec;
  using namespace stoker::arrays;
  constexpr std::uint64_t kMaxRows = 1u << 12;
  if (dataset.rows() > kMaxRows) return;
  const auto values = dataset.values();
  if (!values.ok()) return;
  STOKER_CHECK(values->places.size() == dataset.rows());
  for (const ValueArray::Range& place : values->places)
    STOKER_CHECK(place.bytes <= values->array.shape[0] &&
                 place.begin <= values->array.shape[0] - place.bytes);
  for (const StoredChunk& piece : values->array.stored_chunks)
    STOKER_CHECK(piece.bytes <= size && piece.offset <= size - piece.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::codec;
  using namespace stoker::arrays;
  static const TempDirectory folder{Path("/dev/shm")};
  const Path file = folder / "fuzz.h5";
  STOKER_CHECK(write_file(file, {reinterpret_cast<const char*>(data), size}).ok());
  const Hdf5Options options{.timeout = std::chrono::seconds(2)};
  const auto names = list_hdf5(file, options);
  STOKER_CHECK(names.ok() || !is_silent(names.status()));
  if (!names.ok()) return 0;
  std::size_t read = 0;
  for (const std::string& name : *names) {
    if (++read > 4) break;
    const auto dataset = Hdf5Dataset::open(file, name, options);
    STOKER_CHECK(dataset.ok() || !is_silent(dataset.status()));
    if (!dataset.ok()) continue;
    if ((*dataset)->type().kind == ElementType::Kind::variable_length) {
      check_values(**dataset, size);
      continue;
    }
    constexpr std::uint64_t kMaxBytes = 64u << 10;
    const std::uint64_t row_bytes = (*dataset)->row_bytes();
    const std::uint64_t chunk_bytes = product((*dataset)->chunks(), (*dataset)->type().bytes).value_or(~0ull);
    if (row_bytes > kMaxBytes || chunk_bytes > (16u << 20)) continue;
    const std::uint64_t rows =
        std::min((*dataset)->rows(), kMaxBytes / std::max<std::uint64_t>(1, row_bytes));
    std::vector<std::byte> out(rows * row_bytes);
    (void)(*dataset)->read_rows(0, rows, out);
  }
  return 0;
}
