// Zarr archives of any bytes as samples: places that lie in their array, and the array in the file, or an
// error, in bounded memory. HDF5 is libhdf5's to parse, in a process of its own.
#include <sys/mman.h>

#include "base/file.h"
#include "format/samples/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::formats;
  static const int memory = ::memfd_create("fuzz", 0);
  CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0);
  CHECK(::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  const auto arrays = SampleArrays::open(stoker::format("/proc/self/fd/{}", memory), ArrayFormat::zarr);
  if (!arrays.ok()) return 0;
  const auto run = arrays->run();
  if (run.ok()) CHECK(*run <= size && arrays->bytes() <= size - *run);
  for (const SampleArrays::Kind& kind : arrays->files()) {
    CHECK(kind.places.size() == arrays->samples());
    for (const SampleArrays::Place& place : kind.places)
      CHECK(!place.is_there() || place.end <= arrays->bytes());
  }
  return 0;
}
