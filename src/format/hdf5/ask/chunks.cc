#include <array>

#include "base/file.h"
#include "base/json/json.h"
#include "format/hdf5/ask/chunks_internal.h"

namespace stoker::formats::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostChunks = 1u << 24;

class ChunkAsker {
 public:
  ChunkAsker(const Api& h5, const AskedFile& file, const Extents& shape)
      : h5_(h5), file_(file), shape_(shape) {}

  Status take_filters(Id made, Json& into) const {
    Json filters = Json::array();
    const int count = h5_.H5Pget_nfilters(made);
    for (int i = 0; i < count; ++i) {
      std::array<unsigned, 64> values{};
      std::size_t value_count = values.size();
      unsigned flags = 0, config = 0;
      std::array<char, 256> name{};
      const int id = h5_.H5Pget_filter2(made, static_cast<unsigned>(i), &flags, &value_count, values.data(),
                                        name.size() - 1, name.data(), &config);
      if (id < 0) return broken();
      const std::vector<unsigned> used(
          values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(value_count, values.size())));
      filters.push_back({{"id", id}, {"name", name.data()}, {"values", used}});
    }
    into["filters"] = std::move(filters);
    return {};
  }

  Status take_chunks(Id dataset, Id made, Json& into) const {
    std::array<Size, kMostDimensions> sizes{};
    const int count = h5_.H5Pget_chunk(made, static_cast<int>(sizes.size()), sizes.data());
    if (count != static_cast<int>(shape_.size())) return broken();
    const Extents chunks(sizes.begin(), sizes.begin() + count);
    into["chunks"] = chunks;
    Extents counts;
    for (std::size_t d = 0; d < chunks.size(); ++d) {
      if (chunks[d] == 0) return broken();
      counts.push_back(shape_[d] / chunks[d] + (shape_[d] % chunks[d] != 0));
    }
    const std::optional<std::uint64_t> all = product(counts);
    if (!all || *all > kMostChunks) return unread("has more than 16 777 216 chunks, which is not read");
    if (*all == 0) {
      into["places"] = Json::array();
      return {};
    }
    unsigned options = 0;
    if (h5_.H5Pget_chunk_opts(made, &options) < 0) return broken();
    constexpr unsigned kPlainEdges = 2;  // H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
    Places places{&shape_, &counts, &chunks, (options & kPlainEdges) != 0};
    RETURN_IF_ERROR(list_chunks(dataset, places));
    RETURN_IF_ERROR(move_by_userblock(dataset, chunks, counts, places));
    into["places"] = std::move(places.list);
    return {};
  }

 private:
  struct Places {
    const Extents* shape = nullptr;
    const Extents* counts = nullptr;
    const Extents* chunks = nullptr;
    // No filter was applied to chunks that reach beyond the shape, whatever their mask says.
    bool has_plain_edges = false;
    Json list = Json::array();  // number, offset, bytes, mask: one after the other
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
    if (h5_.H5Dget_num_chunks(dataset, space.get(), &count) < 0 || count > kMostChunks) return broken();
    for (Size i = 0; i < count; ++i) {
      std::array<Size, kMostDimensions + 1> offset{};
      unsigned mask = 0;
      std::uint64_t address = 0;
      Size bytes = 0;
      if (h5_.H5Dget_chunk_info(dataset, space.get(), i, offset.data(), &mask, &address, &bytes) < 0)
        return broken();
      places.add(offset.data(), mask, address, bytes);
    }
    return {};
  }

  // With bytes of somebody else's before the file (MATLAB's have 512), versions of libhdf5 differ in whether
  // addresses of chunks count them. A chunk, read both ways, has to agree with the version; alone it would
  // not do: one of zeros behind zeros is the same at both places.
  Status move_by_userblock(Id dataset, const Extents& chunks, const Extents& counts, Places& places) const {
    const std::uint64_t block = file_.userblock;
    if (block == 0 || places.list.empty()) return {};
    const std::uint64_t bytes = places.list[2];
    if (bytes == 0 || bytes > (std::uint64_t{1} << 31)) return broken();
    std::vector<Size> offset(chunks.size());
    std::uint64_t number = places.list[0];
    for (std::size_t d = chunks.size(); d-- > 0; number /= counts[d])
      offset[d] = number % counts[d] * chunks[d];
    std::vector<std::byte> by_library(bytes);
    std::vector<std::byte> by_us(bytes);
    std::uint32_t mask = 0;
    if (h5_.H5Dread_chunk(dataset, kDefault, offset.data(), &mask, by_library.data()) < 0) return broken();
    OK_OR_RETURN(file, File::open_read(file_.path));
    const std::uint64_t likely = h5_.counts_userblock ? 0 : block;
    for (const std::uint64_t shift : {likely, block - likely}) {
      if (!file.read_at(places.list[1].get<std::uint64_t>() + shift, by_us).ok() || by_us != by_library)
        continue;
      for (std::size_t i = 1; i < places.list.size(); i += 4) {
        places.list[i] = places.list[i].get<std::uint64_t>() + shift;
      }
      return {};
    }
    return broken();
  }

  Status broken() const { return h5_.failure(file_.subject, "is damaged", h5_.last_error()); }
  Status unread(std::string_view what) const { return invalid("{}: {}", file_.subject, what); }

  const Api& h5_;
  const AskedFile& file_;
  const Extents& shape_;
};

}  // namespace

Status ask_chunks(const Api& h5, const AskedFile& file, Id dataset, const Extents& shape, Json& into) {
  const ChunkAsker asker(h5, file, shape);
  const Handle made(h5.H5Dget_create_plist(dataset), h5.H5Pclose);
  RETURN_IF_ERROR(asker.take_filters(made.get(), into));
  return asker.take_chunks(dataset, made.get(), into);
}

}  // namespace stoker::formats::hdf5
