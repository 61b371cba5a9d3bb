// Zarr archives of any bytes as samples: ranges inside their array, and the array inside the file, or an
// error, in bounded memory. Not HDF5, which libhdf5 parses in a separate process.
#include <sys/mman.h>

#include "arrays/samples/reader.h"
#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  using namespace stoker::arrays;
  static const int memory = ::memfd_create("fuzz", 0);
  STOKER_CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0);
  STOKER_CHECK(::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  const auto arrays = SampleArrays::open(stoker::format("/proc/self/fd/{}", memory), ArrayFormat::zarr);
  if (!arrays.ok()) return 0;
  const auto run = arrays->contiguous_offset();
  if (run.ok()) STOKER_CHECK(*run <= size && arrays->bytes() <= size - *run);
  for (const SampleArrays::Kind& kind : arrays->files()) {
    STOKER_CHECK(kind.places.size() == arrays->samples());
    for (const SampleArrays::ByteSpan& place : kind.places)
      STOKER_CHECK(!place.is_present() || place.end <= arrays->bytes());
  }
  return 0;
}
