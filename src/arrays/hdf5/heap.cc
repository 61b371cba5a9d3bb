#include "arrays/hdf5/heap.h"

#include <algorithm>
#include <cstring>

#include "codec/load.h"

namespace stoker::arrays::hdf5 {

namespace {

constexpr std::uint64_t kHeapHeaderBytes = 16;       // of a collection, and of each object in it
constexpr std::uint64_t kHeapWindow = 64u << 10;     // read at once
constexpr std::uint64_t kMaxObjectsKept = 1u << 20;  // objects; 16 MiB

// A sliding window of the file for reading consecutive headers.
class HeapWindow {
 public:
  HeapWindow(const File& file, std::uint64_t end) : file_(file), end_(end) {}

  // REQUIRES: at + kHeapHeaderBytes <= end.
  Result<std::span<const std::byte>> header(std::uint64_t at) {
    if (at < begin_ || at + kHeapHeaderBytes > begin_ + bytes_.size()) {
      bytes_.resize(std::min(kHeapWindow, end_ - at));
      begin_ = at;
      STOKER_RETURN_IF_ERROR(file_.read_at(at, bytes_));
    }
    return std::span<const std::byte>(bytes_).subspan(at - begin_, kHeapHeaderBytes);
  }

 private:
  const File& file_;
  const std::uint64_t end_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<GlobalHeaps> GlobalHeaps::open(const File& file, std::uint64_t base, std::string subject) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  return GlobalHeaps(file, base, size, std::move(subject));
}

// "GCOL", version 1, its bytes with this header (u64 at 8); then objects: number u16, references u16, u32,
// bytes u64, the bytes up to a multiple of 8. Number 0 is the free space at its end.
Result<GlobalHeaps::Collection> GlobalHeaps::read(std::uint64_t address) const {
  const auto damaged = [&](std::string_view what) {
    return corrupt("{}: the heap at {}: {}", subject_, address, what);
  };
  if (base_ > size_ || address > size_ - base_ || size_ - base_ - address < kHeapHeaderBytes)
    return damaged("is beyond the end of the file");
  const std::uint64_t begin = base_ + address;
  HeapWindow window(*file_, size_);
  STOKER_ASSIGN_OR_RETURN(head, window.header(begin));
  if (std::memcmp(head.data(), "GCOL\x01", 5) != 0) return damaged("is not a heap");
  const auto bytes = codec::load<std::uint64_t>(head, 8);
  if (bytes < kHeapHeaderBytes || bytes > size_ - begin) return damaged("is beyond the end of the file");
  Collection objects;
  const std::uint64_t end = begin + bytes;
  for (std::uint64_t at = begin + kHeapHeaderBytes; end - at >= kHeapHeaderBytes;) {
    STOKER_ASSIGN_OR_RETURN(header, window.header(at));
    const std::size_t number = codec::load<std::uint16_t>(header, 0);
    if (number == 0) break;
    const auto length = codec::load<std::uint64_t>(header, 8);
    at += kHeapHeaderBytes;
    if (length > end - at) return damaged("an object is longer than its heap");
    if (objects.size() <= number) objects.resize(number + 1);
    objects[number] = {at, length};
    at += std::min(end - at, (length + 7) / 8 * 8);
  }
  return objects;
}

Result<GlobalHeaps::Object> GlobalHeaps::find(std::uint64_t address, std::uint32_t number) {
  auto found = collections_.find(address);
  if (found == collections_.end()) {
    STOKER_ASSIGN_OR_RETURN(collection, read(address));
    if (kept_ > kMaxObjectsKept) collections_.clear();
    if (collections_.empty()) kept_ = 0;
    kept_ += collection.size() + 1;
    found = collections_.emplace(address, std::move(collection)).first;
  }
  if (number >= found->second.size() || found->second[number].offset == 0)
    return corrupt("{}: the heap at {}: has no object {}", subject_, address, number);
  return found->second[number];
}

}  // namespace stoker::arrays::hdf5
