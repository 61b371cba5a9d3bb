// Encodes blocks of an HDF5 file (specification 3.0), as needed for a few plain arrays: superblock version
// 2, object headers version 2, contiguous and virtual data. Used only inside this folder. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stoker::arrays {

/// The undefined address.
inline constexpr std::uint64_t kHdf5UndefinedAddress = ~std::uint64_t{0};
/// The first used byte after the superblock.
inline constexpr std::uint64_t kHdf5FirstByte = 64;

/// An integer type.
struct Hdf5Element {
  std::uint64_t bytes = 1;
  bool is_signed = false;
};

std::string hdf5_superblock(std::uint64_t end, std::uint64_t root);
/// The header of a group with links to these addresses.
std::string hdf5_group(const std::map<std::string, std::uint64_t>& links);
/// The header of a contiguous dataset at `address`.
std::string hdf5_dataset(const std::vector<std::uint64_t>& shape, Hdf5Element element, std::uint64_t address);
/// The header of a virtual list of bytes in other files; its sources are in the heap at `heap`.
std::string hdf5_virtual_bytes(std::uint64_t bytes, std::uint64_t heap);

/// A list of bytes in another file.
struct Hdf5Source {
  std::string file;     ///< relative to the folder of the virtual dataset's file
  std::string dataset;  ///< "/bytes"
  std::uint64_t bytes = 0;
};
/// A global heap with these sources, in order.
std::string hdf5_heap(std::span<const Hdf5Source> sources);

}  // namespace stoker::arrays
