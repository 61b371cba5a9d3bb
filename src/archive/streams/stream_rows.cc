#include "archive/streams/stream_rows.h"

#include <span>
#include <string_view>

#include "base/language/counted.h"
#include "stoker/text.h"

namespace stoker::archive {

namespace {}  // namespace

Result<StreamOffsets> read_stream_offsets(const ReadAt& read, std::uint64_t size,
                                          const std::string& subject) {
  std::uint32_t samples = 0;
  if (size < 2 * kStreamWord) return corrupt("{}: has {} bytes: no samples", subject, size);
  STOKER_RETURN_IF_ERROR(read(0, std::as_writable_bytes(std::span(&samples, 1))));
  const std::uint64_t table = (std::uint64_t{samples} + 1) * kStreamWord;
  if (table > size - kStreamWord)
    return corrupt("{}: claims {} in {} bytes", subject, counted(samples, "sample"), size);
  std::vector<std::uint32_t> words(std::size_t{samples} + 1);
  STOKER_RETURN_IF_ERROR(read(kStreamWord, std::as_writable_bytes(std::span(words))));
  StreamOffsets offsets(words.begin(), words.end());
  if (offsets.front() < kStreamWord + table || offsets.back() > size)
    return corrupt("{}: samples are in bytes {} to {} of {}", subject, offsets.front(), offsets.back(), size);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] > offsets[i + 1]) return corrupt("{}: sample {} ends before it begins", subject, i);
  }
  return offsets;
}

Result<std::string> read_mds_config(const ReadAt& read, const StreamOffsets& offsets,
                                    const std::string& subject) {
  constexpr std::uint64_t kLongest = 64u << 20;
  const std::uint64_t begin = kStreamWord * (offsets.size() + 1);
  const std::uint64_t bytes = offsets.front() - begin;
  if (bytes > kLongest) return corrupt("{}: {} bytes between offsets and samples", subject, bytes);
  std::string text(bytes, '\0');
  STOKER_RETURN_IF_ERROR(read(begin, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<const std::vector<StreamValue>*> StreamRows::values(std::uint64_t sample) {
  const std::uint64_t begin = offsets_[sample];
  const std::uint64_t bytes = offsets_[sample + 1] - begin;
  values_.clear();
  if (layout_ == StreamLayout::single) {
    values_.push_back({.offset = begin, .bytes = bytes});
    return &values_;
  }
  sizes_.clear();
  for (const StreamColumn& column : columns_) {
    if (column.bytes == 0) sizes_.push_back(0);
  }
  const std::uint64_t head = sizes_.size() * kStreamWord;
  if (head > bytes) return corrupt("{}: sample {} has {} bytes", subject_, sample, bytes);
  if (head > 0) STOKER_RETURN_IF_ERROR(read_(begin, std::as_writable_bytes(std::span(sizes_))));
  std::uint64_t at = head;
  std::size_t next = 0;
  for (const StreamColumn& column : columns_) {
    const std::uint64_t size = column.bytes == 0 ? sizes_[next++] : column.bytes;
    if (layout_ == StreamLayout::unpacked_table && size == kNullStreamValue) {
      values_.push_back({.offset = begin + at, .bytes = 0, .is_missing = true});
      continue;
    }
    if (size > bytes - at) {
      return corrupt("{}: sample {}: column '{}' has {} bytes, {} are left", subject_, sample,
                     printable(column.name), size, bytes - at);
    }
    values_.push_back({.offset = begin + at, .bytes = size});
    at += size;
  }
  if (at == bytes) return &values_;
  return corrupt("{}: sample {}: {} bytes belong to no column", subject_, sample, bytes - at);
}

}  // namespace stoker::archive
