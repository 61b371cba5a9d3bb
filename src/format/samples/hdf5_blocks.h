// Blocks of an HDF5 file as its specification 3.0 has them, the part that a few plain arrays need: superblock
// version 2, object headers version 2, contiguous and virtual data. Used only inside this folder.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stoker::formats {

/// Where nothing lies.
inline constexpr std::uint64_t kHdf5Nowhere = ~std::uint64_t{0};
/// The first byte behind the superblock that is used.
inline constexpr std::uint64_t kHdf5FirstByte = 64;

/// A whole number.
struct Hdf5Element {
  std::uint64_t bytes = 1;
  bool is_signed = false;
};

std::string hdf5_superblock(std::uint64_t end, std::uint64_t root);
/// Of a group, with the addresses of what is in it by their names.
std::string hdf5_group(const std::map<std::string, std::uint64_t>& links);
/// Of a dataset whose elements lie at `address` as one run.
std::string hdf5_dataset(const std::vector<std::uint64_t>& shape, Hdf5Element element, std::uint64_t address);
/// Of a list of bytes whose elements lie in other files, as the heap at `heap` says.
std::string hdf5_virtual_bytes(std::uint64_t bytes, std::uint64_t heap);

/// A list of bytes in another file.
struct Hdf5Source {
  std::string file;     ///< from the folder of the virtual one's file
  std::string dataset;  ///< "/bytes"
  std::uint64_t bytes = 0;
};
/// A global heap that holds these, one behind another.
std::string hdf5_heap(std::span<const Hdf5Source> sources);

}  // namespace stoker::formats
