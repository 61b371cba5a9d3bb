#include "arrays/hdf5/dataset.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arrays/hdf5/coder.h"
#include "arrays/hdf5/dataset_internal.h"
#include "arrays/hdf5/filters.h"
#include "arrays/hdf5/heap.h"
#include "base/language/counted.h"
#include "codec/chunks/coders.h"
#include "codec/filters/filters.h"
#include "codec/load.h"

namespace stoker::arrays {

using hdf5::ChunkLocation;
using hdf5::Description;

namespace {

constexpr ByteCount kOwnCache = 256_MiB;
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 31;
constexpr std::uint64_t kPieceBytes = 1u << 20;  // reads of a contiguous dataset
constexpr int kMaxNesting = 1;                   // sources of a virtual dataset must not be virtual

}  // namespace

Hdf5Dataset::Hdf5Dataset(std::unique_ptr<Impl> parts) : impl_(std::move(parts)) {}
Hdf5Dataset::~Hdf5Dataset() { impl_->cache->evict(impl_->owner); }

const std::string& Hdf5Dataset::name() const { return impl_->description.path; }
const codec::Extents& Hdf5Dataset::shape() const { return impl_->description.shape; }
const codec::ElementType& Hdf5Dataset::type() const { return impl_->description.type; }
const codec::Extents& Hdf5Dataset::chunks() const { return impl_->description.chunks; }
std::uint64_t Hdf5Dataset::row_bytes() const { return impl_->row_bytes; }

// The elements of variable-length values are only references.
Status Hdf5Dataset::check_elements() const {
  if (type().kind != codec::ElementType::Kind::variable_length) return {};
  return invalid("{}: has variable-length values", impl_->subject);
}

Result<std::uint64_t> Hdf5Dataset::run() const {
  using Layout = Description::Layout;
  const Description& description = impl_->description;
  STOKER_RETURN_IF_ERROR(check_elements());
  if (!description.filters.empty())
    return invalid("{}: is compressed ({})", impl_->subject, printable(description.filters[0].name));
  if (description.member)
    return invalid("{}: is stored between other members of its records", impl_->subject);
  if (description.layout == Layout::chunked)
    return invalid("{}: is stored in separate chunks", impl_->subject);
  if (description.layout == Layout::parts) return invalid("{}: is virtual", impl_->subject);
  if (description.layout == Layout::inline_)
    return invalid("{}: is stored in the file's header", impl_->subject);
  if (description.layout == Layout::contiguous && description.offset == hdf5::kNoAddress)
    return invalid("{}: was never written", impl_->subject);
  if (description.order == codec::ByteOrder::big && description.type.swap_unit() > 1)
    return invalid("{}: is not stored in this machine's byte order", impl_->subject);
  return description.offset;
}

// Compares libhdf5's description with the file.
Status Hdf5Dataset::Impl::prepare() {
  const std::span<const std::uint64_t> shape = description.shape;
  row_bytes = codec::product(shape.empty() ? shape : shape.subspan(1), description.type.bytes).value_or(0);
  bytes = codec::product(shape, description.type.bytes).value_or(0);
  no_strides = codec::Extents(shape.size());
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(description.file));
  file = std::move(opened);
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const auto is_inside = [&](std::uint64_t offset, std::uint64_t length) {
    return offset <= size && length <= size - offset;
  };
  if (description.layout == Description::Layout::inline_ && description.inline_bytes.size() != bytes) {
    return corrupt("{}: holds {} bytes, expected {}", subject, description.inline_bytes.size(), bytes);
  }
  if (description.layout == Description::Layout::contiguous && description.offset != hdf5::kNoAddress &&
      !is_inside(description.offset, stored_bytes(bytes))) {
    return corrupt("{}: its {} bytes at {} are beyond the end of the file", subject, stored_bytes(bytes),
                   description.offset);
  }
  if (description.layout != Description::Layout::chunked) return {};
  STOKER_RETURN_IF_ERROR(hdf5::check_filters(description.filters, subject));
  chunk_bytes = codec::product(description.chunks, description.type.bytes).value_or(kMaxChunkBytes);
  if (chunk_bytes >= kMaxChunkBytes || stored_bytes(chunk_bytes) >= kMaxChunkBytes)
    return invalid("{}: a chunk has 2 GiB or more, which is not supported", subject);
  chunk_strides = codec::c_strides(description.chunks, description.type.bytes);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    counts.push_back(shape[d] / description.chunks[d] + (shape[d] % description.chunks[d] != 0));
  }
  for (const ChunkLocation& place : description.chunk_locations) {
    if (!is_inside(place.offset, place.bytes)) {
      return corrupt("{}: chunk {} is beyond the end of the file", subject, place.number);
    }
  }
  return {};
}

Status Hdf5Dataset::Impl::add_sources(const Path& folder, const Hdf5Options& options, int nesting) {
  if (description.layout != Description::Layout::parts) return {};
  if (nesting == kMaxNesting)
    return invalid("{}: is virtual and part of a virtual one, which is not supported", subject);
  for (const hdf5::VirtualPart& part : description.parts) {
    const Path named = part.file;
    const bool is_same = part.file == ".";
    if (!is_same && options.external_files == ExternalFiles::refuse) {
      return invalid("{}: is virtual: its rows are in '{}' (which is not opened unless allowed)", subject,
                     printable(part.file));
    }
    if (!is_same && options.external_files == ExternalFiles::same_folder && named != named.filename()) {
      return invalid(
          "{}: is virtual: its rows are in '{}', in another folder (which is not opened unless allowed)",
          subject, printable(part.file));
    }
    const Path file_of_part = is_same ? Path(description.file) : named.is_absolute() ? named : folder / named;
    if (!path_exists(file_of_part)) {
      return unavailable("{}: is virtual: its rows are in '{}', which is missing", subject,
                         printable(part.file))
          .cure("put {} beside {}", printable(part.file), description.file);
    }
    STOKER_ASSIGN_OR_RETURN(opened, open_all(file_of_part, {part.dataset}, options, nesting + 1));
    Source source{part.first_row, part.source_row, part.rows, std::move(opened[0])};
    // Text is padded as in the source.
    if (sources.empty()) description.type.text_end = source.dataset->type().text_end;
    STOKER_RETURN_IF_ERROR(check_source(part, *source.dataset));
    sources.push_back(std::move(source));
  }
  return {};
}

// libhdf5 would convert elements and fill missing rows.
Status Hdf5Dataset::Impl::check_source(const hdf5::VirtualPart& part, const Hdf5Dataset& source) const {
  const auto unsupported = [&](const std::string& what) {
    return invalid("{}: is virtual: '{}' in '{}' {}, which is not supported", subject,
                   printable(part.dataset), printable(part.file), what);
  };
  if (source.type() != description.type)
    return unsupported(format("holds {} for {}", type_name(source.type()), type_name(description.type)));
  if (source.row_bytes() != row_bytes)
    return unsupported(format("has rows of {} bytes for {}", source.row_bytes(), row_bytes));
  if (part.source_row > source.rows() || part.rows > source.rows() - part.source_row)
    return unsupported(
        format("has {} of the {} rows that are read from it", source.rows(), part.source_row + part.rows));
  return {};
}

Result<std::vector<std::unique_ptr<Hdf5Dataset>>> Hdf5Dataset::Impl::open_all(
    const Path& file, const std::vector<std::string>& names, const Hdf5Options& options, int nesting) {
  const auto links = options.external_files == ExternalFiles::anywhere ? hdf5::ExternalLinks::follow
                                                                       : hdf5::ExternalLinks::refuse;
  STOKER_ASSIGN_OR_RETURN(described, hdf5::describe(file, names, links, Deadline::after(options.timeout)));
  std::vector<std::unique_ptr<Hdf5Dataset>> datasets;
  for (Description& description : described) {
    auto parts = std::make_unique<Impl>();
    parts->subject = format("{}: dataset '{}'", description.file, printable(description.path));
    parts->description = std::move(description);
    parts->cache = options.cache;
    parts->owner = options.cache->new_owner();
    STOKER_RETURN_IF_ERROR(parts->prepare());
    STOKER_RETURN_IF_ERROR(parts->add_sources(file.parent_path(), options, nesting));
    datasets.push_back(std::unique_ptr<Hdf5Dataset>(new Hdf5Dataset(std::move(parts))));
  }
  return datasets;
}

Result<std::vector<std::string>> list_hdf5(const Path& file, const Hdf5Options& options) {
  return hdf5::list_datasets(file, Deadline::after(options.timeout));
}

Result<std::vector<std::unique_ptr<Hdf5Dataset>>> Hdf5Dataset::open(const Path& file,
                                                                    const std::vector<std::string>& names,
                                                                    const Hdf5Options& options) {
  Hdf5Options with_cache = options;
  if (!with_cache.cache) with_cache.cache = std::make_shared<codec::ChunkCache>(kOwnCache);
  return Impl::open_all(file, names, with_cache, 0);
}

Result<std::unique_ptr<Hdf5Dataset>> Hdf5Dataset::open(const Path& file, std::string_view name,
                                                       const Hdf5Options& options) {
  STOKER_ASSIGN_OR_RETURN(datasets, open(file, std::vector<std::string>{std::string(name)}, options));
  return std::move(datasets[0]);
}

// A chunk's elements; empty if it was never written.
Result<codec::Buffer> Hdf5Dataset::Impl::load(std::uint64_t number) const {
  const auto place =
      std::lower_bound(description.chunk_locations.begin(), description.chunk_locations.end(), number,
                       [](const ChunkLocation& p, std::uint64_t n) { return p.number < n; });
  if (place == description.chunk_locations.end() || place->number != number) return codec::Buffer();
  const std::string where = format("{}: chunk {}", subject, number);
  // Filters add little to incompressible data.
  const std::uint64_t whole_bytes = stored_bytes(chunk_bytes);
  if (place->bytes > whole_bytes + whole_bytes / 8 + (64u << 10)) {
    return corrupt("{}: has {} bytes for {} elements' bytes", where, place->bytes, whole_bytes);
  }
  codec::Buffer stored(place->bytes);
  if (stored.bytes().size() != place->bytes)
    return unavailable("{}: no memory for {} bytes", where, place->bytes);
  STOKER_RETURN_IF_ERROR(file.read_at(place->offset, stored.bytes()));
  const bool is_plain = description.filters.empty() && stored.bytes().size() == whole_bytes;
  codec::Buffer whole;
  if (is_plain) {
    whole = std::move(stored);
  } else {
    STOKER_ASSIGN_OR_RETURN(unpacked, hdf5::undo_filters(description.filters, place->skipped, whole_bytes,
                                                         stored.bytes(), where));
    whole = std::move(unpacked);
  }
  return elements_of(std::move(whole), chunk_bytes, where);
}

// Converts stored bytes to elements in this machine's byte order.
Result<codec::Buffer> Hdf5Dataset::Impl::elements_of(codec::Buffer whole, std::uint64_t size,
                                                     std::string_view where) const {
  codec::Buffer elements;
  if (description.member) {
    elements = codec::Buffer(size);
    if (elements.bytes().size() != size) return unavailable("{}: no memory for {} bytes", where, size);
    description.member->extract(whole.bytes(), elements.bytes());
  } else {
    elements = std::move(whole);
  }
  if (description.order == codec::ByteOrder::big)
    codec::swap_bytes(elements.bytes(), description.type.swap_unit());
  return elements;
}

// Rows of the chunks of one block along the first dimension: out[to[i]] is row rows[i].
Status Hdf5Dataset::Impl::read_from_chunks(std::uint64_t block, std::span<const std::uint64_t> rows,
                                           std::span<const std::size_t> to, std::span<std::byte> out) const {
  const codec::Extents& shape = description.shape;
  codec::Extents at(shape.size());
  at[0] = block;
  codec::Extents row_shape = shape;
  row_shape[0] = 1;
  const codec::Extents strides = codec::c_strides(row_shape, description.type.bytes);
  codec::Extents size(shape.size(), 1);
  for (;;) {
    std::uint64_t number = 0;
    std::uint64_t column = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      number = number * counts[d] + at[d];
      if (d == 0) continue;
      size[d] = std::min(description.chunks[d], shape[d] - at[d] * description.chunks[d]);
      column += at[d] * description.chunks[d] * strides[d];
    }
    STOKER_ASSIGN_OR_RETURN(chunk, cache->get({owner, number}, [&] {
      return load(number);
    }));  // keeps the chunk alive during the copy
    const std::span<const std::byte> elements = chunk->bytes();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::byte* target = out.data() + to[i] * row_bytes + column;
      if (elements.empty()) {
        codec::copy_box({description.fill.data(), no_strides}, {target, strides}, size,
                        description.type.bytes);
      } else {
        const std::uint64_t row = rows[i] - block * description.chunks[0];
        codec::copy_box({elements.data() + row * chunk_strides[0], chunk_strides}, {target, strides}, size,
                        description.type.bytes);
      }
    }
    std::size_t d = shape.size();
    for (; d > 1; --d) {
      if (++at[d - 1] < counts[d - 1]) break;
      at[d - 1] = 0;
    }
    if (d <= 1) return {};
  }
}

// Reads a contiguous dataset through the cache, in stored pieces of about 1 MiB.
Status Hdf5Dataset::Impl::read_piece(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t piece_bytes =
      description.member ? std::max<std::uint64_t>(1, kPieceBytes / description.member->record_bytes) *
                               description.member->bytes
                         : kPieceBytes;
  while (!out.empty()) {
    const std::uint64_t piece = offset / piece_bytes;
    const std::uint64_t begin = piece * piece_bytes;
    const auto read_it = [&]() -> Result<codec::Buffer> {
      const std::uint64_t size = std::min(piece_bytes, bytes - begin);
      codec::Buffer whole(stored_bytes(size));
      if (whole.bytes().empty())
        return unavailable("{}: no memory for {} bytes", subject, stored_bytes(size));
      STOKER_RETURN_IF_ERROR(file.read_at(description.offset + stored_bytes(begin), whole.bytes()));
      return elements_of(std::move(whole), size, subject);
    };
    STOKER_ASSIGN_OR_RETURN(held, cache->get({owner, piece}, read_it));
    const std::uint64_t within = offset - begin;
    const std::size_t now = std::min<std::uint64_t>(out.size(), held->bytes().size() - within);
    std::memcpy(out.data(), held->bytes().data() + within, now);
    out = out.subspan(now);
    offset += now;
  }
  return {};
}

Status Hdf5Dataset::Impl::read_contiguous(std::uint64_t first, std::span<std::byte> out) const {
  const std::uint64_t offset = first * row_bytes;
  if (description.layout == Description::Layout::inline_) {
    std::memcpy(out.data(), description.inline_bytes.data() + offset, out.size());
  } else if (description.offset == hdf5::kNoAddress) {
    codec::fill_with(description.fill, out);
  } else if (out.size() >= kPieceBytes && !description.member) {
    STOKER_RETURN_IF_ERROR(file.read_at(description.offset + offset, out));
  } else {
    return read_piece(offset, out);
  }
  const bool is_stored =
      description.layout == Description::Layout::inline_ || description.offset != hdf5::kNoAddress;
  if (is_stored && description.order == codec::ByteOrder::big)
    codec::swap_bytes(out, description.type.swap_unit());
  return {};
}

Status Hdf5Dataset::Impl::read_sources(std::uint64_t first, std::uint64_t count,
                                       std::span<std::byte> out) const {
  std::uint64_t at = first;
  const std::uint64_t end = first + count;
  while (at < end) {
    const auto part = [&](std::uint64_t rows) {
      return out.subspan((at - first) * row_bytes, rows * row_bytes);
    };
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const Source& s) { return at < s.first_row + s.rows; });
    const std::uint64_t begin = source == sources.end() ? end : std::min(end, source->first_row);
    if (at < begin) {  // unmapped rows
      codec::fill_with(description.fill, part(begin - at));
      at = begin;
      continue;
    }
    const std::uint64_t rows = std::min(end, source->first_row + source->rows) - at;
    STOKER_RETURN_IF_ERROR(
        source->dataset->read_rows(source->source_row + (at - source->first_row), rows, part(rows)));
    at += rows;
  }
  return {};
}

Status Hdf5Dataset::read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  STOKER_RETURN_IF_ERROR(check_elements());
  return read_elements(first, count, out);
}

Status Hdf5Dataset::read_elements(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  const Impl& parts = *impl_;
  if (first > rows() || count > rows() - first) {
    return invalid("{}: has {}, {} from row {} on were requested", parts.subject, counted(rows(), "row"),
                   count, first);
  }
  STOKER_CHECK(out.size() == count * parts.row_bytes);
  if (out.empty()) return {};
  if (parts.description.layout == Description::Layout::parts) return parts.read_sources(first, count, out);
  if (parts.description.layout != Description::Layout::chunked) return parts.read_contiguous(first, out);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t block = (first + done) / rows_per_chunk();
    const std::uint64_t now = std::min(count - done, (block + 1) * rows_per_chunk() - (first + done));
    std::vector<std::uint64_t> rows(now);
    std::vector<std::size_t> to(now);
    std::iota(rows.begin(), rows.end(), first + done);
    std::iota(to.begin(), to.end(), done);
    STOKER_RETURN_IF_ERROR(parts.read_from_chunks(block, rows, to, out));
    done += now;
  }
  return {};
}

Status Hdf5Dataset::read_rows(std::span<const std::uint64_t> wanted, std::span<std::byte> out) const {
  STOKER_CHECK(out.size() == wanted.size() * row_bytes());
  STOKER_RETURN_IF_ERROR(check_elements());
  if (wanted.empty()) return {};
  const std::uint64_t last = *std::max_element(wanted.begin(), wanted.end());
  if (last >= rows())
    return invalid("{}: has {}, row {} was requested", impl_->subject, counted(rows(), "row"), last);
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  if (impl_->description.layout != Description::Layout::chunked) {
    for (const std::size_t i : order) {
      STOKER_RETURN_IF_ERROR(read_rows(wanted[i], 1, out.subspan(i * row_bytes(), row_bytes())));
    }
    return {};
  }
  if (out.empty()) return {};
  for (std::size_t from = 0; from < order.size();) {
    const std::uint64_t block = wanted[order[from]] / rows_per_chunk();
    std::size_t to = from;
    std::vector<std::uint64_t> rows;
    for (; to < order.size() && wanted[order[to]] / rows_per_chunk() == block; ++to)
      rows.push_back(wanted[order[to]]);
    STOKER_RETURN_IF_ERROR(
        impl_->read_from_chunks(block, rows, std::span(order).subspan(from, to - from), out));
    from = to;
  }
  return {};
}

// Chunk offsets of a dataset for an index section, so that training needs no libhdf5.

namespace {

constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 26;

}  // namespace

Result<codec::ChunkedArray> Hdf5Dataset::chunked() const {
  using Layout = hdf5::Description::Layout;
  const hdf5::Description& description = impl_->description;
  const std::string& subject = impl_->subject;
  STOKER_RETURN_IF_ERROR(check_elements());
  if (description.layout == Layout::parts) return invalid("{}: is virtual", subject);
  if (description.layout == Layout::inline_ || description.shape.empty())
    return invalid("{}: is stored in the file's header", subject);
  if (description.layout == Layout::contiguous && description.offset == hdf5::kNoAddress)
    return invalid("{}: was never written", subject);
  codec::ChunkedArray array{.name = format("dataset '{}'", printable(description.path)),
                            .shape = description.shape,
                            .chunks = description.chunks,
                            .element_bytes = description.type.bytes,
                            .fill = description.fill,
                            .head = {},
                            .coder = nullptr,
                            .stored_chunks = {}};
  array.fill.resize(description.type.bytes);
  const std::size_t unit = description.order == codec::ByteOrder::big ? description.type.swap_unit() : 1;
  if (description.layout == Layout::contiguous) {
    constexpr std::uint64_t kPiece = 1u << 20;
    const std::uint64_t row = std::max<std::uint64_t>(1, impl_->stored_bytes(impl_->row_bytes));
    const std::uint64_t all = impl_->stored_bytes(impl_->bytes);
    const std::uint64_t rows =
        std::clamp<std::uint64_t>(kPiece / row, 1, std::max<std::uint64_t>(1, shape()[0]));
    array.chunks = description.shape;
    for (std::uint64_t& size : array.chunks) size = std::max<std::uint64_t>(1, size);
    array.chunks[0] = rows;
    for (std::uint64_t at = 0; at < all; at += rows * row)
      array.stored_chunks.push_back({description.offset + at, std::min(rows * row, all - at), 0});
    array.coder =
        description.member ? hdf5::chunk_coder({}, unit, description.member) : codec::plain_coder(unit);
    return array;
  }
  std::uint64_t chunks = 1;
  for (const std::uint64_t count : impl_->counts) {
    chunks = count > kMaxChunks ? kMaxChunks + 1 : std::min(kMaxChunks + 1, chunks * count);
  }
  if (chunks > kMaxChunks) return invalid("{}: has over {} chunks", subject, kMaxChunks);
  array.stored_chunks.resize(chunks);
  for (const hdf5::ChunkLocation& place : description.chunk_locations) {
    if (place.number >= chunks) return corrupt("{}: has a chunk {}", subject, place.number);
    array.stored_chunks[place.number] = {place.offset, place.bytes, place.skipped};
  }
  array.coder = hdf5::chunk_coder(description.filters, unit, description.member);
  return array;
}

Result<std::vector<Hdf5Dataset::VirtualPiece>> Hdf5Dataset::virtual_pieces() const {
  std::vector<VirtualPiece> pieces;
  if (impl_->description.layout != hdf5::Description::Layout::parts) return pieces;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < impl_->sources.size(); ++i) {
    const Impl::Source& source = impl_->sources[i];
    if (source.rows == 0) continue;
    if (source.first_row != next) break;
    next += source.rows;
    STOKER_ASSIGN_OR_RETURN(array, source.dataset->chunked());
    pieces.push_back({impl_->description.parts[i].file, source.first_row, source.rows, source.source_row,
                      std::move(array)});
  }
  if (next != rows()) return invalid("{}: is virtual, and row {} is in no file", impl_->subject, next);
  return pieces;
}

// Values of variable length: elements are references (bytes or items u32, heap address u64, object number
// u32) to values in heaps.

namespace {

constexpr std::uint64_t kMaxVarying = std::uint64_t{1} << 27;
constexpr std::uint64_t kValuesAtOnce = 1u << 16;
constexpr std::uint64_t kPieceOfHeaps = 1u << 20;

// The uncompressed pieces of the file that cover all values. Makes `places` relative to them.
codec::ChunkedArray heap_range(std::vector<codec::ValueArray::Range>& places, std::string name) {
  std::uint64_t begin = codec::StoredChunk::kMissing;
  std::uint64_t end = 0;
  for (const codec::ValueArray::Range& place : places) {
    if (place.bytes == 0) continue;
    begin = std::min(begin, place.begin);
    end = std::max(end, place.begin + place.bytes);
  }
  const std::uint64_t bytes = end == 0 ? 0 : end - begin;
  for (codec::ValueArray::Range& place : places) place.begin = place.bytes == 0 ? 0 : place.begin - begin;
  codec::ChunkedArray heaps{.name = std::move(name),
                            .shape = {bytes},
                            .chunks = {std::clamp<std::uint64_t>(bytes, 1, kPieceOfHeaps)},
                            .element_bytes = 1,
                            .fill = {std::byte{0}},
                            .head = {},
                            .coder = codec::plain_coder(1),
                            .stored_chunks = {}};
  for (std::uint64_t at = 0; at < bytes; at += kPieceOfHeaps)
    heaps.stored_chunks.push_back({begin + at, std::min(kPieceOfHeaps, bytes - at), 0});
  return heaps;
}

}  // namespace

Result<codec::ValueArray> Hdf5Dataset::values() const {
  constexpr std::uint64_t kReference = codec::ElementType::kReferenceBytes;
  const hdf5::Description& description = impl_->description;
  const std::string& subject = impl_->subject;
  if (description.type.kind != codec::ElementType::Kind::variable_length || description.shape.empty())
    return invalid("{}: has no variable-length values", subject);
  if (row_bytes() != kReference)
    return invalid("{}: has several values per row, which is not supported", subject);
  if (description.layout == hdf5::Description::Layout::parts)
    return invalid("{}: is virtual and of values of different lengths, which is not supported", subject);
  if (rows() > kMaxVarying)
    return invalid("{}: has {} values (at most {} are supported)", subject, rows(), kMaxVarying);
  const std::uint64_t item =
      description.type.letter == codec::ElementType::kNumbers ? size_of(description.type.item) : 1;
  STOKER_ASSIGN_OR_RETURN(heaps, hdf5::GlobalHeaps::open(impl_->file, description.heap_base, subject));
  codec::ValueArray values;
  values.order = description.value_order;
  std::vector<std::byte> references;
  for (std::uint64_t row = 0; row < rows(); row += kValuesAtOnce) {
    references.resize(std::min(kValuesAtOnce, rows() - row) * kReference);
    STOKER_RETURN_IF_ERROR(read_elements(row, references.size() / kReference, references));
    for (std::size_t at = 0; at < references.size(); at += kReference) {
      const std::uint64_t bytes = codec::load<std::uint32_t>(references, at) * item;
      codec::ValueArray::Range& place = values.places.emplace_back();
      if (bytes == 0) continue;
      STOKER_ASSIGN_OR_RETURN(object, heaps.find(codec::load<std::uint64_t>(references, at + 4),
                                                 codec::load<std::uint32_t>(references, at + 12)));
      if (bytes > object.bytes) {
        return corrupt("{}: value {} has {} bytes, its heap object has {}", subject, values.places.size() - 1,
                       bytes, object.bytes);
      }
      place = {object.offset, bytes};
    }
  }
  values.array = heap_range(values.places, format("values of dataset '{}'", printable(description.path)));
  return values;
}

namespace {

constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 32;

// Integers of any width as uint64; negative numbers become too large.
std::vector<std::uint64_t> to_uint64(std::span<const std::byte> bytes, const codec::ElementType& type) {
  std::vector<std::uint64_t> numbers(bytes.size() / type.bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::span<const std::byte> element = bytes.subspan(i * type.bytes, type.bytes);
    const bool is_negative = type.kind == codec::ElementType::Kind::signed_integer &&
                             (element.back() & std::byte{128}) != std::byte{0};
    if (is_negative) numbers[i] = ~std::uint64_t{0};
    std::memcpy(&numbers[i], element.data(), element.size());
  }
  return numbers;
}

}  // namespace

Result<Hdf5Ragged> Hdf5Ragged::open(std::unique_ptr<Hdf5Dataset> values, const Hdf5Dataset& index) {
  using Kind = codec::ElementType::Kind;
  const codec::ElementType& type = index.type();
  if (index.shape().size() != 1 ||
      (type.kind != Kind::signed_integer && type.kind != Kind::unsigned_integer)) {
    return invalid("index '{}': is not a list of integers", index.name());
  }
  if (index.rows() == 0 || index.rows() > kMaxSamples) {
    return invalid("index '{}': has {} numbers (1 to 4 294 967 296 are supported)", index.name(),
                   index.rows());
  }
  std::vector<std::byte> bytes(index.rows() * type.bytes);
  STOKER_RETURN_IF_ERROR(index.read_rows(0, index.rows(), bytes));
  std::vector<std::uint64_t> begin = to_uint64(bytes, type);
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (i > 0 && begin[i] < begin[i - 1]) {
      return corrupt("index '{}': number {} is {}, less than the {} before it", index.name(), i, begin[i],
                     begin[i - 1]);
    }
    if (begin[i] > values->rows()) {
      return corrupt("index '{}': number {} is {}, '{}' has {}", index.name(), i, begin[i], values->name(),
                     counted(values->rows(), "row"));
    }
  }
  return Hdf5Ragged(std::move(values), std::move(begin));
}

}  // namespace stoker::arrays
