#include "pack/container/container.h"

#include <algorithm>

#include "archive/tfrecord.h"
#include "arrays/samples/writer.h"
#include "base/hash.h"
#include "parquet/writer.h"

namespace stoker::pack {

namespace {

constexpr std::uint64_t kPiece = 4u << 20;

// Copies a file to `append` piece by piece with the CRC-32C of each piece; returns the CRC of the file. The
// buffer of a piece is reused for the next one.
template <typename Append>
Result<std::uint32_t> copy_file(const PackedFile& file, archive::ByteSink& sink, const Append& append) {
  if (!file.read) {
    const std::uint32_t crc = crc32c(file.bytes);
    STOKER_RETURN_IF_ERROR(append(file.bytes, crc));
    return crc;
  }
  std::vector<std::byte> piece(std::min(kPiece, file.size));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < file.size; at += kPiece) {
    const auto part = std::span(piece).first(std::min(kPiece, file.size - at));
    STOKER_RETURN_IF_ERROR(file.read(at, part));
    const std::uint32_t of_part = crc32c(part);
    crc = crc32c_combine(crc, of_part, part.size());
    STOKER_RETURN_IF_ERROR(append(part, of_part));
    sink.release_inputs();
  }
  return crc;
}

class TarContainer final : public Container {
 public:
  explicit TarContainer(archive::ByteSink& sink) : sink_(sink), tar_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    for (const PackedFile& file : files) {
      STOKER_ASSIGN_OR_RETURN(offset, tar_.begin(member_name(key, file.extension), file.size));
      STOKER_ASSIGN_OR_RETURN(
          crc, copy_file(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
            return tar_.append(part, crc32c);
          }));
      STOKER_RETURN_IF_ERROR(tar_.end());
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

  archive::ByteSink& sink_;
  archive::TarWriter tar_;
  std::string name_;
};

class RecordContainer final : public Container {
 public:
  explicit RecordContainer(archive::ByteSink& sink) : sink_(sink), records_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    files_.clear();
    for (const PackedFile& file : files) files_.push_back({.name = file.extension, .bytes = file.size});
    STOKER_RETURN_IF_ERROR(records_.begin({.key = key, .label = label.number}, files_));
    for (const PackedFile& file : files) {
      STOKER_ASSIGN_OR_RETURN(offset, records_.begin_file());
      STOKER_ASSIGN_OR_RETURN(
          crc, copy_file(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
            return records_.append(part, crc32c);
          }));
      places.push_back({.offset = offset, .crc32c = crc});
    }
    return records_.end();
  }

  Status finish() override { return {}; }

 private:
  archive::ByteSink& sink_;
  archive::TfRecordWriter records_;
  std::vector<archive::ExampleFile> files_;
};

std::size_t column_of(const parquet::ParquetColumns& columns, const PackedFile& file) {
  const auto found = std::find(columns.files.begin(), columns.files.end(), file.extension);
  STOKER_CHECK(found != columns.files.end());  // the plan lists all extensions
  return static_cast<std::size_t>(found - columns.files.begin());
}

class ParquetContainer final : public Container {
 public:
  ParquetContainer(const parquet::ParquetColumns& columns, archive::ByteSink& sink)
      : columns_(columns), sink_(sink), writer_(sink, columns) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    STOKER_RETURN_IF_ERROR(writer_.begin_row(key, label.number));
    for (const PackedFile& file : files) {
      STOKER_ASSIGN_OR_RETURN(crc, add_file(file));
      places.push_back({.offset = 0, .crc32c = crc});
    }
    return writer_.end_row();
  }

  Status finish() override { return writer_.finish(); }
  std::span<const std::uint64_t> deferred_offsets() const override { return writer_.offsets(); }

 private:
  Result<std::uint32_t> add_file(const PackedFile& file) {
    const std::size_t column = column_of(columns_, file);
    if (!file.read) {
      const std::uint32_t crc = crc32c(file.bytes);
      STOKER_RETURN_IF_ERROR(writer_.add(column, file.bytes, crc));
      return crc;
    }
    if (column == columns_.streamed) {
      STOKER_RETURN_IF_ERROR(writer_.begin_streamed(file.size));
      return copy_file(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
        return writer_.append(part, crc32c);
      });
    }
    STOKER_RETURN_IF_ERROR(writer_.check_size(file.size));
    std::vector<std::byte> whole;
    whole.reserve(file.size);
    STOKER_ASSIGN_OR_RETURN(crc, copy_file(file, sink_, [&](std::span<const std::byte> part, std::uint32_t) {
                              whole.insert(whole.end(), part.begin(), part.end());
                              return Status();
                            }));
    STOKER_RETURN_IF_ERROR(writer_.add(column, whole, crc));
    return crc;
  }

  const parquet::ParquetColumns& columns_;
  archive::ByteSink& sink_;
  parquet::ParquetWriter writer_;
};

class ArraysContainer final : public Container {
 public:
  ArraysContainer(arrays::ArrayFormat format, const parquet::ParquetColumns& columns, archive::ByteSink& sink)
      : columns_(columns), sink_(sink), writer_(format, sink, columns.files, columns.has_labels) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    STOKER_RETURN_IF_ERROR(writer_.begin_sample(key, label.number));
    for (const PackedFile& file : files) {
      STOKER_ASSIGN_OR_RETURN(offset, writer_.begin_file(column_of(columns_, file), file.size));
      STOKER_ASSIGN_OR_RETURN(
          crc, copy_file(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
            return writer_.append(part, crc32c);
          }));
      places.push_back({.offset = offset, .crc32c = crc});
    }
    return {};
  }

  Status finish() override { return writer_.finish(); }

 private:
  const parquet::ParquetColumns& columns_;
  archive::ByteSink& sink_;
  arrays::SampleArraysWriter writer_;
};

}  // namespace

std::unique_ptr<Container> Container::make(dataset::ContainerKind kind,
                                           const parquet::ParquetColumns& columns, archive::ByteSink& sink) {
  if (kind == dataset::ContainerKind::tar) return std::make_unique<TarContainer>(sink);
  if (kind == dataset::ContainerKind::tfrecord) return std::make_unique<RecordContainer>(sink);
  if (kind == dataset::ContainerKind::parquet) return std::make_unique<ParquetContainer>(columns, sink);
  STOKER_CHECK(kind != dataset::ContainerKind::mds && kind != dataset::ContainerKind::npy);
  using arrays::ArrayFormat;
  const ArrayFormat format = kind == dataset::ContainerKind::hdf5   ? ArrayFormat::hdf5
                             : kind == dataset::ContainerKind::zarr ? ArrayFormat::zarr
                                                                    : ArrayFormat::zarr_2;
  return std::make_unique<ArraysContainer>(format, columns, sink);
}

}  // namespace stoker::pack
