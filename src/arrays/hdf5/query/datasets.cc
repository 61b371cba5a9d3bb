#include "arrays/hdf5/query/datasets.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "arrays/hdf5/member.h"
#include "arrays/hdf5/query/chunks_internal.h"
#include "arrays/hdf5/query/element_type_internal.h"
#include "arrays/hdf5/query/members_internal.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/json/json.h"

namespace stoker::arrays::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDatasets = 100'000;
constexpr std::size_t kMaxGroups = 100'000;  // visits: a group of several names has several
constexpr std::size_t kDeepestGroup = 32;
constexpr std::uint64_t kMaxInline = 1u << 20;
constexpr std::size_t kLongestName = 4096;

std::string response(const Json& json) { return json_ascii(json); }

std::string failure(const Status& status) {
  return response(
      {{"error", status.message()}, {"code", static_cast<int>(status.code())}, {"cure", status.cure()}});
}

// Stops at an external link and sets the flag in the last of libhdf5's seven arguments.
constexpr ElinkCallback kRefuseExternal = [](auto... arguments) {
  *static_cast<bool*>(std::get<6>(std::tuple(arguments...))) = true;
  return -1;
};

class DatasetQuery {
 public:
  DatasetQuery(const Api& h5, const Path& file, ExternalLinks links) : h5_(h5), file_(file), links_(links) {}

  Status open() {
    if (h5_.H5open() < 0) return unavailable("HDF5: {} does not start", h5_.library);
    h5_.H5Eset_auto2(kDefault, nullptr, nullptr);
    id_ = h5_.H5Fopen(file_.c_str(), 0, kDefault);
    if (id_ < 0) return h5_.failure(format("{}", file_), "libhdf5 cannot open it", h5_.last_error());
    access_ = h5_.H5Pcreate(*h5_.H5P_CLS_DATASET_ACCESS_ID_g);
    if (links_ == ExternalLinks::refuse) h5_.H5Pset_elink_cb(access_, kRefuseExternal, &found_external_link_);
    return {};
  }

  Status walk(Id group, const std::string& path, Json& names) {
    if (ancestors_.size() > kDeepestGroup) return {};
    if (++groups_ > kMaxGroups) return invalid("{}: has more than {} groups", file_, kMaxGroups);
    GroupInfo info{};
    if (h5_.H5Gget_info(group, &info) < 0) return damaged(path);
    for (Size i = 0; i < info.links; ++i) {
      std::array<char, kLongestName> name{};
      // In ascending order of names.
      if (h5_.H5Lget_name_by_idx(group, ".", 0, 0, i, name.data(), name.size(), kDefault) < 0)
        return damaged(path);
      LinkInfo link{};
      if (h5_.H5Lget_info(group, name.data(), &link, kDefault) < 0) return damaged(path);
      if (link.type != kHardLink) continue;
      const std::string below = path.empty() ? name.data() : path + "/" + name.data();
      const Handle object(h5_.H5Oopen(group, name.data(), kDefault), h5_.H5Oclose);
      if (!object.is_open()) return damaged(below);
      const auto kind = static_cast<ObjectType>(h5_.H5Iget_type(object.get()));
      if (kind == ObjectType::dataset) add_names(object.get(), below, names);
      if (names.size() > kMaxDatasets) return invalid("{}: has more than {} datasets", file_, kMaxDatasets);
      const bool is_cycle = std::ranges::find(ancestors_, link.object) != ancestors_.end();
      if (kind != ObjectType::group || is_cycle) continue;
      ancestors_.push_back(link.object);
      STOKER_RETURN_IF_ERROR(walk(object.get(), below, names));
      ancestors_.pop_back();
    }
    return {};
  }

  Status dataset(const std::string& name, Json& into) {
    subject_ = format("{}: dataset '{}'", file_, printable(name));
    found_external_link_ = false;
    std::string member;
    const Handle object = open(name, member);
    if (found_external_link_)
      return invalid("{}: is behind an external link (which is not followed unless allowed)", subject_);
    if (!object.is_open()) return open_failed();
    if (static_cast<ObjectType>(h5_.H5Iget_type(object.get())) != ObjectType::dataset) {
      return invalid("{}: is not a dataset", subject_);
    }
    const Handle space(h5_.H5Dget_space(object.get()), h5_.H5Sclose);
    const Handle type(h5_.H5Dget_type(object.get()), h5_.H5Tclose);
    const Handle creation_properties(h5_.H5Dget_create_plist(object.get()), h5_.H5Pclose);
    if (!space.is_open() || !type.is_open() || !creation_properties.is_open()) return damaged_dataset();
    into["path"] = name;
    STOKER_RETURN_IF_ERROR(read_containing_file(object.get(), into));
    STOKER_ASSIGN_OR_RETURN(element, resolve_element(h5_, subject_, type.get(), member));
    if (element.record_bytes > 0 && !member_of(element).is_valid()) return damaged_dataset();
    STOKER_RETURN_IF_ERROR(read_shape(space.get(), element, into));
    STOKER_RETURN_IF_ERROR(query_type(h5_, subject_, element.type.get(), into));
    if (is_variable_length(h5_, type.get())) {
      STOKER_RETURN_IF_ERROR(read_heaps(creation_properties.get(), type.get(), into));
    } else {
      STOKER_RETURN_IF_ERROR(read_fill(creation_properties.get(), type.get(), element, into));
    }
    STOKER_RETURN_IF_ERROR(read_layout(object.get(), creation_properties.get(), type.get(), into));
    return read_element(element, member, into);
  }

  Id file() const { return id_; }

 private:
  Status damaged(const std::string& path) const {
    return h5_.failure(format("{}: '/{}'", file_, printable(path)), "is damaged", h5_.last_error());
  }
  Status damaged_dataset() const { return h5_.failure(subject_, "is damaged", h5_.last_error()); }
  Status open_failed() const {
    if (Api::is_newer_version_error(open_error_)) return h5_.failure(subject_, "is damaged", open_error_);
    return not_found("{}: does not exist ({})", subject_, open_error_);
  }
  Status unsupported(std::string_view what) const { return invalid("{}: {}", subject_, what); }

  // The dataset's name, or for records the paths of their members.
  void add_names(Id dataset, const std::string& name, Json& names) const {
    const Handle type(h5_.H5Dget_type(dataset), h5_.H5Tclose);
    const std::vector<std::string> members =
        type.is_open() ? member_paths(h5_, type.get()) : std::vector<std::string>();
    const auto has_name = [](const std::string& member) { return is_utf8(member); };
    // Members with other names cannot be requested: the dataset's name shows that there is more in it.
    if (members.empty() || !std::ranges::all_of(members, has_name)) names.push_back(name);
    for (const std::string& member : members) {
      if (has_name(member)) names.push_back(name + "/" + member);
    }
  }

  // Opens a dataset, or the dataset of a prefix of `name`; the rest is the member of its records.
  Handle open(const std::string& name, std::string& member) {
    Handle whole(h5_.H5Oopen(id_, name.c_str(), access_), h5_.H5Oclose);
    if (whole.is_open() || found_external_link_) return whole;
    open_error_ = h5_.last_error();
    for (std::size_t at = name.rfind('/'); at != std::string::npos && at > 0; at = name.rfind('/', at - 1)) {
      Handle before(h5_.H5Oopen(id_, name.substr(0, at).c_str(), access_), h5_.H5Oclose);
      if (found_external_link_) break;
      if (!before.is_open()) {
        const std::string why = h5_.last_error();
        if (Api::is_newer_version_error(why)) open_error_ = why;
        continue;
      }
      if (static_cast<ObjectType>(h5_.H5Iget_type(before.get())) != ObjectType::dataset) break;
      member = name.substr(at + 1);
      return before;
    }
    return whole;
  }

  // The file of the dataset: a different one behind an external link.
  Status read_containing_file(Id object, Json& into) {
    std::array<char, kLongestName> name{};
    const Handle file(h5_.H5Iget_file_id(object), h5_.H5Fclose);
    if (!file.is_open()) return damaged_dataset();
    const Handle creation_properties(h5_.H5Fget_create_plist(file.get()), h5_.H5Pclose);
    std::size_t address_bytes = 0, length_bytes = 0;
    if (h5_.H5Fget_name(object, name.data(), name.size()) < 0 ||
        h5_.H5Pget_userblock(creation_properties.get(), &userblock_) < 0 ||
        h5_.H5Pget_sizes(creation_properties.get(), &address_bytes, &length_bytes) < 0) {
      return damaged_dataset();
    }
    has_short_addresses_ = address_bytes != 8 || length_bytes != 8;
    containing_file_ = name.data();
    into["file"] = name.data();
    return {};
  }

  Status read_shape(Id space, const DatasetElement& element, Json& into) {
    const int count = h5_.H5Sget_simple_extent_ndims(space);
    if (count < 0 || count > static_cast<int>(codec::kMaxDimensions)) return damaged_dataset();
    constexpr int kEmpty = 2;  // H5S_NULL
    if (h5_.H5Sget_simple_extent_type(space) == kEmpty) return unsupported("has no elements and no shape");
    std::array<Size, codec::kMaxDimensions> sizes{};
    if (h5_.H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0) return damaged_dataset();
    shape_.assign(sizes.begin(), sizes.begin() + count);
    codec::Extents shape = shape_;
    shape.insert(shape.end(), element.dimensions.begin(), element.dimensions.end());
    if (shape_.empty() && !shape.empty())
      return unsupported("is a single array, not a list of arrays, which is not supported");
    if (shape.size() > codec::kMaxDimensions) return unsupported("has more than 32 dimensions");
    into["shape"] = shape;
    return {};
  }

  Status read_fill(Id creation_properties, Id type, const DatasetElement& element, Json& into) {
    int defined = 0;
    std::vector<std::uint8_t> fill(h5_.H5Tget_size(type));
    if (h5_.H5Pfill_value_defined(creation_properties, &defined) >= 0 && defined > 0) {
      h5_.H5Pget_fill_value(creation_properties, type, fill.data());
    }
    const std::vector<std::uint8_t> own = extract_member(fill, element);
    const auto once = own.begin() + static_cast<std::ptrdiff_t>(h5_.H5Tget_size(element.type.get()));
    for (auto at = own.begin(); at < own.end(); at += once - own.begin()) {
      if (!std::equal(own.begin(), once, at))
        return unsupported("has a fill value that differs within an array, which is not supported");
    }
    into["fill"] = std::vector<std::uint8_t>(own.begin(), once);
    return {};
  }

  // The bytes of the member in each record, or all bytes.
  std::vector<std::uint8_t> extract_member(std::vector<std::uint8_t> all,
                                           const DatasetElement& element) const {
    if (element.record_bytes == 0) return all;
    const RecordMember member = member_of(element);
    std::vector<std::uint8_t> own(all.size() / member.record_bytes * member.bytes);
    member.extract(std::as_bytes(std::span(all)), std::as_writable_bytes(std::span(own)));
    return own;
  }

  RecordMember member_of(const DatasetElement& element) const {
    const std::uint64_t bytes = h5_.H5Tget_size(element.type.get());
    return {element.record_bytes, element.offset, codec::product(element.dimensions, bytes).value_or(0)};
  }

  // Adjusts the description for a member of records.
  Status read_element(const DatasetElement& element, const std::string& member, Json& into) {
    if (into.contains("chunks")) {
      for (const std::uint64_t size : element.dimensions) into["chunks"].push_back(size);
    }
    if (element.record_bytes == 0) return {};
    into["record"] = {{"bytes", element.record_bytes},
                      {"offset", element.offset},
                      {"dimensions", element.dimensions.size()}};
    if (into.contains("inline"))
      into["inline"] = extract_member(into["inline"].get<std::vector<std::uint8_t>>(), element);
    if (!into.contains("parts")) return {};
    for (Json& part : into["parts"]) part["dataset"] = part["dataset"].get<std::string>() + "/" + member;
    return {};
  }

  // For values in heaps: the base of addresses. Unwritten elements must read as empty, which references of
  // zeros are.
  Status read_heaps(Id creation_properties, Id type, Json& into) {
    if (has_short_addresses_)
      return unsupported(
          "has variable-length values in a file without 8-byte addresses, which is not supported");
    into["base"] = userblock_;
    into["fill"] = std::vector<std::uint8_t>(codec::ElementType::kReferenceBytes);
    constexpr int kOfUser = 2;
    int defined = 0;
    if (h5_.H5Pfill_value_defined(creation_properties, &defined) < 0 || defined != kOfUser) return {};
    struct Sequence {
      std::size_t length;
      const char* values;
    };
    // Text is a pointer, a list its length and a pointer.
    Sequence fill{};
    const bool is_text = static_cast<TypeClass>(h5_.H5Tget_class(type)) == TypeClass::string;
    void* const to = is_text ? static_cast<void*>(&fill.values) : &fill;
    if (h5_.H5Pget_fill_value(creation_properties, type, to) < 0) return damaged_dataset();
    const bool is_empty = is_text ? fill.values == nullptr || *fill.values == '\0' : fill.length == 0;
    return is_empty ? Status() : unsupported("has a fill value of variable length, which is not supported");
  }

  Status read_layout(Id dataset, Id creation_properties, Id type, Json& into) {
    if (h5_.H5Pget_external_count(creation_properties) > 0)
      return unsupported("is stored in external files, which are not supported");
    switch (static_cast<Layout>(h5_.H5Pget_layout(creation_properties))) {
      case Layout::compact:
        into["layout"] = "inline";
        if (is_variable_length(h5_, type))
          return unsupported("has variable-length values in the compact layout, which is not supported");
        return read_inline(dataset, type, into);
      case Layout::contiguous:
        into["layout"] = "contiguous";
        into["offset"] = data_address(dataset);
        return {};
      case Layout::chunked:
        into["layout"] = "chunked";
        return query_chunks(h5_, {containing_file_, subject_, userblock_}, dataset, shape_, into);
      case Layout::virtual_:
        into["layout"] = "parts";
        return read_parts(creation_properties, into);
    }
    return damaged_dataset();
  }

  // libhdf5 adds the userblock even to the undefined address.
  std::uint64_t data_address(Id dataset) const {
    const std::uint64_t at = h5_.H5Dget_offset(dataset);
    return at == kNoAddress + userblock_ ? kNoAddress : at;
  }

  // In the stored type, so that libhdf5 does not convert.
  Status read_inline(Id dataset, Id type, Json& into) {
    const std::optional<std::uint64_t> bytes = codec::product(shape_, h5_.H5Tget_size(type));
    if (!bytes || *bytes > kMaxInline) return damaged_dataset();
    std::vector<std::uint8_t> elements(*bytes);
    if (*bytes > 0 && h5_.H5Dread(dataset, type, kDefault, kDefault, kDefault, elements.data()) < 0)
      return damaged_dataset();
    into["inline"] = elements;
    return {};
  }

  // Only whole rows of source datasets are supported.
  Status read_parts(Id creation_properties, Json& into) {
    constexpr std::string_view kOther =
        "is virtual, and not of whole rows of other datasets, which is not supported";
    std::size_t count = 0;
    if (h5_.H5Pget_virtual_count(creation_properties, &count) < 0 || count > kMaxDatasets)
      return damaged_dataset();
    Json parts = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
      std::array<char, kLongestName> file{};
      std::array<char, kLongestName> name{};
      if (h5_.H5Pget_virtual_filename(creation_properties, i, file.data(), file.size()) < 0 ||
          h5_.H5Pget_virtual_dsetname(creation_properties, i, name.data(), name.size()) < 0) {
        return damaged_dataset();
      }
      const Handle to(h5_.H5Pget_virtual_vspace(creation_properties, i), h5_.H5Sclose);
      const Handle from(h5_.H5Pget_virtual_srcspace(creation_properties, i), h5_.H5Sclose);
      std::uint64_t first = 0, rows = 0, source = 0, source_rows = 0;
      if (!whole_rows(to.get(), first, rows) || !source_rows_in(from.get(), rows, source, source_rows) ||
          rows != source_rows) {
        return unsupported(kOther);
      }
      parts.push_back({{"file", file.data()},
                       {"dataset", name.data()},
                       {"first_row", first},
                       {"source_row", source},
                       {"rows", rows}});
    }
    into["parts"] = std::move(parts);
    return {};
  }

  // All rows of the source are stored as a selection without a shape.
  bool source_rows_in(Id space, std::uint64_t all_rows, std::uint64_t& first, std::uint64_t& rows) const {
    if (space < 0 || h5_.H5Sget_simple_extent_ndims(space) > 0) return whole_rows(space, first, rows);
    rows = all_rows;
    return true;
  }

  bool whole_rows(Id space, std::uint64_t& first, std::uint64_t& rows) const {
    std::array<Size, codec::kMaxDimensions> begin{};
    std::array<Size, codec::kMaxDimensions> end{};
    if (space < 0 || shape_.empty() ||
        h5_.H5Sget_simple_extent_ndims(space) != static_cast<int>(shape_.size()) ||
        h5_.H5Sget_select_bounds(space, begin.data(), end.data()) < 0) {
      return false;
    }
    codec::Extents size;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (end[d] < begin[d]) return false;
      size.push_back(end[d] - begin[d] + 1);
      if (d > 0 && (begin[d] != 0 || size[d] != shape_[d])) return false;
    }
    first = begin[0];
    rows = size[0];
    // As many points as the bounds hold: no gaps.
    const std::optional<std::uint64_t> all = codec::product(size);
    return all && h5_.H5Sget_select_npoints(space) == static_cast<long long>(*all);
  }

  const Api& h5_;
  const Path file_;
  const ExternalLinks links_;
  std::string subject_;
  std::string open_error_;
  bool found_external_link_ = false;
  std::vector<std::uint64_t> ancestors_;  // addresses of the groups around a link, without the root
  std::size_t groups_ = 0;
  // The file of the current dataset.
  Path containing_file_;
  Size userblock_ = 0;
  bool has_short_addresses_ = false;
  Id id_ = -1;
  Id access_ = kDefault;
  codec::Extents shape_;
};

}  // namespace

std::string query_dataset_names(const Api& h5, const Path& file) {
  DatasetQuery query(h5, file, ExternalLinks::refuse);
  Status status = query.open();
  Json names = Json::array();
  if (status.ok()) status = query.walk(query.file(), "", names);
  return status.ok() ? response({{"names", std::move(names)}}) : failure(status);
}

std::string query_datasets(const Api& h5, const Path& file, const std::vector<std::string>& names,
                           ExternalLinks links) {
  DatasetQuery query(h5, file, links);
  Status status = query.open();
  Json datasets = Json::array();
  for (const std::string& name : names) {
    if (status.ok()) status = query.dataset(name, datasets.emplace_back(Json::object()));
  }
  return status.ok() ? response({{"datasets", std::move(datasets)}}) : failure(status);
}

}  // namespace stoker::arrays::hdf5
