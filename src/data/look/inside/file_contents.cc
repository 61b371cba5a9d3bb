#include "data/look/inside/file_contents.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "data/components/npy.h"
#include "data/look/arrays/numpy/npy_sets.h"
#include "data/look/lint_items.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/leaf_kind.h"
#include "format/chunks/box.h"
#include "format/chunks/element_type.h"
#include "format/parquet/parquet.h"
#include "format/samples/listing.h"
#include "format/zarr/data_type.h"
#include "format/zip.h"

namespace stoker::data {

namespace {

using Part = FileContents::Part;

constexpr std::size_t kMostParts = 1000;

Result<FileContents> arrays_of(const Path& file, formats::ArrayFormat format) {
  OK_OR_RETURN(listing, formats::list_arrays(file, format, kMostParts));
  FileContents contents{.of = FileContents::Of::arrays, .unseen = listing.unseen};
  contents.kind = format == formats::ArrayFormat::hdf5 ? "HDF5 file" : "Zarr store";
  for (formats::ListedArray& array : listing.arrays) {
    Part& part = contents.parts.emplace_back(Part{.name = std::move(array.name)});
    if (!array.readable.ok()) {
      part.unread = array.readable.message();
      continue;
    }
    part.type = formats::described(array.type);
    part.shape = std::move(array.shape);
    part.chunks = std::move(array.chunks);
  }
  return contents;
}

// What the header of an array of `size` bytes says; or why it is not read.
Result<Part> npy_part(std::string name, std::span<const std::byte> beginning, std::uint64_t size) {
  Part part{.name = std::move(name)};
  const Result<NpyLayout> layout = read_npy_layout(beginning);
  if (!layout.ok() && layout.status().code() != Code::invalid) return layout.status();
  const auto type = layout.ok() ? formats::parse_zarr_v2_type(layout->type) : layout.status();
  if (type.ok()) {
    const std::uint64_t there = size - layout->data_at;
    const auto promised = formats::product(
        std::vector<std::uint64_t>(layout->shape.begin(), layout->shape.end()), type->type.bytes);
    if (!promised || *promised > there)
      return corrupt("{}: NPY: {} bytes of elements, its header promises more", part.name, there);
    part.type = formats::described(type->type);
    part.shape.emplace(layout->shape.begin(), layout->shape.end());
  } else {
    part.unread = format("{}: {}", part.name, type.status().message());
  }
  return part;
}

Result<FileContents> npy_of(const Path& file, const File& opened, std::uint64_t size) {
  std::vector<std::byte> beginning(std::min<std::uint64_t>(size, kLongestNpyHeader));
  RETURN_IF_ERROR(opened.read_at(0, beginning));
  Result<Part> part = npy_part(file.stem().string(), beginning, size);
  if (!part.ok()) return part.status().with_context(printable(file.string()));
  FileContents contents{.of = FileContents::Of::arrays, .kind = "NumPy array"};
  contents.parts.push_back(std::move(*part));
  return contents;
}

// The beginning of a member, whether it is compressed or not.
Result<std::vector<std::byte>> beginning_of(const formats::ZipReader& zip, const formats::ZipMember& member) {
  const std::uint64_t wanted = std::min<std::uint64_t>(member.bytes, kLongestNpyHeader);
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
  OK_OR_RETURN(archive, open_npz(file));
  FileContents contents{.of = FileContents::Of::arrays, .kind = "NumPy archive"};
  for (const formats::ZipMember& member : archive.zip.members()) {
    if (!is_npy(member.name) || member.is_folder()) continue;
    if (contents.parts.size() == kMostParts) {
      ++contents.unseen;
      continue;
    }
    const std::string name = member.name.substr(0, member.name.rfind('.'));
    if (!member.is_readable()) {
      contents.parts.push_back(
          {.name = name, .unread = name + ": is encrypted, or packed in a way of its own"});
      continue;
    }
    OK_OR_RETURN(beginning, beginning_of(archive.zip, member));
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
  OK_OR_RETURN(table, formats::ParquetFile::open(read, size, printable(file.string())));
  FileContents contents{.of = FileContents::Of::columns, .kind = "Parquet table", .rows = table.rows()};
  contents.row_groups = table.groups();
  contents.unseen = table.leaves().size() - std::min(table.leaves().size(), kMostParts);
  for (const formats::ParquetLeaf& leaf : table.leaves()) {
    if (contents.parts.size() == kMostParts) break;
    contents.parts.push_back({.name = leaf.name, .type = described(leaf)});
  }
  return contents;
}

std::string archive_kind_of(const std::string& name) {
  if (is_tfrecord(name)) return "TFRecord file";
  if (is_mds(name)) return "MDS shard";
  if (name.ends_with(".zip")) return "zip archive";
  return name.find(".tar") != std::string::npos || name.ends_with(".tgz") ? "tar archive" : "file";
}

Result<FileContents> files_of(const Path& file, Progress& progress) {
  const auto listed = [&](SourceLayout layout) {
    return open_items({.where = file.string(), .layout = layout}, progress);
  };
  Result<std::unique_ptr<LintItems>> items = listed(SourceLayout::images);
  // Where class folders do not explain it, names do.
  if (!items.ok() && items.status().code() == Code::invalid) {
    Result<std::unique_ptr<LintItems>> by_names = listed(SourceLayout::files);
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
  if (contents.parts.size() > kMostParts) {
    contents.unseen = contents.parts.size() - kMostParts;
    contents.parts.resize(kMostParts);
  }
  return contents;
}

}  // namespace

Result<FileContents> file_contents(const Path& file, Progress& progress) {
  const std::string name = file.filename().string();
  if (folder_exists(file)) return arrays_of(file, formats::ArrayFormat::zarr);
  OK_OR_RETURN(opened, File::open_read(file));
  OK_OR_RETURN(size, opened.size());
  Result<FileContents> contents = [&]() -> Result<FileContents> {
    if (is_hdf5(name)) return arrays_of(file, formats::ArrayFormat::hdf5);
    if (is_zarr(name)) return arrays_of(file, formats::ArrayFormat::zarr);
    if (is_npy(name)) return npy_of(file, opened, size);
    if (is_npz(name)) return npz_of(file);
    if (is_parquet(name)) return columns_of(file, opened, size);
    return files_of(file, progress);
  }();
  if (contents.ok()) contents->bytes = size;
  return contents;
}

}  // namespace stoker::data
