// HDF5 as its specification 3.0 has it, the part that a few plain arrays need: superblock version 2, object
// headers version 2, contiguous data. What describes the arrays is written behind them, and the superblock,
// which stands first, at the very end. Layout: docs/formats/hdf5.md.
#include <map>

#include "format/samples/array_file.h"
#include "format/samples/hdf5_blocks.h"

namespace stoker::formats {

namespace {

class Hdf5File final : public ArrayFile {
 public:
  explicit Hdf5File(ByteSink& sink) : sink_(sink) {}

  std::uint64_t bytes_begin() const override { return kHdf5FirstByte; }

  Status begin() override { return put(std::string(kHdf5FirstByte, '\0')); }

  Status append(std::span<const std::byte> piece, std::uint32_t crc32c) override {
    at_ += piece.size();
    return sink_.write_with_crc(piece, crc32c);
  }

  Status end_bytes() override {
    headers_[std::string(kSampleBytes)] = {{at_ - kHdf5FirstByte}, {}, kHdf5FirstByte};
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
      OK_OR_RETURN(address, put_header(hdf5_dataset(dataset.shape, dataset.element, dataset.address)));
      const std::size_t slash = path.find('/');
      (slash == std::string::npos ? root : files)[path.substr(slash + 1)] = address;
    }
    OK_OR_RETURN(group, put_header(hdf5_group(files)));
    root[std::string(kSampleFiles)] = group;
    OK_OR_RETURN(address, put_header(hdf5_group(root)));
    const std::string head = hdf5_superblock(at_, address);
    return sink_.put_head(std::as_bytes(std::span(head)));
  }

 private:
  struct Dataset {
    std::vector<std::uint64_t> shape;
    Hdf5Element element;
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
