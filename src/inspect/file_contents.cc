#include "inspect/file_contents.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "archive/zip.h"
#include "arrays/samples/listing.h"
#include "arrays/zarr/data_type.h"
#include "codec/chunks/box.h"
#include "codec/chunks/element_type.h"
#include "codec/npy.h"
#include "inspect/lint_items.h"
#include "parquet/parquet.h"
#include "sources/shard_scan.h"
#include "sources/tables/filter/leaf_kind.h"

namespace stoker::inspect {

namespace {

using Part = FileContents::Part;

constexpr std::size_t kMaxParts = 1000;

Result<FileContents> arrays_of(const Path& file, arrays::ArrayFormat format) {
  STOKER_ASSIGN_OR_RETURN(listing, arrays::list_arrays(file, format, kMaxParts));
  FileContents contents{.layout = FileContents::Layout::arrays, .omitted = listing.omitted};
  contents.kind = format == arrays::ArrayFormat::hdf5 ? "HDF5 file" : "Zarr store";
  for (arrays::ListedArray& array : listing.arrays) {
    Part& part = contents.parts.emplace_back(Part{.name = std::move(array.name)});
    if (!array.readable.ok()) {
      part.unreadable = array.readable.message();
      continue;
    }
    part.type = codec::type_name(array.type);
    part.shape = std::move(array.shape);
    part.chunks = std::move(array.chunks);
  }
  return contents;
}

// Describes an array of `size` bytes by its header, or records why it is unreadable.
Result<Part> npy_part(std::string name, std::span<const std::byte> beginning, std::uint64_t size) {
  Part part{.name = std::move(name)};
  const Result<codec::NpyLayout> layout = codec::read_npy_layout(beginning);
  if (!layout.ok() && layout.status().code() != Code::invalid) return layout.status();
  const auto type = layout.ok() ? arrays::parse_zarr_v2_type(layout->type) : layout.status();
  if (type.ok()) {
    const std::uint64_t available = size - layout->data_offset;
    const auto promised = codec::product(
        std::vector<std::uint64_t>(layout->shape.begin(), layout->shape.end()), type->type.bytes);
    if (!promised || *promised > available)
      return corrupt("{}: NPY: {} bytes of elements, but its header declares more", part.name, available);
    part.type = codec::type_name(type->type);
    part.shape.emplace(layout->shape.begin(), layout->shape.end());
  } else {
    part.unreadable = format("{}: {}", part.name, type.status().message());
  }
  return part;
}

Result<FileContents> npy_of(const Path& file, const File& opened, std::uint64_t size) {
  std::vector<std::byte> beginning(std::min<std::uint64_t>(size, codec::kMaxNpyHeaderBytes));
  STOKER_RETURN_IF_ERROR(opened.read_at(0, beginning));
  Result<Part> part = npy_part(file.stem().string(), beginning, size);
  if (!part.ok()) return part.status().with_context(printable(file.string()));
  FileContents contents{.layout = FileContents::Layout::arrays, .kind = "NumPy array"};
  contents.parts.push_back(std::move(*part));
  return contents;
}

// The first bytes of a member, compressed or not.
Result<std::vector<std::byte>> beginning_of(const archive::ZipReader& zip, const archive::ZipMember& member) {
  const std::uint64_t wanted = std::min<std::uint64_t>(member.bytes, codec::kMaxNpyHeaderBytes);
  std::vector<std::byte> beginning;
  const Status status = zip.unpack(member, [&](std::span<const std::byte> piece) {
    const std::size_t taken = std::min<std::uint64_t>(piece.size(), wanted - beginning.size());
    beginning.insert(beginning.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    return beginning.size() == wanted ? cancelled("") : Status();
  });
  if (!status.ok() && beginning.size() < wanted) return status;
  return beginning;
}

Result<FileContents> npz_of(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(archive, archive::open_zip_file(file));
  FileContents contents{.layout = FileContents::Layout::arrays, .kind = "NumPy archive"};
  for (const archive::ZipMember& member : archive.zip.members()) {
    if (!sources::is_npy(member.name) || member.is_folder()) continue;
    if (contents.parts.size() == kMaxParts) {
      ++contents.omitted;
      continue;
    }
    const std::string name = member.name.substr(0, member.name.rfind('.'));
    if (!member.is_readable()) {
      contents.parts.push_back(
          {.name = name, .unreadable = name + ": is encrypted or uses an unsupported compression"});
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(beginning, beginning_of(archive.zip, member));
    Result<Part> part = npy_part(name, beginning, member.bytes);
    if (!part.ok()) return part.status().with_context(printable(file.string()));
    contents.parts.push_back(std::move(*part));
  }
  return contents;
}

Result<FileContents> columns_of(const Path& file, const File& opened, std::uint64_t size) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return opened.read_at(offset, out);
  };
  STOKER_ASSIGN_OR_RETURN(table, parquet::ParquetFile::open(read, size, printable(file.string())));
  FileContents contents{
      .layout = FileContents::Layout::columns, .kind = "Parquet table", .rows = table.rows()};
  contents.row_groups = table.groups();
  contents.omitted = table.leaves().size() - std::min(table.leaves().size(), kMaxParts);
  for (const parquet::ParquetLeaf& leaf : table.leaves()) {
    if (contents.parts.size() == kMaxParts) break;
    contents.parts.push_back({.name = leaf.name, .type = sources::type_name(leaf)});
  }
  return contents;
}

std::string archive_kind_of(const std::string& name) {
  if (sources::is_tfrecord(name)) return "TFRecord file";
  if (sources::is_mds(name)) return "MDS shard";
  if (name.ends_with(".zip")) return "zip archive";
  return name.find(".tar") != std::string::npos || name.ends_with(".tgz") ? "tar archive" : "file";
}

Result<FileContents> files_of(const Path& file, Progress& progress) {
  const auto listed = [&](sources::SourceLayout layout) {
    return open_items({.where = file.string(), .layout = layout}, progress);
  };
  Result<std::unique_ptr<LintItems>> items = listed(sources::SourceLayout::images);
  // If class folders are ambiguous, groups files by name.
  if (!items.ok() && items.status().code() == Code::invalid) {
    Result<std::unique_ptr<LintItems>> by_names = listed(sources::SourceLayout::files);
    if (by_names.ok()) items = std::move(by_names);
  }
  if (!items.ok()) return items.status();
  std::map<std::string, Part> kinds;
  const auto count = [&](const std::string& name, std::uint64_t bytes) {
    Part& part = kinds[name];
    part.name = name;
    ++part.files;
    part.bytes += bytes;
  };
  for (const LintItem& item : (*items)->items()) count((*items)->extension(item), item.bytes);
  FileContents contents{.kind = archive_kind_of(file.filename().string())};
  for (auto& [name, part] : kinds) contents.parts.push_back(std::move(part));
  std::ranges::stable_sort(contents.parts, std::greater(), &Part::files);
  if (contents.parts.size() > kMaxParts) {
    contents.omitted = contents.parts.size() - kMaxParts;
    contents.parts.resize(kMaxParts);
  }
  return contents;
}

}  // namespace

Result<FileContents> file_contents(const Path& file, Progress& progress) {
  const std::string name = file.filename().string();
  if (folder_exists(file)) return arrays_of(file, arrays::ArrayFormat::zarr);
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(file));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  Result<FileContents> contents = [&]() -> Result<FileContents> {
    if (sources::is_hdf5(name)) return arrays_of(file, arrays::ArrayFormat::hdf5);
    if (sources::is_zarr(name)) return arrays_of(file, arrays::ArrayFormat::zarr);
    if (sources::is_npy(name)) return npy_of(file, opened, size);
    if (sources::is_npz(name)) return npz_of(file);
    if (sources::is_parquet(name)) return columns_of(file, opened, size);
    return files_of(file, progress);
  }();
  if (contents.ok()) contents->bytes = size;
  return contents;
}

}  // namespace stoker::inspect
