// HDF5 as its specification 3.0 has it, the part that a few plain arrays need: superblock version 2, object
// headers version 2, contiguous data. What describes the arrays is written behind them, and the superblock,
// which stands first, at the very end. Layout: docs/formats/hdf5.md.
#include <bit>
#include <map>

#include "format/samples/array_file.h"
#include "format/samples/fields.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
constexpr std::uint64_t kFirstByte = 64;  // behind the superblock's 48

// Bob Jenkins' lookup3, as HDF5 uses it on bytes: three words are mixed with twelve bytes at a time.
struct Lookup3 {
  std::uint32_t a, b, c;

  void take(std::string_view text) {
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

// REQUIRES: it is not empty.
std::uint32_t checksum(std::string_view text) {
  constexpr std::size_t kStep = 12;
  const std::uint32_t begin = 0xdeadbeef + static_cast<std::uint32_t>(text.size());
  Lookup3 state{begin, begin, begin};
  for (; text.size() > kStep; text.remove_prefix(kStep)) {
    state.take(text);
    state.mix();
  }
  state.take(text);
  return state.finish();
}

// Ends a block that carries its checksum.
std::string sealed(Fields& block) {
  block.number(checksum(block.so_far()), 4);
  return block.take();
}

// The kinds of messages that an object header has here.
enum class Message : std::uint8_t {
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
  void add(Message kind, const Fields& fields) {
    messages_.number(static_cast<std::uint8_t>(kind), 1).number(fields.so_far().size(), 2).number(0, 1);
    messages_.text(fields.so_far());
  }
  std::string finish() const {
    constexpr std::uint8_t kSizeOfFourBytes = 2;
    Fields header;
    header.text("OHDR").number(2, 1).number(kSizeOfFourBytes, 1).number(messages_.so_far().size(), 4);
    return sealed(header.text(messages_.so_far()));
  }

 private:
  Fields messages_;
};

struct Element {
  std::uint64_t bytes = 1;
  bool is_signed = false;
};

std::string dataset_header(const std::vector<std::uint64_t>& shape, Element element, std::uint64_t address) {
  constexpr std::uint8_t kWholeNumber = 0x10;  // version 1, class 0
  constexpr std::uint8_t kContiguous = 1;
  constexpr std::uint8_t kLateIfSet = 0x0A;  // allocated late, a fill value only if there is one
  ObjectHeader header;
  Fields space;
  space.number(2, 1).number(shape.size(), 1).number(0, 1).number(1, 1);
  std::uint64_t bytes = element.bytes;
  for (const std::uint64_t size : shape) {
    space.number(size, 8);
    bytes *= size;
  }
  header.add(Message::dataspace, space);
  header.add(Message::datatype, Fields()
                                    .number(kWholeNumber, 1)
                                    .number(element.is_signed ? 8 : 0, 3)
                                    .number(element.bytes, 4)
                                    .number(0, 2)
                                    .number(element.bytes * 8, 2));
  header.add(Message::fill_value, Fields().number(3, 1).number(kLateIfSet, 1));
  header.add(Message::layout, Fields()
                                  .number(3, 1)
                                  .number(kContiguous, 1)
                                  .number(bytes == 0 ? kNowhere : address, 8)
                                  .number(bytes, 8));
  return header.finish();
}

std::string group_header(const std::map<std::string, std::uint64_t>& links) {
  constexpr std::uint8_t kNameIsUtf8 = 0x10;
  ObjectHeader header;
  header.add(Message::link_info, Fields().number(0, 2).number(kNowhere, 8).number(kNowhere, 8));
  header.add(Message::group_info, Fields().number(0, 2));
  for (const auto& [name, address] : links) {
    header.add(Message::link, Fields()
                                  .number(1, 1)
                                  .number(kNameIsUtf8, 1)
                                  .number(1, 1)
                                  .number(name.size(), 1)
                                  .text(name)
                                  .number(address, 8));
  }
  return header.finish();
}

class Hdf5File final : public ArrayFile {
 public:
  explicit Hdf5File(ByteSink& sink) : sink_(sink) {}

  std::uint64_t bytes_begin() const override { return kFirstByte; }

  Status begin() override { return put(std::string(kFirstByte, '\0')); }

  Status append(std::span<const std::byte> piece, std::uint32_t crc32c) override {
    at_ += piece.size();
    return sink_.write_with_crc(piece, crc32c);
  }

  Status end_bytes() override {
    headers_[std::string(kSampleBytes)] = {{at_ - kFirstByte}, {}, kFirstByte};
    return {};
  }

  Status add(const NumberArray& array) override {
    RETURN_IF_ERROR(align());
    headers_[array.path] = {array.shape, {.bytes = 8, .is_signed = array.is_signed}, at_};
    at_ += array.numbers.size();
    return sink_.write(array.numbers);
  }

  Status finish() override {
    std::map<std::string, std::uint64_t> root;
    std::map<std::string, std::uint64_t> files;
    for (const auto& [path, dataset] : headers_) {
      OK_OR_RETURN(address, put_header(dataset_header(dataset.shape, dataset.element, dataset.address)));
      const std::size_t slash = path.find('/');
      (slash == std::string::npos ? root : files)[path.substr(slash + 1)] = address;
    }
    OK_OR_RETURN(group, put_header(group_header(files)));
    root[std::string(kSampleFiles)] = group;
    OK_OR_RETURN(address, put_header(group_header(root)));
    constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
    Fields superblock;
    superblock.text(kSignature)
        .number(2, 1)
        .number(8, 1)         // bytes of an offset
        .number(8, 1)         // of a length
        .number(0, 1)         // not open for writing
        .number(0, 8)         // base address
        .number(kNowhere, 8)  // no extension
        .number(at_, 8)
        .number(address, 8);
    const std::string head = sealed(superblock);
    return sink_.put_head(std::as_bytes(std::span(head)));
  }

 private:
  struct Dataset {
    std::vector<std::uint64_t> shape;
    Element element;
    std::uint64_t address = 0;
  };

  Status put(const std::string& bytes) {
    at_ += bytes.size();
    return sink_.write(std::as_bytes(std::span(bytes)));
  }
  Status align() { return put(std::string((8 - at_ % 8) % 8, '\0')); }
  Result<std::uint64_t> put_header(const std::string& header) {
    RETURN_IF_ERROR(align());
    const std::uint64_t address = at_;
    RETURN_IF_ERROR(put(header));
    return address;
  }

  ByteSink& sink_;
  std::uint64_t at_ = 0;
  std::map<std::string, Dataset> headers_;
};

}  // namespace

std::unique_ptr<ArrayFile> make_hdf5_file(ByteSink& sink) { return std::make_unique<Hdf5File>(sink); }

}  // namespace stoker::formats
