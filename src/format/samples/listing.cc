#include "format/samples/listing.h"

#include <algorithm>

#include "format/samples/store.h"

namespace stoker::formats {

Result<ArrayListing> list_arrays(const Path& file, ArrayFormat format, std::size_t most) {
  OK_OR_RETURN(store, SampleArrays::Store::open(file, format));
  std::vector<std::string> names = store->names();
  ArrayListing listing;
  listing.unseen = names.size() - std::min(names.size(), most);
  names.resize(names.size() - listing.unseen);
  // All at once costs as much as one; where one of them is not read, each is asked for by itself.
  const Status all = store->open_arrays(names);
  for (const std::string& name : names) {
    ListedArray& array = listing.arrays.emplace_back();
    array.name = name;
    if (!all.ok()) array.readable = store->open_arrays({name});
    if (!array.readable.ok() && array.readable.code() != Code::invalid) return array.readable;
    if (!array.readable.ok()) continue;
    array.shape = store->shape(name);
    array.type = store->type(name);
    array.chunks = store->chunks(name);
  }
  return listing;
}

}  // namespace stoker::formats
