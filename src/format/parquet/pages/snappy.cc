#include <cstring>

#include "format/parquet/pages/codecs.h"

namespace stoker::formats {

namespace {

// Snappy: the length, then literals and copies of what came before.
class Snappy {
 public:
  Snappy(std::span<const std::byte> packed, std::span<std::byte> out) : packed_(packed), out_(out) {}

  bool run() {
    if (!skip_length()) return false;
    while (at_ < packed_.size()) {
      const unsigned tag = number(1);
      const unsigned kind = tag & 3;
      std::size_t length = (tag >> 2) + 1;
      if (kind == 0) {
        constexpr std::size_t kLongest = 60;  // beyond it the length follows, in 1 to 4 bytes
        if (length > kLongest) length = std::size_t{number(length - kLongest)} + 1;
        if (!literal(length)) return false;
        continue;
      }
      std::size_t back = 0;
      if (kind == 1) {
        length = (tag >> 2 & 7) + 4;
        back = (tag >> 5) << 8 | number(1);
      } else {
        back = number(kind == 2 ? 2 : 4);
      }
      if (is_short_ || !copy(back, length)) return false;
    }
    return !is_short_ && done_ == out_.size();
  }

 private:
  unsigned number(std::size_t bytes) {
    if (bytes > packed_.size() - at_) {
      is_short_ = true;
      return 0;
    }
    unsigned value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<unsigned>(packed_[at_++]) << 8 * i;
    return value;
  }

  bool skip_length() {
    std::uint64_t length = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const unsigned next = number(1);
      length |= std::uint64_t{next & 127} << shift;
      if (next < 128) return !is_short_ && length == out_.size();
    }
    return false;
  }

  bool literal(std::size_t length) {
    if (is_short_ || length > packed_.size() - at_ || length > out_.size() - done_) return false;
    std::memcpy(out_.data() + done_, packed_.data() + at_, length);
    at_ += length;
    done_ += length;
    return true;
  }

  bool copy(std::size_t back, std::size_t length) {
    if (back == 0 || back > done_ || length > out_.size() - done_) return false;
    // The two may overlap: then the copy repeats itself.
    for (std::size_t i = 0; i < length; ++i, ++done_) out_[done_] = out_[done_ - back];
    return true;
  }

  std::span<const std::byte> packed_;
  std::span<std::byte> out_;
  std::size_t at_ = 0;
  std::size_t done_ = 0;
  bool is_short_ = false;
};

}  // namespace

bool unsnappy(std::span<const std::byte> packed, std::span<std::byte> out) {
  return Snappy(packed, out).run();
}

}  // namespace stoker::formats
