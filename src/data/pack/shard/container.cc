#include "data/pack/shard/container.h"

#include <algorithm>

#include "base/hash.h"
#include "format/tfrecord.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kPiece = 4u << 20;

// Passes a file on to `append`, and gives its CRC-32C.
template <typename Append>
Result<std::uint32_t> pass_on(const PackedFile& file, const Append& append) {
  if (!file.read) {
    RETURN_IF_ERROR(append(file.bytes));
    return crc32c(file.bytes);
  }
  std::vector<std::byte> piece(std::min(kPiece, file.size));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < file.size; at += kPiece) {
    const auto part = std::span(piece).first(std::min(kPiece, file.size - at));
    RETURN_IF_ERROR(file.read(at, part));
    crc = crc32c(part, crc);
    RETURN_IF_ERROR(append(part));
  }
  return crc;
}

class TarContainer final : public Container {
 public:
  explicit TarContainer(formats::ByteSink& sink) : tar_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    for (const PackedFile& file : files) {
      OK_OR_RETURN(offset, tar_.begin(member_name(key, file.extension), file.size));
      OK_OR_RETURN(crc, pass_on(file, [this](std::span<const std::byte> part) { return tar_.append(part); }));
      RETURN_IF_ERROR(tar_.end());
      places.push_back({.offset = offset, .crc32c = crc});
    }
    if (label.extension.empty()) return {};
    return tar_.add(member_name(key, label.extension), std::as_bytes(std::span(label.text))).status();
  }

  Status finish() override { return tar_.finish(); }

 private:
  const std::string& member_name(std::string_view key, std::string_view extension) {
    name_ = key;
    name_ += '.';
    name_ += extension;
    return name_;
  }

  formats::TarWriter tar_;
  std::string name_;
};

class RecordContainer final : public Container {
 public:
  explicit RecordContainer(formats::ByteSink& sink) : records_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    files_.clear();
    for (const PackedFile& file : files) files_.push_back({.name = file.extension, .bytes = file.size});
    RETURN_IF_ERROR(records_.begin({.key = key, .label = label.number}, files_));
    for (const PackedFile& file : files) {
      OK_OR_RETURN(offset, records_.begin_file());
      OK_OR_RETURN(crc,
                   pass_on(file, [this](std::span<const std::byte> part) { return records_.append(part); }));
      places.push_back({.offset = offset, .crc32c = crc});
    }
    return records_.end();
  }

  Status finish() override { return {}; }

 private:
  formats::TfRecordWriter records_;
  std::vector<formats::ExampleFile> files_;
};

}  // namespace

std::string_view to_text(ContainerKind kind) { return kind == ContainerKind::tar ? "tar" : "tfrecord"; }

std::unique_ptr<Container> Container::make(ContainerKind kind, formats::ByteSink& sink) {
  if (kind == ContainerKind::tar) return std::make_unique<TarContainer>(sink);
  return std::make_unique<RecordContainer>(sink);
}

}  // namespace stoker::data
