#include "arrays/numpy/npy_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "archive/decompress_file.h"
#include "archive/zip.h"
#include "arrays/numpy/npy_chunks.h"
#include "arrays/zarr/data_type.h"
#include "codec/filters/filters.h"
#include "codec/npy.h"
#include "stoker/text.h"

namespace stoker::arrays {

namespace {

using codec::ByteOrder;
using codec::ChunkedArray;
using codec::ElementType;
using codec::Extents;
using codec::ShardPart;
using codec::ValueArray;
using Store = SampleArrays::Store;

constexpr std::uint64_t kNotInPlace = ~std::uint64_t{0};

// Where members are unpacked; null for reading in place.
struct UnpackTarget {
  const Path& scratch;
  Progress& progress;
};

// A .npy file, possibly inside an archive.
struct Npy {
  std::string subject;
  std::shared_ptr<const File> file;  // shared by the members of an archive
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t base = kNotInPlace;  // offset of `file` in the concatenated parts
};

// A parsed .npy file.
struct Elements {
  Npy npy;
  ElementType type;
  ByteOrder order = ByteOrder::little;
  Extents shape;
  bool is_fortran = false;
  std::uint64_t begin = 0;  // in the file

  std::size_t swap_unit() const { return order == ByteOrder::big ? type.swap_unit() : 1; }
  std::uint64_t row_bytes() const { return *codec::product(std::span(shape).subspan(1), type.bytes); }
};

Result<Elements> open_elements(const Npy& npy) {
  Elements elements;
  elements.npy = npy;
  std::vector<std::byte> beginning(std::min<std::uint64_t>(npy.bytes, codec::kMaxNpyHeaderBytes));
  STOKER_RETURN_IF_ERROR(npy.file->read_at(npy.begin, beginning));
  const auto layout = codec::read_npy_layout(beginning);
  if (!layout.ok()) return layout.status().with_context(npy.subject);
  const auto type = arrays::parse_zarr_v2_type(layout->type);
  if (!type.ok()) return type.status().with_context(npy.subject);
  elements.type = type->type;
  elements.order = type->order;
  elements.shape.assign(layout->shape.begin(), layout->shape.end());
  elements.is_fortran = layout->is_fortran;
  elements.begin = npy.begin + layout->data_offset;
  const std::uint64_t available = npy.bytes - layout->data_offset;
  const auto bytes = codec::product(elements.shape, elements.type.bytes);
  if (!bytes || *bytes > available)
    return corrupt("{}: NPY: {} bytes of elements, but its header declares more", npy.subject, available);
  return elements;
}

// Rows of an array in Fortran order: element (row, i, j, ...) of N rows is at row + N * (i + I * (j + ...)),
// so the elements of all rows at one position (i, j, ...) are contiguous.
Status read_fortran_rows(const Elements& elements, std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) {
  const std::uint64_t size = elements.type.bytes;
  const std::uint64_t row_bytes = elements.row_bytes();
  const Extents row(elements.shape.begin() + 1, elements.shape.end());
  const Extents strides = codec::c_strides(row, size);
  Extents at(row.size());
  std::vector<std::byte> run(count * size);
  for (std::uint64_t place = 0; place < row_bytes / size; ++place) {
    const std::uint64_t offset = (place * elements.shape[0] + first) * size;
    STOKER_RETURN_IF_ERROR(elements.npy.file->read_at(elements.begin + offset, run));
    std::uint64_t to = 0;
    for (std::size_t d = 0; d < at.size(); ++d) to += at[d] * strides[d];
    for (std::uint64_t i = 0; i < count; ++i)
      std::copy_n(run.data() + i * size, size, out.data() + i * row_bytes + to);
    for (std::size_t d = 0; d < at.size() && ++at[d] == row[d]; ++d) at[d] = 0;
  }
  return {};
}

class NpyStore final : public Store {
 public:
  explicit NpyStore(const Path& folder) : folder_(folder) {}

  Status add(const NpySet& set, const UnpackTarget* unpacking) {
    for (const NpySet::Array& array : set.arrays) {
      names_.push_back(array.name);
      Result<Npy> npy = array.member.empty() ? open_file(array.file) : open_member(array, unpacking);
      if (!npy.ok()) return npy.status();
      files_[array.name] = std::move(*npy);
    }
    return {};
  }

  Status open_arrays(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      STOKER_ASSIGN_OR_RETURN(elements, open_elements(files_.at(name)));
      arrays_[name] = std::move(elements);
    }
    return {};
  }
  const Extents& shape(const std::string& name) const override { return arrays_.at(name).shape; }
  const ElementType& type(const std::string& name) const override { return arrays_.at(name).type; }

  Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                   std::span<std::byte> out) const override {
    const Elements& elements = arrays_.at(name);
    if (elements.is_fortran) {
      STOKER_RETURN_IF_ERROR(read_fortran_rows(elements, first, count, out));
    } else {
      STOKER_RETURN_IF_ERROR(elements.npy.file->read_at(elements.begin + first * elements.row_bytes(), out));
    }
    if (elements.swap_unit() > 1) codec::swap_bytes(out, elements.swap_unit());
    return {};
  }

  Result<std::uint64_t> contiguous_offset(const std::string& name) const override {
    return invalid("{}: is not an array of bytes", arrays_.at(name).npy.subject);
  }
  Result<ValueArray> values(const std::string& name) const override {
    return invalid("{}: has no values of variable length", arrays_.at(name).npy.subject);
  }

  Result<ChunkedArray> chunked(const std::string& name) const override {
    const Elements& elements = arrays_.at(name);
    const std::string& subject = elements.npy.subject;
    if (elements.npy.base == kNotInPlace) return invalid("{}: is compressed", subject);
    if (elements.is_fortran) {
      return invalid("{}: is in Fortran order, so its rows are not contiguous", subject)
          .cure("stoker data convert {} OUT", shell_quote(folder_.string()));
    }
    return npy_chunks({.name = name,
                       .shape = elements.shape,
                       .element_bytes = elements.type.bytes,
                       .swap_unit = elements.swap_unit(),
                       .begin = elements.npy.base + elements.begin},
                      subject);
  }

  Result<std::vector<ShardPart>> parts() const override {
    return parts_.size() == 1 ? std::vector<ShardPart>() : parts_;
  }

 private:
  Result<Npy> open_file(const std::string& name) {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_read(folder_ / name));
    STOKER_ASSIGN_OR_RETURN(size, opened.size());
    Npy npy{.subject = printable((folder_ / name).string()),
            .file = std::make_shared<const File>(std::move(opened)),
            .bytes = size,
            .base = end_};
    parts_.push_back({name, size});
    end_ += size;
    return npy;
  }

  Result<Npy> open_member(const NpySet::Array& array, const UnpackTarget* unpacking) {
    const Path path = folder_ / array.file;
    if (!archive_) {
      STOKER_ASSIGN_OR_RETURN(opened, archive::open_zip_file(path));
      archive_ = std::move(opened);
      parts_.push_back({array.file, 0});
    }
    const std::string subject = format("{}: member '{}'", printable(path.string()), printable(array.member));
    const auto& members = archive_->zip.members();
    const auto member = std::ranges::find(members, array.member, &archive::ZipMember::name);
    if (member == members.end()) return not_found("{}: has disappeared", subject);
    if (!member->is_readable()) return invalid("{}: is encrypted or not compressed with deflate", subject);
    if (member->method == 0) {
      // Copied rows are not verified later.
      if (unpacking != nullptr) STOKER_RETURN_IF_ERROR(unpack(*member, subject, *unpacking, nullptr));
      STOKER_ASSIGN_OR_RETURN(begin, archive_->zip.data_offset(*member));
      return Npy{
          .subject = subject, .file = archive_->file, .begin = begin, .bytes = member->bytes, .base = 0};
    }
    if (unpacking == nullptr) {
      return invalid("{}: is compressed, so its rows cannot be read in place", subject)
          .cure("stoker data convert {} OUT", shell_quote(folder_.string()));
    }
    return unpacked(*member, subject, *unpacking);
  }

  // Unpacks a member to `out`, if not null, and checks its CRC-32.
  Status unpack(const archive::ZipMember& member, const std::string& subject, const UnpackTarget& unpacking,
                File* out) const {
    return archive_->zip.unpack(member, [&](std::span<const std::byte> piece) -> Status {
      if (unpacking.progress.stop_requested()) return cancelled("{}: interrupted while reading", subject);
      return out == nullptr ? Status() : out->write(piece);
    });
  }

  Result<Npy> unpacked(const archive::ZipMember& member, const std::string& subject,
                       const UnpackTarget& unpacking) const {
    STOKER_ASSIGN_OR_RETURN(free, free_space(unpacking.scratch));
    if (member.bytes > free.value)
      return no_space("{}: unpacks to {}, but only {} are free", subject, rounded({member.bytes}),
                      rounded(free));
    STOKER_ASSIGN_OR_RETURN(out, archive::create_unnamed_file(unpacking.scratch));
    STOKER_RETURN_IF_ERROR(unpack(member, subject, unpacking, &out));
    return Npy{
        .subject = subject, .file = std::make_shared<const File>(std::move(out)), .bytes = member.bytes};
  }

  const Path folder_;
  std::optional<archive::ZipFile> archive_;
  std::map<std::string, Npy> files_;
  std::map<std::string, Elements> arrays_;
  std::vector<ShardPart> parts_;
  std::uint64_t end_ = 0;
};

Result<std::unique_ptr<Store>> open_store(const Path& folder, const NpySet& set,
                                          const UnpackTarget* unpacking) {
  auto store = std::make_unique<NpyStore>(folder);
  STOKER_RETURN_IF_ERROR(store->add(set, unpacking));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace

Result<std::unique_ptr<Store>> open_npy_store(const Path& folder, const NpySet& set) {
  return open_store(folder, set, nullptr);
}

Result<std::unique_ptr<Store>> unpack_npy_store(const Path& folder, const NpySet& set, const Path& scratch,
                                                Progress& progress) {
  const UnpackTarget unpacking{scratch, progress};
  return open_store(folder, set, &unpacking);
}

}  // namespace stoker::arrays
