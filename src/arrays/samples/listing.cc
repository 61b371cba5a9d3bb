#include "arrays/samples/listing.h"

#include <algorithm>

#include "arrays/samples/store.h"

namespace stoker::arrays {

Result<ArrayListing> list_arrays(const Path& file, ArrayFormat format, std::size_t most) {
  STOKER_ASSIGN_OR_RETURN(store, SampleArrays::Store::open(file, format));
  std::vector<std::string> names = store->names();
  ArrayListing listing;
  listing.omitted = names.size() - std::min(names.size(), most);
  names.resize(names.size() - listing.omitted);
  // Opening all at once costs as much as opening one. If one array cannot be opened, they are opened one by
  // one.
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

}  // namespace stoker::arrays
