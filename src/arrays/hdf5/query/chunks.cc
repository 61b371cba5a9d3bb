#include <array>

#include "arrays/hdf5/query/chunks_internal.h"
#include "base/file.h"
#include "base/json/json.h"

namespace stoker::arrays::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxChunks = 1u << 24;

class ChunkQuery {
 public:
  ChunkQuery(const Api& h5, const FileContext& file, const codec::Extents& shape)
      : h5_(h5), file_(file), shape_(shape) {}

  Status read_filters(Id creation_properties, Json& into) const {
    Json filters = Json::array();
    const int count = h5_.H5Pget_nfilters(creation_properties);
    for (int i = 0; i < count; ++i) {
      std::array<unsigned, 64> values{};
      std::size_t value_count = values.size();
      unsigned flags = 0, config = 0;
      std::array<char, 256> name{};
      const int id = h5_.H5Pget_filter2(creation_properties, static_cast<unsigned>(i), &flags, &value_count,
                                        values.data(), name.size() - 1, name.data(), &config);
      if (id < 0) return broken();
      const std::vector<unsigned> used(
          values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(value_count, values.size())));
      filters.push_back({{"id", id}, {"name", name.data()}, {"values", used}});
    }
    into["filters"] = std::move(filters);
    return {};
  }

  Status read_chunks(Id dataset, Id creation_properties, Json& into) const {
    std::array<Size, codec::kMaxDimensions> sizes{};
    const int count = h5_.H5Pget_chunk(creation_properties, static_cast<int>(sizes.size()), sizes.data());
    if (count != static_cast<int>(shape_.size())) return broken();
    const codec::Extents chunks(sizes.begin(), sizes.begin() + count);
    into["chunks"] = chunks;
    codec::Extents counts;
    for (std::size_t d = 0; d < chunks.size(); ++d) {
      if (chunks[d] == 0) return broken();
      counts.push_back(shape_[d] / chunks[d] + (shape_[d] % chunks[d] != 0));
    }
    const std::optional<std::uint64_t> all = codec::product(counts);
    if (!all || *all > kMaxChunks)
      return unsupported("has more than 16 777 216 chunks, which is not supported");
    if (*all == 0) {
      into["places"] = Json::array();
      return {};
    }
    unsigned options = 0;
    if (h5_.H5Pget_chunk_opts(creation_properties, &options) < 0) return broken();
    constexpr unsigned kPlainEdges = 2;  // H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
    Places places{&shape_, &counts, &chunks, (options & kPlainEdges) != 0};
    STOKER_RETURN_IF_ERROR(list_chunks(dataset, places));
    STOKER_RETURN_IF_ERROR(apply_userblock_offset(dataset, chunks, counts, places));
    into["places"] = std::move(places.list);
    return {};
  }

 private:
  struct Places {
    const codec::Extents* shape = nullptr;
    const codec::Extents* counts = nullptr;
    const codec::Extents* chunks = nullptr;
    // Edge chunks are unfiltered, whatever their mask.
    bool has_plain_edges = false;
    Json list = Json::array();  // number, offset, bytes, mask of each chunk
    void add(const Size* offset, unsigned mask, std::uint64_t address, Size bytes) {
      constexpr unsigned kNoFilter = ~0u;
      std::uint64_t number = 0;
      bool is_edge = false;
      for (std::size_t d = 0; d < chunks->size(); ++d) {
        const std::uint64_t at = offset[d] / (*chunks)[d];
        number = number * (*counts)[d] + at;
        is_edge = is_edge || (*shape)[d] / (*chunks)[d] <= at;
      }
      list.push_back(number);
      list.push_back(address);
      list.push_back(bytes & 0xFFFFFFFFu);
      list.push_back(has_plain_edges && is_edge ? kNoFilter : mask);
    }
  };

  Status list_chunks(Id dataset, Places& places) const {
    if (h5_.H5Dchunk_iter != nullptr) {
      const auto add = [](const Size* offset, unsigned mask, std::uint64_t address, Size bytes, void* into) {
        static_cast<Places*>(into)->add(offset, mask, address, bytes);
        return 0;
      };
      return h5_.H5Dchunk_iter(dataset, kDefault, add, &places) < 0 ? broken() : Status();
    }
    Size count = 0;
    const Handle space(h5_.H5Dget_space(dataset), h5_.H5Sclose);
    if (h5_.H5Dget_num_chunks(dataset, space.get(), &count) < 0 || count > kMaxChunks) return broken();
    for (Size i = 0; i < count; ++i) {
      std::array<Size, codec::kMaxDimensions + 1> offset{};
      unsigned mask = 0;
      std::uint64_t address = 0;
      Size bytes = 0;
      if (h5_.H5Dget_chunk_info(dataset, space.get(), i, offset.data(), &mask, &address, &bytes) < 0)
        return broken();
      places.add(offset.data(), mask, address, bytes);
    }
    return {};
  }

  // With a userblock before the file (MATLAB's has 512 bytes), versions of libhdf5 differ in whether chunk
  // addresses include it. A chunk read both ways has to match the version's rule. The comparison alone is not
  // enough: a chunk of zeros after zeros is the same at both offsets.
  Status apply_userblock_offset(Id dataset, const codec::Extents& chunks, const codec::Extents& counts,
                                Places& places) const {
    const std::uint64_t block = file_.userblock;
    if (block == 0 || places.list.empty()) return {};
    const std::uint64_t bytes = places.list[2];
    if (bytes == 0 || bytes > (std::uint64_t{1} << 31)) return broken();
    std::vector<Size> offset(chunks.size());
    std::uint64_t number = places.list[0];
    for (std::size_t d = chunks.size(); d-- > 0; number /= counts[d])
      offset[d] = number % counts[d] * chunks[d];
    std::vector<std::byte> from_library(bytes);
    std::vector<std::byte> from_file(bytes);
    std::uint32_t mask = 0;
    if (h5_.H5Dread_chunk(dataset, kDefault, offset.data(), &mask, from_library.data()) < 0) return broken();
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(file_.path));
    const std::uint64_t likely = h5_.counts_userblock ? 0 : block;
    for (const std::uint64_t shift : {likely, block - likely}) {
      if (!file.read_at(places.list[1].get<std::uint64_t>() + shift, from_file).ok() ||
          from_file != from_library)
        continue;
      for (std::size_t i = 1; i < places.list.size(); i += 4) {
        places.list[i] = places.list[i].get<std::uint64_t>() + shift;
      }
      return {};
    }
    return broken();
  }

  Status broken() const { return h5_.failure(file_.subject, "is damaged", h5_.last_error()); }
  Status unsupported(std::string_view what) const { return invalid("{}: {}", file_.subject, what); }

  const Api& h5_;
  const FileContext& file_;
  const codec::Extents& shape_;
};

}  // namespace

Status query_chunks(const Api& h5, const FileContext& file, Id dataset, const codec::Extents& shape,
                    Json& into) {
  const ChunkQuery query(h5, file, shape);
  const Handle creation_properties(h5.H5Dget_create_plist(dataset), h5.H5Pclose);
  STOKER_RETURN_IF_ERROR(query.read_filters(creation_properties.get(), into));
  return query.read_chunks(dataset, creation_properties.get(), into);
}

}  // namespace stoker::arrays::hdf5
