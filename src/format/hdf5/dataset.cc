#include "format/hdf5/dataset.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/chunks/filters.h"
#include "format/hdf5/filters.h"
#include "format/hdf5/parts.h"

namespace stoker::formats {

using hdf5::ChunkPlace;
using hdf5::Description;

namespace {

constexpr ByteCount kOwnCache = 256_MiB;
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 31;
constexpr std::uint64_t kPieceBytes = 1u << 20;  // of a contiguous dataset, read at once
constexpr int kMostNesting = 1;                  // a virtual dataset's parts are no virtual ones

}  // namespace

Hdf5Dataset::Hdf5Dataset(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Hdf5Dataset::~Hdf5Dataset() { parts_->cache->forget(parts_->owner); }

const std::string& Hdf5Dataset::name() const { return parts_->about.path; }
const Extents& Hdf5Dataset::shape() const { return parts_->about.shape; }
const ElementType& Hdf5Dataset::type() const { return parts_->about.type; }
const Extents& Hdf5Dataset::chunks() const { return parts_->about.chunks; }
std::uint64_t Hdf5Dataset::row_bytes() const { return parts_->row_bytes; }

// Of values of different lengths only references lie where elements do.
Status Hdf5Dataset::check_elements() const {
  if (type().kind != ElementType::Kind::varying) return {};
  return invalid("{}: has values of different lengths", parts_->subject);
}

Result<std::uint64_t> Hdf5Dataset::run() const {
  using Layout = Description::Layout;
  const Description& about = parts_->about;
  RETURN_IF_ERROR(check_elements());
  if (!about.filters.empty())
    return invalid("{}: is compressed ({})", parts_->subject, printable(about.filters[0].name));
  if (about.member) return invalid("{}: lies between other members of its records", parts_->subject);
  if (about.layout == Layout::chunked) return invalid("{}: lies in chunks, each by itself", parts_->subject);
  if (about.layout == Layout::parts) return invalid("{}: is virtual", parts_->subject);
  if (about.layout == Layout::contiguous && about.offset == hdf5::kNoAddress)
    return invalid("{}: was never written", parts_->subject);
  if (about.layout != Layout::contiguous || (about.order == ByteOrder::big && about.type.swap_unit() > 1)) {
    return invalid("{}: is not stored as it is read", parts_->subject);
  }
  return about.offset;
}

// What libhdf5 said is held against the file itself.
Status Hdf5Dataset::Parts::prepare() {
  const std::span<const std::uint64_t> shape = about.shape;
  row_bytes = product(shape.empty() ? shape : shape.subspan(1), about.type.bytes).value_or(0);
  bytes = product(shape, about.type.bytes).value_or(0);
  no_strides = Extents(shape.size());
  OK_OR_RETURN(opened, File::open_read(about.file));
  file = std::move(opened);
  OK_OR_RETURN(size, file.size());
  const auto lies_inside = [&](std::uint64_t offset, std::uint64_t length) {
    return offset <= size && length <= size - offset;
  };
  if (about.layout == Description::Layout::inline_ && about.inline_bytes.size() != bytes) {
    return corrupt("{}: holds {} bytes, expected {}", subject, about.inline_bytes.size(), bytes);
  }
  if (about.layout == Description::Layout::contiguous && about.offset != hdf5::kNoAddress &&
      !lies_inside(about.offset, stored_bytes(bytes))) {
    return corrupt("{}: its {} bytes at {} lie beyond the end of the file", subject, stored_bytes(bytes),
                   about.offset);
  }
  if (about.layout != Description::Layout::chunked) return {};
  RETURN_IF_ERROR(hdf5::check_filters(about.filters, subject));
  chunk_bytes = product(about.chunks, about.type.bytes).value_or(kMostChunkBytes);
  if (chunk_bytes >= kMostChunkBytes || stored_bytes(chunk_bytes) >= kMostChunkBytes)
    return invalid("{}: a chunk has 2 GiB or more, which is not read", subject);
  chunk_strides = c_strides(about.chunks, about.type.bytes);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    counts.push_back(shape[d] / about.chunks[d] + (shape[d] % about.chunks[d] != 0));
  }
  for (const ChunkPlace& place : about.places) {
    if (!lies_inside(place.offset, place.bytes)) {
      return corrupt("{}: chunk {} lies beyond the end of the file", subject, place.number);
    }
  }
  return {};
}

Status Hdf5Dataset::Parts::add_sources(const Path& folder, const Hdf5Options& options, int nesting) {
  if (about.layout != Description::Layout::parts) return {};
  if (nesting == kMostNesting)
    return invalid("{}: is virtual and part of a virtual one, which is not read", subject);
  for (const hdf5::VirtualPart& part : about.parts) {
    const Path named = part.file;
    const bool is_same = part.file == ".";
    if (!is_same && options.others == OtherFiles::refuse) {
      return invalid("{}: is virtual: its rows lie in '{}' (which is not opened unless allowed)", subject,
                     printable(part.file));
    }
    if (!is_same && options.others == OtherFiles::beside && named != named.filename()) {
      return invalid(
          "{}: is virtual: its rows lie in '{}', in another folder (which is not opened unless allowed)",
          subject, printable(part.file));
    }
    const Path file_of_part = is_same ? Path(about.file) : named.is_absolute() ? named : folder / named;
    if (!path_exists(file_of_part)) {
      return unavailable("{}: is virtual: its rows lie in '{}', which is not there", subject,
                         printable(part.file))
          .cure("put {} beside {}", printable(part.file), about.file);
    }
    OK_OR_RETURN(opened, open_all(file_of_part, {part.dataset}, options, nesting + 1));
    Source source{part.first_row, part.source_row, part.rows, std::move(opened[0])};
    // Text is read as it lies there, and filled up as it is there.
    if (sources.empty()) about.type.text_end = source.dataset->type().text_end;
    RETURN_IF_ERROR(check_source(part, *source.dataset));
    sources.push_back(std::move(source));
  }
  return {};
}

// libhdf5 would convert elements, and fill rows that are not there.
Status Hdf5Dataset::Parts::check_source(const hdf5::VirtualPart& part, const Hdf5Dataset& source) const {
  const auto unread = [&](const std::string& what) {
    return invalid("{}: is virtual: '{}' in '{}' {}, which is not read", subject, printable(part.dataset),
                   printable(part.file), what);
  };
  if (source.type() != about.type)
    return unread(format("holds {} for {}", described(source.type()), described(about.type)));
  if (source.row_bytes() != row_bytes)
    return unread(format("has rows of {} bytes for {}", source.row_bytes(), row_bytes));
  if (part.source_row > source.rows() || part.rows > source.rows() - part.source_row)
    return unread(
        format("has {} of the {} rows that are taken of it", source.rows(), part.source_row + part.rows));
  return {};
}

Result<std::vector<std::unique_ptr<Hdf5Dataset>>> Hdf5Dataset::Parts::open_all(
    const Path& file, const std::vector<std::string>& names, const Hdf5Options& options, int nesting) {
  const auto links =
      options.others == OtherFiles::anywhere ? hdf5::ExternalLinks::follow : hdf5::ExternalLinks::refuse;
  OK_OR_RETURN(described, hdf5::describe(file, names, links, Deadline::after(options.patience)));
  std::vector<std::unique_ptr<Hdf5Dataset>> datasets;
  for (Description& about : described) {
    auto parts = std::make_unique<Parts>();
    parts->subject = format("{}: dataset '{}'", about.file, printable(about.path));
    parts->about = std::move(about);
    parts->cache = options.cache;
    parts->owner = options.cache->new_owner();
    RETURN_IF_ERROR(parts->prepare());
    RETURN_IF_ERROR(parts->add_sources(file.parent_path(), options, nesting));
    datasets.push_back(std::unique_ptr<Hdf5Dataset>(new Hdf5Dataset(std::move(parts))));
  }
  return datasets;
}

Result<std::vector<std::string>> list_hdf5(const Path& file, const Hdf5Options& options) {
  return hdf5::list_datasets(file, Deadline::after(options.patience));
}

Result<std::vector<std::unique_ptr<Hdf5Dataset>>> Hdf5Dataset::open(const Path& file,
                                                                    const std::vector<std::string>& names,
                                                                    const Hdf5Options& options) {
  Hdf5Options with_cache = options;
  if (!with_cache.cache) with_cache.cache = std::make_shared<ChunkCache>(kOwnCache);
  return Parts::open_all(file, names, with_cache, 0);
}

Result<std::unique_ptr<Hdf5Dataset>> Hdf5Dataset::open(const Path& file, std::string_view name,
                                                       const Hdf5Options& options) {
  OK_OR_RETURN(datasets, open(file, std::vector<std::string>{std::string(name)}, options));
  return std::move(datasets[0]);
}

// A chunk's elements; empty where it was never written.
Result<Buffer> Hdf5Dataset::Parts::load(std::uint64_t number) const {
  const auto place = std::lower_bound(about.places.begin(), about.places.end(), number,
                                      [](const ChunkPlace& p, std::uint64_t n) { return p.number < n; });
  if (place == about.places.end() || place->number != number) return Buffer();
  const std::string where = format("{}: chunk {}", subject, number);
  // What a filter adds to data it cannot pack is little.
  const std::uint64_t whole_bytes = stored_bytes(chunk_bytes);
  if (place->bytes > whole_bytes + whole_bytes / 8 + (64u << 10)) {
    return corrupt("{}: has {} bytes for {} elements' bytes", where, place->bytes, whole_bytes);
  }
  Buffer stored(place->bytes);
  if (stored.bytes().size() != place->bytes)
    return unavailable("{}: no memory for {} bytes", where, place->bytes);
  RETURN_IF_ERROR(file.read_at(place->offset, stored.bytes()));
  const bool is_plain = about.filters.empty() && stored.bytes().size() == whole_bytes;
  Buffer whole;
  if (is_plain) {
    whole = std::move(stored);
  } else {
    OK_OR_RETURN(unpacked,
                 hdf5::undo_filters(about.filters, place->skipped, whole_bytes, stored.bytes(), where));
    whole = std::move(unpacked);
  }
  return elements_of(std::move(whole), chunk_bytes, where);
}

// The elements' bytes of stored ones, in this machine's order.
Result<Buffer> Hdf5Dataset::Parts::elements_of(Buffer whole, std::uint64_t size,
                                               std::string_view where) const {
  Buffer elements;
  if (about.member) {
    elements = Buffer(size);
    if (elements.bytes().size() != size) return unavailable("{}: no memory for {} bytes", where, size);
    about.member->pick(whole.bytes(), elements.bytes());
  } else {
    elements = std::move(whole);
  }
  if (about.order == ByteOrder::big) swap_bytes(elements.bytes(), about.type.swap_unit());
  return elements;
}

// Rows of the chunks of one block along the first dimension: out[to[i]] is row rows[i].
Status Hdf5Dataset::Parts::read_from_chunks(std::uint64_t block, std::span<const std::uint64_t> rows,
                                            std::span<const std::size_t> to, std::span<std::byte> out) const {
  const Extents& shape = about.shape;
  Extents at(shape.size());
  at[0] = block;
  Extents row_shape = shape;
  row_shape[0] = 1;
  const Extents strides = c_strides(row_shape, about.type.bytes);
  Extents size(shape.size(), 1);
  for (;;) {
    std::uint64_t number = 0;
    std::uint64_t column = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      number = number * counts[d] + at[d];
      if (d == 0) continue;
      size[d] = std::min(about.chunks[d], shape[d] - at[d] * about.chunks[d]);
      column += at[d] * about.chunks[d] * strides[d];
    }
    OK_OR_RETURN(chunk,
                 cache->get({owner, number}, [&] { return load(number); }));  // stays while it is copied
    const std::span<const std::byte> elements = chunk->bytes();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::byte* target = out.data() + to[i] * row_bytes + column;
      if (elements.empty()) {
        copy_box({about.fill.data(), no_strides}, {target, strides}, size, about.type.bytes);
      } else {
        const std::uint64_t row = rows[i] - block * about.chunks[0];
        copy_box({elements.data() + row * chunk_strides[0], chunk_strides}, {target, strides}, size,
                 about.type.bytes);
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

// Bytes of a dataset in one piece, through the cache in pieces of about a mebibyte of what is stored.
Status Hdf5Dataset::Parts::read_piece(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t piece_bytes =
      about.member
          ? std::max<std::uint64_t>(1, kPieceBytes / about.member->record_bytes) * about.member->bytes
          : kPieceBytes;
  while (!out.empty()) {
    const std::uint64_t piece = offset / piece_bytes;
    const std::uint64_t begin = piece * piece_bytes;
    const auto read_it = [&]() -> Result<Buffer> {
      const std::uint64_t size = std::min(piece_bytes, bytes - begin);
      Buffer whole(stored_bytes(size));
      if (whole.bytes().empty())
        return unavailable("{}: no memory for {} bytes", subject, stored_bytes(size));
      RETURN_IF_ERROR(file.read_at(about.offset + stored_bytes(begin), whole.bytes()));
      return elements_of(std::move(whole), size, subject);
    };
    OK_OR_RETURN(held, cache->get({owner, piece}, read_it));
    const std::uint64_t within = offset - begin;
    const std::size_t now = std::min<std::uint64_t>(out.size(), held->bytes().size() - within);
    std::memcpy(out.data(), held->bytes().data() + within, now);
    out = out.subspan(now);
    offset += now;
  }
  return {};
}

Status Hdf5Dataset::Parts::read_contiguous(std::uint64_t first, std::span<std::byte> out) const {
  const std::uint64_t offset = first * row_bytes;
  if (about.layout == Description::Layout::inline_) {
    std::memcpy(out.data(), about.inline_bytes.data() + offset, out.size());
  } else if (about.offset == hdf5::kNoAddress) {
    fill_with(about.fill, out);
  } else if (out.size() >= kPieceBytes && !about.member) {
    RETURN_IF_ERROR(file.read_at(about.offset + offset, out));
  } else {
    return read_piece(offset, out);
  }
  const bool is_stored = about.layout == Description::Layout::inline_ || about.offset != hdf5::kNoAddress;
  if (is_stored && about.order == ByteOrder::big) swap_bytes(out, about.type.swap_unit());
  return {};
}

Status Hdf5Dataset::Parts::read_sources(std::uint64_t first, std::uint64_t count,
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
    if (at < begin) {  // no part has these
      fill_with(about.fill, part(begin - at));
      at = begin;
      continue;
    }
    const std::uint64_t rows = std::min(end, source->first_row + source->rows) - at;
    RETURN_IF_ERROR(
        source->dataset->read_rows(source->source_row + (at - source->first_row), rows, part(rows)));
    at += rows;
  }
  return {};
}

Status Hdf5Dataset::read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  RETURN_IF_ERROR(check_elements());
  return read_elements(first, count, out);
}

Status Hdf5Dataset::read_elements(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  const Parts& parts = *parts_;
  if (first > rows() || count > rows() - first) {
    return invalid("{}: has {} rows, {} from {} on were asked for", parts.subject, rows(), count, first);
  }
  CHECK(out.size() == count * parts.row_bytes);
  if (out.empty()) return {};
  if (parts.about.layout == Description::Layout::parts) return parts.read_sources(first, count, out);
  if (parts.about.layout != Description::Layout::chunked) return parts.read_contiguous(first, out);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t block = (first + done) / rows_per_chunk();
    const std::uint64_t now = std::min(count - done, (block + 1) * rows_per_chunk() - (first + done));
    std::vector<std::uint64_t> rows(now);
    std::vector<std::size_t> to(now);
    std::iota(rows.begin(), rows.end(), first + done);
    std::iota(to.begin(), to.end(), done);
    RETURN_IF_ERROR(parts.read_from_chunks(block, rows, to, out));
    done += now;
  }
  return {};
}

Status Hdf5Dataset::read_rows(std::span<const std::uint64_t> wanted, std::span<std::byte> out) const {
  CHECK(out.size() == wanted.size() * row_bytes());
  RETURN_IF_ERROR(check_elements());
  if (wanted.empty()) return {};
  const std::uint64_t last = *std::max_element(wanted.begin(), wanted.end());
  if (last >= rows()) return invalid("{}: has {} rows, row {} was asked for", parts_->subject, rows(), last);
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  if (parts_->about.layout != Description::Layout::chunked) {
    for (const std::size_t i : order) {
      RETURN_IF_ERROR(read_rows(wanted[i], 1, out.subspan(i * row_bytes(), row_bytes())));
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
    RETURN_IF_ERROR(parts_->read_from_chunks(block, rows, std::span(order).subspan(from, to - from), out));
    from = to;
  }
  return {};
}

}  // namespace stoker::formats
