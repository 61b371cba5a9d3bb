#include "data/pack/shard/container.h"

#include <algorithm>

#include "base/hash.h"
#include "format/parquet/writer.h"
#include "format/samples/writer.h"
#include "format/tfrecord.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kPiece = 4u << 20;

// Passes a file on to `append` with the CRC-32C of each piece, and gives that of all. Pieces that are read
// one after the other do not stay where they are.
template <typename Append>
Result<std::uint32_t> pass_on(const PackedFile& file, formats::ByteSink& sink, const Append& append) {
  if (!file.read) {
    const std::uint32_t crc = crc32c(file.bytes);
    RETURN_IF_ERROR(append(file.bytes, crc));
    return crc;
  }
  std::vector<std::byte> piece(std::min(kPiece, file.size));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < file.size; at += kPiece) {
    const auto part = std::span(piece).first(std::min(kPiece, file.size - at));
    RETURN_IF_ERROR(file.read(at, part));
    const std::uint32_t of_part = crc32c(part);
    crc = crc32c_of_both(crc, of_part, part.size());
    RETURN_IF_ERROR(append(part, of_part));
    sink.settle();
  }
  return crc;
}

class TarContainer final : public Container {
 public:
  explicit TarContainer(formats::ByteSink& sink) : sink_(sink), tar_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    for (const PackedFile& file : files) {
      OK_OR_RETURN(offset, tar_.begin(member_name(key, file.extension), file.size));
      OK_OR_RETURN(crc, pass_on(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
                     return tar_.append(part, crc32c);
                   }));
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

  formats::ByteSink& sink_;
  formats::TarWriter tar_;
  std::string name_;
};

class RecordContainer final : public Container {
 public:
  explicit RecordContainer(formats::ByteSink& sink) : sink_(sink), records_(sink) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    files_.clear();
    for (const PackedFile& file : files) files_.push_back({.name = file.extension, .bytes = file.size});
    RETURN_IF_ERROR(records_.begin({.key = key, .label = label.number}, files_));
    for (const PackedFile& file : files) {
      OK_OR_RETURN(offset, records_.begin_file());
      OK_OR_RETURN(crc, pass_on(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
                     return records_.append(part, crc32c);
                   }));
      places.push_back({.offset = offset, .crc32c = crc});
    }
    return records_.end();
  }

  Status finish() override { return {}; }

 private:
  formats::ByteSink& sink_;
  formats::TfRecordWriter records_;
  std::vector<formats::ExampleFile> files_;
};

std::size_t column_of(const formats::ParquetShape& columns, const PackedFile& file) {
  const auto found = std::find(columns.files.begin(), columns.files.end(), file.extension);
  CHECK(found != columns.files.end());  // the plan has listed them
  return static_cast<std::size_t>(found - columns.files.begin());
}

class ParquetContainer final : public Container {
 public:
  ParquetContainer(const formats::ParquetShape& columns, formats::ByteSink& sink)
      : columns_(columns), sink_(sink), writer_(sink, columns) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    RETURN_IF_ERROR(writer_.begin_row(key, label.number));
    for (const PackedFile& file : files) {
      OK_OR_RETURN(crc, add_file(file));
      places.push_back({.offset = 0, .crc32c = crc});
    }
    return writer_.end_row();
  }

  Status finish() override { return writer_.finish(); }
  std::span<const std::uint64_t> late_offsets() const override { return writer_.offsets(); }

 private:
  Result<std::uint32_t> add_file(const PackedFile& file) {
    const std::size_t column = column_of(columns_, file);
    if (!file.read) {
      const std::uint32_t crc = crc32c(file.bytes);
      RETURN_IF_ERROR(writer_.add(column, file.bytes, crc));
      return crc;
    }
    if (column == columns_.streamed) {
      RETURN_IF_ERROR(writer_.begin_streamed(file.size));
      return pass_on(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
        return writer_.append(part, crc32c);
      });
    }
    RETURN_IF_ERROR(writer_.check_size(file.size));
    std::vector<std::byte> whole;
    whole.reserve(file.size);
    OK_OR_RETURN(crc, pass_on(file, sink_, [&](std::span<const std::byte> part, std::uint32_t) {
                   whole.insert(whole.end(), part.begin(), part.end());
                   return Status();
                 }));
    RETURN_IF_ERROR(writer_.add(column, whole, crc));
    return crc;
  }

  const formats::ParquetShape& columns_;
  formats::ByteSink& sink_;
  formats::ParquetWriter writer_;
};

class ArraysContainer final : public Container {
 public:
  ArraysContainer(formats::ArrayFormat format, const formats::ParquetShape& columns, formats::ByteSink& sink)
      : columns_(columns), sink_(sink), writer_(format, sink, columns.files, columns.has_labels) {}

  Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
             std::vector<PackedPlace>& places) override {
    RETURN_IF_ERROR(writer_.begin_sample(key, label.number));
    for (const PackedFile& file : files) {
      OK_OR_RETURN(offset, writer_.begin_file(column_of(columns_, file), file.size));
      OK_OR_RETURN(crc, pass_on(file, sink_, [this](std::span<const std::byte> part, std::uint32_t crc32c) {
                     return writer_.append(part, crc32c);
                   }));
      places.push_back({.offset = offset, .crc32c = crc});
    }
    return {};
  }

  Status finish() override { return writer_.finish(); }

 private:
  const formats::ParquetShape& columns_;
  formats::ByteSink& sink_;
  formats::SampleArraysWriter writer_;
};

}  // namespace

std::string_view to_text(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::tar:
      return "tar";
    case ContainerKind::tfrecord:
      return "tfrecord";
    case ContainerKind::parquet:
      return "parquet";
    case ContainerKind::hdf5:
      return "hdf5";
    case ContainerKind::mds:
      return "mds";
    case ContainerKind::npy:
      return "npy";
    case ContainerKind::zarr:
    case ContainerKind::zarr_2:
      break;
  }
  return "zarr";
}

std::string_view shard_ending(ContainerKind kind) {
  const bool is_zarr = kind == ContainerKind::zarr || kind == ContainerKind::zarr_2;
  return is_zarr ? "zarr.zip" : to_text(kind);
}

std::unique_ptr<Container> Container::make(ContainerKind kind, const formats::ParquetShape& columns,
                                           formats::ByteSink& sink) {
  if (kind == ContainerKind::tar) return std::make_unique<TarContainer>(sink);
  if (kind == ContainerKind::tfrecord) return std::make_unique<RecordContainer>(sink);
  if (kind == ContainerKind::parquet) return std::make_unique<ParquetContainer>(columns, sink);
  CHECK(kind != ContainerKind::mds && kind != ContainerKind::npy);
  using formats::ArrayFormat;
  const ArrayFormat format = kind == ContainerKind::hdf5   ? ArrayFormat::hdf5
                             : kind == ContainerKind::zarr ? ArrayFormat::zarr
                                                           : ArrayFormat::zarr_2;
  return std::make_unique<ArraysContainer>(format, columns, sink);
}

}  // namespace stoker::data
