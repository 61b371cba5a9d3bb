// How a file is committed:
//   1. create .<name>.<random>.tmp in the same folder
//   2. libhdf5 writes the compressed chunks
//   3. finish() checks that every block was written, lets libhdf5 close the file, and syncs it
//   4. rename to the final name                     <- the file exists from here on
//   5. sync the folder
// A crash before 4 leaves a file that readers ignore.
#include "arrays/hdf5/writer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "arrays/hdf5/api.h"
#include "base/language/counted.h"
#include "base/thread.h"
#include "codec/chunks/parallel.h"
#include "codec/filters/filters.h"

namespace stoker::arrays {

using hdf5::Api;
using hdf5::Handle;
using hdf5::Id;
using hdf5::kDefault;

namespace {

constexpr std::uint64_t kChunkTarget = 1u << 20;
constexpr std::uint64_t kMaxChunkBytes = (std::uint64_t{1} << 32) - 1;  // HDF5's own limit

Status failed(const Api& h5, std::string_view subject) {
  return unavailable("{}: libhdf5 cannot write it ({})", subject, h5.last_error());
}

// The file's type of these elements; the caller closes it. -1 if HDF5 has no common type.
Id make_type(const Api& h5, const codec::ElementType& type) {
  using Kind = codec::ElementType::Kind;
  const Id signed_types[] = {*h5.H5T_STD_I8LE_g, *h5.H5T_STD_I16LE_g, *h5.H5T_STD_I32LE_g,
                             *h5.H5T_STD_I64LE_g};
  const Id unsigned_types[] = {*h5.H5T_STD_U8LE_g, *h5.H5T_STD_U16LE_g, *h5.H5T_STD_U32LE_g,
                               *h5.H5T_STD_U64LE_g};
  const std::size_t width = type.bytes == 1 ? 0 : type.bytes == 2 ? 1 : type.bytes == 4 ? 2 : 3;
  const auto floating = [&](std::uint32_t bytes) {
    const Id copy = h5.H5Tcopy(bytes == 8 ? *h5.H5T_IEEE_F64LE_g : *h5.H5T_IEEE_F32LE_g);
    if (bytes == 2) {
      h5.H5Tset_fields(copy, 15, 10, 5, 0, 10);
      h5.H5Tset_size(copy, 2);
      h5.H5Tset_ebias(copy, 15);
    }
    return copy;
  };
  switch (type.kind) {
    case Kind::signed_integer:
      return h5.H5Tcopy(signed_types[width]);
    case Kind::unsigned_integer:
      return h5.H5Tcopy(unsigned_types[width]);
    case Kind::floating:
      return floating(type.bytes);
    case Kind::boolean: {  // as h5py has it
      const Id truth = h5.H5Tenum_create(*h5.H5T_STD_I8LE_g);
      const std::int8_t values[] = {0, 1};
      h5.H5Tenum_insert(truth, "FALSE", &values[0]);
      h5.H5Tenum_insert(truth, "TRUE", &values[1]);
      return truth;
    }
    case Kind::complex: {
      const Handle half(floating(type.bytes / 2), h5.H5Tclose);
      const Id both = h5.H5Tcreate(static_cast<int>(hdf5::TypeClass::compound), type.bytes);
      h5.H5Tinsert(both, "r", 0, half.get());
      h5.H5Tinsert(both, "i", type.bytes / 2, half.get());
      return both;
    }
    case Kind::bytes: {
      if (type.letter != 'S') {
        const Id opaque = h5.H5Tcreate(static_cast<int>(hdf5::TypeClass::opaque), type.bytes);
        h5.H5Tset_tag(opaque, "");
        return opaque;
      }
      constexpr int kNullPadded = 1;
      const Id text = h5.H5Tcopy(*h5.H5T_C_S1_g);
      h5.H5Tset_size(text, type.bytes);
      h5.H5Tset_strpad(text, kNullPadded);
      return text;
    }
    case Kind::bfloat:
    case Kind::text:
    case Kind::time:
    case Kind::variable_length:
      break;
  }
  return -1;
}

Status check(const Hdf5DatasetSpec& spec) {
  const std::string subject = format("dataset '{}'", printable(spec.path));
  if (spec.path.empty() || spec.path.find('\0') != std::string::npos)
    return invalid("{}: is not a valid name", subject);
  if (spec.shape.empty() || spec.shape.size() > codec::kMaxDimensions ||
      spec.chunks.size() != spec.shape.size()) {
    return invalid("{}: has {} dimensions and chunks of {}", subject, spec.shape.size(), spec.chunks.size());
  }
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    if (spec.chunks[d] == 0) return invalid("{}: a chunk's size is 0", subject);
  }
  const std::optional<std::uint64_t> chunk = codec::product(spec.chunks, spec.type.bytes);
  if (!chunk || *chunk > kMaxChunkBytes) return invalid("{}: a chunk has 4 GiB or more", subject);
  if (!codec::product(spec.shape, spec.type.bytes)) return invalid("{}: is too large", subject);
  if (spec.deflate_level && (*spec.deflate_level < 0 || *spec.deflate_level > 9)) {
    return invalid("{}: DEFLATE has no level {} (0 to 9)", subject, *spec.deflate_level);
  }
  return {};
}

std::vector<hdf5::Size> sizes_of(const codec::Extents& extents) { return {extents.begin(), extents.end()}; }

Path pending_name(const Path& file) {
  return file.parent_path() / format(".{}.{}.tmp", file.filename().string(), random_name());
}

}  // namespace

struct Hdf5Writer::Impl {
  struct Target {
    Hdf5DatasetSpec spec;
    codec::Extents counts;
    Id id = -1;
    std::vector<bool> has_block;
  };

  const Api* h5 = nullptr;
  Path file;
  Path pending;
  Id id = -1;
  Mutex mutex;  // before hdf5_mutex() where both are taken
  std::vector<Target> targets;
  bool is_finished = false;

  Status begin();
  Status add(Target& target);
  Result<std::string> pack(const Target& target, std::span<const std::byte> rows,
                           const codec::Extents& at) const;
};

codec::Extents hdf5_chunks(std::span<const std::uint64_t> shape, std::uint64_t element_bytes) {
  codec::Extents chunks(shape.begin(), shape.end());
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    const std::uint64_t rest =
        codec::product(shape.subspan(d + 1), element_bytes).value_or(~std::uint64_t{0});
    const std::uint64_t fit = kChunkTarget / std::max<std::uint64_t>(1, rest);
    chunks[d] = std::clamp<std::uint64_t>(fit, 1, std::max<std::uint64_t>(1, shape[d]));
    if (rest <= kChunkTarget) break;
  }
  for (std::uint64_t& size : chunks) size = std::max<std::uint64_t>(1, size);
  return chunks;
}

Hdf5Writer::Hdf5Writer(std::unique_ptr<Impl> parts) : impl_(std::move(parts)) {}

Hdf5Writer::~Hdf5Writer() {
  if (impl_->is_finished) return;
  {
    MutexLock lock(hdf5::hdf5_mutex());
    for (const Impl::Target& target : impl_->targets) {
      if (target.id >= 0) impl_->h5->H5Dclose(target.id);
    }
    if (impl_->id >= 0) impl_->h5->H5Fclose(impl_->id);
  }
  remove_file(impl_->pending).ok();
}

Result<std::unique_ptr<Hdf5Writer>> Hdf5Writer::create(const Path& file,
                                                       std::vector<Hdf5DatasetSpec> datasets) {
  auto parts = std::make_unique<Impl>();
  for (Hdf5DatasetSpec& spec : datasets) {
    STOKER_RETURN_IF_ERROR(check(spec));
    Impl::Target target;
    for (std::size_t d = 0; d < spec.shape.size(); ++d) {
      target.counts.push_back(spec.shape[d] / spec.chunks[d] + (spec.shape[d] % spec.chunks[d] != 0));
    }
    if (codec::product(spec.shape) == 0) target.counts[0] = 0;
    if (spec.type.bytes == 1) spec.is_shuffled = false;
    target.has_block.resize(target.counts[0]);
    target.spec = std::move(spec);
    parts->targets.push_back(std::move(target));
  }
  STOKER_ASSIGN_OR_RETURN(h5, hdf5::api());
  parts->h5 = h5;
  parts->file = file;
  parts->pending = pending_name(file);
  std::unique_ptr<Hdf5Writer> writer(new Hdf5Writer(std::move(parts)));
  STOKER_RETURN_IF_ERROR(writer->impl_->begin());
  return writer;
}

Status Hdf5Writer::Impl::begin() {
  STOKER_RETURN_IF_ERROR(File::create_new(pending).status());  // a full disk or a missing folder in our words
  constexpr unsigned kTruncate = 2;
  MutexLock lock(hdf5::hdf5_mutex());
  if (h5->H5open() < 0) return unavailable("HDF5: {} does not start", h5->library);
  h5->H5Eset_auto2(kDefault, nullptr, nullptr);
  id = h5->H5Fcreate(pending.c_str(), kTruncate, kDefault, kDefault);
  if (id < 0) return failed(*h5, file.string());
  for (Target& target : targets) STOKER_RETURN_IF_ERROR(add(target));
  return {};
}

// Under hdf5_mutex().
Status Hdf5Writer::Impl::add(Target& target) {
  const Hdf5DatasetSpec& spec = target.spec;
  const std::vector<hdf5::Size> shape = sizes_of(spec.shape);
  const std::vector<hdf5::Size> chunks = sizes_of(spec.chunks);
  const int dimensions = static_cast<int>(shape.size());
  const Handle type(make_type(*h5, spec.type), h5->H5Tclose);
  if (!type.is_open())
    return invalid("dataset '{}': HDF5 has no type for its elements", printable(spec.path));
  const Handle space(h5->H5Screate_simple(dimensions, shape.data(), nullptr), h5->H5Sclose);
  const Handle made(h5->H5Pcreate(*h5->H5P_CLS_DATASET_CREATE_ID_g), h5->H5Pclose);
  const Handle link(h5->H5Pcreate(*h5->H5P_CLS_LINK_CREATE_ID_g), h5->H5Pclose);
  h5->H5Pset_create_intermediate_group(link.get(), 1);
  bool is_ok = h5->H5Pset_chunk(made.get(), dimensions, chunks.data()) >= 0;
  if (spec.deflate_level && spec.is_shuffled) is_ok &= h5->H5Pset_shuffle(made.get()) >= 0;
  if (spec.deflate_level)
    is_ok &= h5->H5Pset_deflate(made.get(), static_cast<unsigned>(*spec.deflate_level)) >= 0;
  if (!is_ok) return failed(*h5, format("dataset '{}'", printable(spec.path)));
  target.id =
      h5->H5Dcreate2(id, spec.path.c_str(), type.get(), space.get(), link.get(), made.get(), kDefault);
  return target.id < 0 ? failed(*h5, format("dataset '{}'", printable(spec.path))) : Status();
}

std::uint64_t Hdf5Writer::blocks(std::size_t dataset) const { return impl_->targets[dataset].counts[0]; }
std::uint64_t Hdf5Writer::rows_per_block(std::size_t dataset) const {
  return impl_->targets[dataset].spec.chunks[0];
}
std::uint64_t Hdf5Writer::rows_of(std::size_t dataset, std::uint64_t block) const {
  const Hdf5DatasetSpec& spec = impl_->targets[dataset].spec;
  return std::min(spec.chunks[0], spec.shape[0] - block * spec.chunks[0]);
}

// The chunk at that place of the grid; zeros beyond the dataset's edge.
Result<std::string> Hdf5Writer::Impl::pack(const Target& target, std::span<const std::byte> rows,
                                           const codec::Extents& at) const {
  const Hdf5DatasetSpec& spec = target.spec;
  const std::size_t bytes = spec.type.bytes;
  codec::Extents rows_shape = spec.shape;
  rows_shape[0] = std::min(spec.chunks[0], spec.shape[0] - at[0] * spec.chunks[0]);
  const codec::Extents from = codec::c_strides(rows_shape, bytes);
  codec::Extents size = spec.chunks;
  std::uint64_t offset = 0;
  for (std::size_t d = 0; d < size.size(); ++d) {
    const std::uint64_t begin = d == 0 ? 0 : at[d] * spec.chunks[d];
    size[d] = std::min(spec.chunks[d], rows_shape[d] - begin);
    offset += begin * from[d];
  }
  std::string elements(*codec::product(spec.chunks, bytes), '\0');
  const std::span<std::byte> chunk = std::as_writable_bytes(std::span(elements));
  codec::copy_box({rows.data() + offset, from}, {chunk.data(), codec::c_strides(spec.chunks, bytes)}, size,
                  bytes);
  if (!spec.deflate_level) return elements;
  if (spec.is_shuffled) {
    std::string shuffled(elements.size(), '\0');
    codec::shuffle_bytes(chunk, std::as_writable_bytes(std::span(shuffled)), bytes);
    elements = std::move(shuffled);
  }
  return deflate(codec::Deflate::zlib, std::as_bytes(std::span(elements)), *spec.deflate_level);
}

Status Hdf5Writer::write_block(std::size_t dataset, std::uint64_t block, std::span<const std::byte> rows,
                               std::size_t threads) {
  Impl::Target& target = impl_->targets[dataset];
  STOKER_CHECK(block < target.counts[0]);
  const codec::Extents inside(target.counts.begin() + 1, target.counts.end());
  const std::uint64_t count = *codec::product(inside);
  Status status = codec::parallel_for(threads, count, [&](std::size_t i) -> Status {
    codec::Extents at(target.counts.size());
    at[0] = block;
    for (std::size_t d = at.size() - 1, rest = i; d > 0; --d) {
      at[d] = rest % target.counts[d];
      rest /= target.counts[d];
    }
    STOKER_ASSIGN_OR_RETURN(packed, impl_->pack(target, rows, at));
    std::vector<hdf5::Size> offset;
    for (std::size_t d = 0; d < at.size(); ++d) offset.push_back(at[d] * target.spec.chunks[d]);
    MutexLock lock(hdf5::hdf5_mutex());
    if (impl_->h5->H5Dwrite_chunk(target.id, kDefault, 0, offset.data(), packed.size(), packed.data()) < 0) {
      return failed(*impl_->h5, impl_->file.string());
    }
    return {};
  });
  STOKER_RETURN_IF_ERROR(status);
  MutexLock lock(impl_->mutex);
  target.has_block[block] = true;
  return {};
}

Status Hdf5Writer::finish() {
  Impl& parts = *impl_;
  for (const Impl::Target& target : parts.targets) {
    const auto missing = std::find(target.has_block.begin(), target.has_block.end(), false);
    if (missing != target.has_block.end()) {
      return invalid("{}: dataset '{}': block {} of {} was not written", parts.file,
                     printable(target.spec.path), missing - target.has_block.begin() + 1, target.counts[0]);
    }
  }
  {
    MutexLock lock(hdf5::hdf5_mutex());
    bool is_ok = true;
    for (Impl::Target& target : parts.targets) is_ok &= parts.h5->H5Dclose(std::exchange(target.id, -1)) >= 0;
    is_ok &= parts.h5->H5Fclose(std::exchange(parts.id, -1)) >= 0;
    if (!is_ok) return failed(*parts.h5, parts.file.string());
  }
  STOKER_ASSIGN_OR_RETURN(written, File::open_read_write(parts.pending));
  STOKER_RETURN_IF_ERROR(written.sync());
  STOKER_RETURN_IF_ERROR(rename_path(parts.pending, parts.file));
  parts.is_finished = true;
  const Path folder = parts.file.parent_path();
  return sync_directory(folder.empty() ? Path(".") : folder);
}

namespace {

Status add_virtual(const Api& h5, Id file, const Hdf5DatasetSpec& spec, std::span<const Hdf5Part> parts) {
  const int dimensions = static_cast<int>(spec.shape.size());
  const std::vector<hdf5::Size> shape = sizes_of(spec.shape);
  const std::string subject = format("dataset '{}'", printable(spec.path));
  const Handle type(make_type(h5, spec.type), h5.H5Tclose);
  if (!type.is_open()) return invalid("{}: HDF5 has no type for its elements", subject);
  const Handle space(h5.H5Screate_simple(dimensions, shape.data(), nullptr), h5.H5Sclose);
  const Handle made(h5.H5Pcreate(*h5.H5P_CLS_DATASET_CREATE_ID_g), h5.H5Pclose);
  const Handle link(h5.H5Pcreate(*h5.H5P_CLS_LINK_CREATE_ID_g), h5.H5Pclose);
  h5.H5Pset_create_intermediate_group(link.get(), 1);
  std::vector<hdf5::Size> begin(shape.size());
  for (const Hdf5Part& part : parts) {
    if (part.rows == 0) continue;
    std::vector<hdf5::Size> size = shape;
    size[0] = part.rows;
    constexpr int kSet = 0;
    const Handle from(h5.H5Screate_simple(dimensions, size.data(), nullptr), h5.H5Sclose);
    if (h5.H5Sselect_hyperslab(space.get(), kSet, begin.data(), nullptr, size.data(), nullptr) < 0 ||
        h5.H5Pset_virtual(made.get(), space.get(), part.file.c_str(), spec.path.c_str(), from.get()) < 0) {
      return failed(h5, subject);
    }
    begin[0] += part.rows;
  }
  const Handle dataset(
      h5.H5Dcreate2(file, spec.path.c_str(), type.get(), space.get(), link.get(), made.get(), kDefault),
      h5.H5Dclose);
  return dataset.is_open() ? Status() : failed(h5, subject);
}

}  // namespace

Status write_hdf5_virtual(const Path& file, std::span<const Hdf5DatasetSpec> specs,
                          std::span<const Hdf5Part> parts) {
  std::uint64_t rows = 0;
  for (const Hdf5Part& part : parts) rows += part.rows;
  for (const Hdf5DatasetSpec& spec : specs) {
    STOKER_RETURN_IF_ERROR(check(spec));
    if (spec.shape[0] != rows) {
      return invalid("dataset '{}': has {}, its parts have {}", printable(spec.path),
                     counted(spec.shape[0], "row"), rows);
    }
  }
  STOKER_ASSIGN_OR_RETURN(h5, hdf5::api());
  const Path pending = pending_name(file);
  STOKER_RETURN_IF_ERROR(File::create_new(pending).status());
  const auto write = [&]() -> Status {
    constexpr unsigned kTruncate = 2;
    MutexLock lock(hdf5::hdf5_mutex());
    if (h5->H5open() < 0) return unavailable("HDF5: {} does not start", h5->library);
    h5->H5Eset_auto2(kDefault, nullptr, nullptr);
    Handle made(h5->H5Fcreate(pending.c_str(), kTruncate, kDefault, kDefault), h5->H5Fclose);
    if (!made.is_open()) return failed(*h5, file.string());
    for (const Hdf5DatasetSpec& spec : specs)
      STOKER_RETURN_IF_ERROR(add_virtual(*h5, made.get(), spec, parts));
    return made.close() ? Status() : failed(*h5, file.string());
  };
  Status status = write();
  if (status.ok()) {
    Result<File> written = File::open_read_write(pending);
    status = written.ok() ? written->sync() : written.status();
  }
  if (status.ok()) status = rename_path(pending, file);
  if (!status.ok()) {
    remove_file(pending).ok();
    return status;
  }
  const Path folder = file.parent_path();
  return sync_directory(folder.empty() ? Path(".") : folder);
}

}  // namespace stoker::arrays
