#include "format/samples/store.h"

#include <map>

#include "format/hdf5/dataset.h"
#include "format/zarr/array.h"
#include "format/zarr/store.h"

namespace stoker::formats {

namespace {

class Hdf5Store final : public SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& file) {
    auto store = std::make_unique<Hdf5Store>();
    store->file_ = file;
    OK_OR_RETURN(names, list_hdf5(file));
    store->names_ = std::move(names);
    return std::unique_ptr<Store>(std::move(store));
  }

  Status open_arrays(const std::vector<std::string>& names) override {
    OK_OR_RETURN(opened, Hdf5Dataset::open(file_, names));
    for (std::size_t i = 0; i < names.size(); ++i) arrays_[names[i]] = std::move(opened[i]);
    return {};
  }
  const Extents& shape(const std::string& name) const override { return arrays_.at(name)->shape(); }
  const ElementType& type(const std::string& name) const override { return arrays_.at(name)->type(); }
  Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> out) const override {
    return arrays_.at(name)->read_rows(first, count, out);
  }
  Result<std::uint64_t> run(const std::string& name) const override { return arrays_.at(name)->run(); }
  Result<ChunkedArray> chunked(const std::string& name) const override { return arrays_.at(name)->chunked(); }

 private:
  Path file_;
  std::map<std::string, std::unique_ptr<Hdf5Dataset>> arrays_;
};

class ZarrStore final : public SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& path) {
    auto store = std::make_unique<ZarrStore>();
    OK_OR_RETURN(files, ZarrFiles::open(path));
    OK_OR_RETURN(nodes, list_zarr(*files));
    store->files_ = std::move(files);
    for (const ZarrNode& node : nodes) {
      if (node.kind == ZarrNode::Kind::array) store->names_.push_back(node.path);
    }
    return std::unique_ptr<Store>(std::move(store));
  }

  Status open_arrays(const std::vector<std::string>& names) override {
    const auto cache = std::make_shared<ChunkCache>(256_MiB);
    for (const std::string& name : names) {
      OK_OR_RETURN(array, ZarrArray::open(files_, name, cache));
      arrays_[name] = std::move(array);
    }
    return {};
  }
  const Extents& shape(const std::string& name) const override { return arrays_.at(name)->metadata().shape; }
  const ElementType& type(const std::string& name) const override {
    return arrays_.at(name)->metadata().type;
  }
  Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> out) const override {
    return arrays_.at(name)->read_rows(first, count, out);
  }
  Result<std::uint64_t> run(const std::string& name) const override {
    OK_OR_RETURN(piece, arrays_.at(name)->run());
    return piece.begin;
  }
  Result<ChunkedArray> chunked(const std::string& name) const override { return arrays_.at(name)->chunked(); }

 private:
  std::shared_ptr<const ZarrFiles> files_;  // shared with the arrays
  std::map<std::string, std::unique_ptr<ZarrArray>> arrays_;
};

}  // namespace

Result<std::unique_ptr<SampleArrays::Store>> SampleArrays::Store::open(const Path& file, ArrayFormat format) {
  return format == ArrayFormat::hdf5 ? Hdf5Store::open(file) : ZarrStore::open(file);
}

}  // namespace stoker::formats
