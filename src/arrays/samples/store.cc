#include "arrays/samples/store.h"

#include <map>

#include "arrays/hdf5/dataset.h"
#include "arrays/zarr/array.h"
#include "arrays/zarr/store.h"

namespace stoker::arrays {

namespace {

class Hdf5Store final : public SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& file) {
    auto store = std::make_unique<Hdf5Store>();
    store->file_ = file;
    STOKER_ASSIGN_OR_RETURN(names, list_hdf5(file));
    store->names_ = std::move(names);
    return std::unique_ptr<Store>(std::move(store));
  }

  Status open_arrays(const std::vector<std::string>& names) override {
    STOKER_ASSIGN_OR_RETURN(opened,
                            Hdf5Dataset::open(file_, names, {.external_files = ExternalFiles::same_folder}));
    for (std::size_t i = 0; i < names.size(); ++i) arrays_[names[i]] = std::move(opened[i]);
    return {};
  }
  const codec::Extents& shape(const std::string& name) const override { return arrays_.at(name)->shape(); }
  const codec::ElementType& type(const std::string& name) const override { return arrays_.at(name)->type(); }
  const codec::Extents& chunks(const std::string& name) const override { return arrays_.at(name)->chunks(); }
  Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> out) const override {
    return arrays_.at(name)->read_rows(first, count, out);
  }
  Result<std::uint64_t> contiguous_offset(const std::string& name) const override {
    return arrays_.at(name)->run();
  }
  Result<codec::ChunkedArray> chunked(const std::string& name) const override {
    return arrays_.at(name)->chunked();
  }
  Result<codec::ValueArray> values(const std::string& name) const override {
    return arrays_.at(name)->values();
  }

  Result<std::vector<RowPiece>> pieces(const std::string& name) override {
    STOKER_ASSIGN_OR_RETURN(found, arrays_.at(name)->virtual_pieces());
    if (found.empty()) return Store::pieces(name);
    std::vector<RowPiece> pieces;
    for (Hdf5Dataset::VirtualPiece& piece : found) {
      STOKER_ASSIGN_OR_RETURN(base, base_of(piece.file));
      for (codec::StoredChunk& place : piece.array.stored_chunks) {
        if (!place.is_missing()) place.offset += base;
      }
      pieces.push_back({piece.first_row, piece.rows, piece.source_row, std::move(piece.array)});
    }
    return pieces;
  }

  Result<std::vector<codec::ShardPart>> parts() const override { return parts_; }

 private:
  // The offset of a file with parts of virtual datasets among the concatenated files; this file is the
  // first.
  Result<std::uint64_t> base_of(const std::string& file) {
    if (file == ".") return std::uint64_t{0};
    if (parts_.empty()) STOKER_RETURN_IF_ERROR(add_part(file_.filename().string()));
    std::uint64_t base = 0;
    for (const codec::ShardPart& part : parts_) {
      if (part.file == file) return base;
      base += part.bytes;
    }
    STOKER_RETURN_IF_ERROR(add_part(file));
    return base;
  }
  Status add_part(const std::string& file) {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_read(file_.parent_path() / file));
    STOKER_ASSIGN_OR_RETURN(size, opened.size());
    parts_.push_back({file, size});
    return {};
  }

  Path file_;
  std::vector<codec::ShardPart> parts_;
  std::map<std::string, std::unique_ptr<Hdf5Dataset>> arrays_;
};

class ZarrStore final : public SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& path) {
    auto store = std::make_unique<ZarrStore>();
    STOKER_ASSIGN_OR_RETURN(files, ZarrFiles::open(path));
    STOKER_ASSIGN_OR_RETURN(nodes, list_zarr(*files));
    store->files_ = std::move(files);
    for (const ZarrNode& node : nodes) {
      if (node.kind == ZarrNode::Kind::array) store->names_.push_back(node.path);
    }
    return std::unique_ptr<Store>(std::move(store));
  }

  Status open_arrays(const std::vector<std::string>& names) override {
    const auto cache = std::make_shared<codec::ChunkCache>(256_MiB);
    for (const std::string& name : names) {
      STOKER_ASSIGN_OR_RETURN(array, ZarrArray::open(files_, name, cache));
      arrays_[name] = std::move(array);
    }
    return {};
  }
  const codec::Extents& shape(const std::string& name) const override {
    return arrays_.at(name)->metadata().shape;
  }
  const codec::ElementType& type(const std::string& name) const override {
    return arrays_.at(name)->metadata().type;
  }
  const codec::Extents& chunks(const std::string& name) const override {
    return arrays_.at(name)->metadata().inner_chunks();
  }
  Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> out) const override {
    return arrays_.at(name)->read_rows(first, count, out);
  }
  Result<std::uint64_t> contiguous_offset(const std::string& name) const override {
    STOKER_ASSIGN_OR_RETURN(piece, arrays_.at(name)->contiguous_piece());
    return piece.begin;
  }
  Result<codec::ChunkedArray> chunked(const std::string& name) const override {
    return arrays_.at(name)->chunked();
  }
  Result<codec::ValueArray> values(const std::string& name) const override {
    return arrays_.at(name)->values();
  }
  Result<std::vector<codec::ShardPart>> parts() const override { return files_->parts(); }

 private:
  std::shared_ptr<const ZarrFiles> files_;  // shared with the arrays
  std::map<std::string, std::unique_ptr<ZarrArray>> arrays_;
};

}  // namespace

Result<std::unique_ptr<SampleArrays::Store>> SampleArrays::Store::open(const Path& file, ArrayFormat format) {
  return format == ArrayFormat::hdf5 ? Hdf5Store::open(file) : ZarrStore::open(file);
}

}  // namespace stoker::arrays
