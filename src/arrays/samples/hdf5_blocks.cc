#include "arrays/samples/hdf5_blocks.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "arrays/samples/little_endian_writer.h"

namespace stoker::arrays {

namespace {

// Bob Jenkins' lookup3, as used by HDF5: three words, twelve bytes at a time.
struct Lookup3 {
  std::uint32_t a, b, c;

  void absorb(std::string_view text) {
    const auto word = [text](std::size_t at) {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < 4 && at + i < text.size(); ++i)
        value |= std::uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
      return value;
    };
    a += word(0);
    b += word(4);
    c += word(8);
  }
  void mix() {
    const auto step = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t& z, int by) {
      x -= z;
      x ^= std::rotl(z, by);
      z += y;
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
  }
  std::uint32_t finish() {
    const auto step = [](std::uint32_t& x, std::uint32_t y, int by) {
      x ^= y;
      x -= std::rotl(y, by);
    };
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
    return c;
  }
};

// REQUIRES: text is not empty.
std::uint32_t checksum(std::string_view text) {
  constexpr std::size_t kStep = 12;
  const std::uint32_t begin = 0xdeadbeef + static_cast<std::uint32_t>(text.size());
  Lookup3 state{begin, begin, begin};
  for (; text.size() > kStep; text.remove_prefix(kStep)) {
    state.absorb(text);
    state.mix();
  }
  state.absorb(text);
  return state.finish();
}

// Ends a block with its checksum.
std::string with_checksum(LittleEndianWriter& block) {
  block.number(checksum(block.str()), 4);
  return block.take();
}

// The message types in these object headers.
enum class HeaderMessage : std::uint8_t {
  dataspace = 1,
  link_info = 2,
  datatype = 3,
  fill_value = 5,
  link = 6,
  layout = 8,
  group_info = 10
};

class ObjectHeader {
 public:
  void add(HeaderMessage kind, const LittleEndianWriter& fields) {
    messages_.number(static_cast<std::uint8_t>(kind), 1).number(fields.str().size(), 2).number(0, 1);
    messages_.text(fields.str());
  }
  std::string finish() const {
    constexpr std::uint8_t kSizeOfFourBytes = 2;
    LittleEndianWriter header;
    header.text("OHDR").number(2, 1).number(kSizeOfFourBytes, 1).number(messages_.str().size(), 4);
    return with_checksum(header.text(messages_.str()));
  }

 private:
  LittleEndianWriter messages_;
};

constexpr std::uint8_t kLateAllocation = 0x0A;  // allocated late, a fill value only if set

// Shape, type and no fill value.
ObjectHeader header_of(const std::vector<std::uint64_t>& shape, Hdf5Element element) {
  constexpr std::uint8_t kWholeNumber = 0x10;  // version 1, class 0
  ObjectHeader header;
  LittleEndianWriter space;
  space.number(2, 1).number(shape.size(), 1).number(0, 1).number(1, 1);
  for (const std::uint64_t size : shape) space.number(size, 8);
  header.add(HeaderMessage::dataspace, space);
  header.add(HeaderMessage::datatype, LittleEndianWriter()
                                          .number(kWholeNumber, 1)
                                          .number(element.is_signed ? 8 : 0, 3)
                                          .number(element.bytes, 4)
                                          .number(0, 2)
                                          .number(element.bytes * 8, 2));
  header.add(HeaderMessage::fill_value, LittleEndianWriter().number(3, 1).number(kLateAllocation, 1));
  return header;
}

// Serialises a selection of elements [begin, begin + count).
void put_selection(LittleEndianWriter& fields, std::uint64_t begin, std::uint64_t count) {
  constexpr std::uint32_t kHyperslab = 2;
  constexpr std::uint32_t kVersion = 2;
  constexpr std::uint32_t kRegular = 1;
  constexpr std::uint32_t kLength = 4 + 32;
  fields.number(kHyperslab, 4).number(kVersion, 4).number(kRegular, 1).number(kLength, 4).number(1, 4);
  fields.number(begin, 8).number(1, 8).number(1, 8).number(count, 8);  // start, stride, count, block
}

}  // namespace

std::string hdf5_superblock(std::uint64_t end, std::uint64_t root) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  LittleEndianWriter superblock;
  superblock.text(kSignature)
      .number(2, 1)
      .number(8, 1)                      // bytes of an offset
      .number(8, 1)                      // of a length
      .number(0, 1)                      // not open for writing
      .number(0, 8)                      // base address
      .number(kHdf5UndefinedAddress, 8)  // no extension
      .number(end, 8)
      .number(root, 8);
  return with_checksum(superblock);
}

std::string hdf5_dataset(const std::vector<std::uint64_t>& shape, Hdf5Element element,
                         std::uint64_t address) {
  constexpr std::uint8_t kContiguous = 1;
  ObjectHeader header = header_of(shape, element);
  std::uint64_t bytes = element.bytes;
  for (const std::uint64_t size : shape) bytes *= size;
  header.add(HeaderMessage::layout, LittleEndianWriter()
                                        .number(3, 1)
                                        .number(kContiguous, 1)
                                        .number(bytes == 0 ? kHdf5UndefinedAddress : address, 8)
                                        .number(bytes, 8));
  return header.finish();
}

std::string hdf5_virtual_bytes(std::uint64_t bytes, std::uint64_t heap) {
  constexpr std::uint8_t kVirtual = 3;
  ObjectHeader header = header_of({bytes}, {});
  header.add(HeaderMessage::layout,
             LittleEndianWriter().number(4, 1).number(kVirtual, 1).number(heap, 8).number(1, 4));
  return header.finish();
}

std::string hdf5_heap(std::span<const Hdf5Source> sources) {
  LittleEndianWriter list;
  list.number(0, 1).number(sources.size(), 8);
  std::uint64_t begin = 0;
  for (const Hdf5Source& source : sources) {
    list.text(source.file).number(0, 1).text(source.dataset).number(0, 1);
    put_selection(list, 0, source.bytes);
    put_selection(list, begin, source.bytes);
    begin += source.bytes;
  }
  const std::string object = with_checksum(list);
  constexpr std::uint64_t kHead = 16;
  constexpr std::uint64_t kSmallest = 4096;  // HDF5 reads no smaller heap
  const std::uint64_t padded = (object.size() + 7) / 8 * 8;
  const std::uint64_t used = 2 * kHead + padded;  // the heads of the heap and of the object
  const std::uint64_t size = std::max(kSmallest, used + kHead);
  LittleEndianWriter heap;
  heap.text("GCOL").number(1, 1).number(0, 3).number(size, 8);
  heap.number(1, 2).number(1, 2).number(0, 4).number(object.size(), 8).text(object);
  heap.text(std::string(padded - object.size(), '\0'));
  heap.number(0, 2).number(0, 2).number(0, 4).number(size - used, 8);  // free space
  heap.text(std::string(size - used - kHead, '\0'));
  return heap.take();
}

std::string hdf5_group(const std::map<std::string, std::uint64_t>& links) {
  constexpr std::uint8_t kNameIsUtf8 = 0x10;
  ObjectHeader header;
  header.add(
      HeaderMessage::link_info,
      LittleEndianWriter().number(0, 2).number(kHdf5UndefinedAddress, 8).number(kHdf5UndefinedAddress, 8));
  header.add(HeaderMessage::group_info, LittleEndianWriter().number(0, 2));
  for (const auto& [name, address] : links) {
    header.add(HeaderMessage::link, LittleEndianWriter()
                                        .number(1, 1)
                                        .number(kNameIsUtf8, 1)
                                        .number(1, 1)
                                        .number(name.size(), 1)
                                        .text(name)
                                        .number(address, 8));
  }
  return header.finish();
}

}  // namespace stoker::arrays
