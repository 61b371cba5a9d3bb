#include "format/hdf5/ask/datasets.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/encode.h"
#include "base/file.h"
#include "base/json/json.h"
#include "format/hdf5/ask/chunks_internal.h"
#include "format/hdf5/ask/element_type_internal.h"
#include "format/hdf5/ask/members_internal.h"
#include "format/hdf5/member.h"

namespace stoker::formats::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDatasets = 100'000;
constexpr std::size_t kDeepestGroup = 32;
constexpr std::uint64_t kMostInline = 1u << 20;
constexpr std::size_t kLongestName = 4096;

std::string answer(const Json& json) { return json_ascii(json); }

std::string failure(const Status& status) {
  return answer(
      {{"error", status.message()}, {"code", static_cast<int>(status.code())}, {"cure", status.cure()}});
}

// Stops at an external link, and notes that there was one in the last of libhdf5's seven arguments.
constexpr ElinkCall kRefuseExternal = [](auto... arguments) {
  *static_cast<bool*>(std::get<6>(std::tuple(arguments...))) = true;
  return -1;
};

class Asker {
 public:
  Asker(const Api& h5, const Path& file, ExternalLinks links) : h5_(h5), file_(file), links_(links) {}

  Status open() {
    if (h5_.H5open() < 0) return unavailable("HDF5: {} does not start", h5_.library);
    h5_.H5Eset_auto2(kDefault, nullptr, nullptr);
    id_ = h5_.H5Fopen(file_.c_str(), 0, kDefault);
    if (id_ < 0) return h5_.failure(format("{}", file_), "libhdf5 cannot open it", h5_.last_error());
    access_ = h5_.H5Pcreate(*h5_.H5P_CLS_DATASET_ACCESS_ID_g);
    if (links_ == ExternalLinks::refuse) h5_.H5Pset_elink_cb(access_, kRefuseExternal, &met_external_);
    return {};
  }

  Status walk(Id group, const std::string& path, std::size_t depth, Json& names) {
    if (depth > kDeepestGroup) return {};  // or a ring of groups
    GroupInfo info{};
    if (h5_.H5Gget_info(group, &info) < 0) return damaged(path);
    for (Size i = 0; i < info.links; ++i) {
      std::array<char, kLongestName> name{};
      // By name, ascending.
      if (h5_.H5Lget_name_by_idx(group, ".", 0, 0, i, name.data(), name.size(), kDefault) < 0)
        return damaged(path);
      LinkInfo link{};
      if (h5_.H5Lget_info(group, name.data(), &link, kDefault) < 0) return damaged(path);
      if (link.type != kHardLink) continue;
      const std::string below = path.empty() ? name.data() : path + "/" + name.data();
      const Handle object(h5_.H5Oopen(group, name.data(), kDefault), h5_.H5Oclose);
      if (!object.is_open()) return damaged(below);
      const auto kind = static_cast<Object>(h5_.H5Iget_type(object.get()));
      if (kind == Object::dataset) add_names(object.get(), below, names);
      if (names.size() > kMostDatasets) return invalid("{}: has more than {} datasets", file_, kMostDatasets);
      if (kind == Object::group) RETURN_IF_ERROR(walk(object.get(), below, depth + 1, names));
    }
    return {};
  }

  Status dataset(const std::string& name, Json& into) {
    subject_ = format("{}: dataset '{}'", file_, printable(name));
    met_external_ = false;
    std::string member;
    const Handle object = open(name, member);
    if (met_external_)
      return invalid("{}: is behind an external link (which is not followed unless allowed)", subject_);
    if (!object.is_open()) return not_open();
    if (static_cast<Object>(h5_.H5Iget_type(object.get())) != Object::dataset) {
      return invalid("{}: is no dataset", subject_);
    }
    const Handle space(h5_.H5Dget_space(object.get()), h5_.H5Sclose);
    const Handle type(h5_.H5Dget_type(object.get()), h5_.H5Tclose);
    const Handle made(h5_.H5Dget_create_plist(object.get()), h5_.H5Pclose);
    if (!space.is_open() || !type.is_open() || !made.is_open()) return broken();
    into["path"] = name;
    RETURN_IF_ERROR(take_holder(object.get(), into));
    OK_OR_RETURN(element, element_of(h5_, subject_, type.get(), member));
    if (element.record_bytes > 0 && !member_of(element).holds()) return broken();
    RETURN_IF_ERROR(take_shape(space.get(), element, into));
    RETURN_IF_ERROR(ask_type(h5_, subject_, element.type.get(), into));
    if (is_varying(h5_, type.get())) {
      RETURN_IF_ERROR(take_heaps(made.get(), type.get(), into));
    } else {
      RETURN_IF_ERROR(take_fill(made.get(), type.get(), element, into));
    }
    RETURN_IF_ERROR(take_layout(object.get(), made.get(), type.get(), into));
    return take_element(element, member, into);
  }

  Id file() const { return id_; }

 private:
  Status damaged(const std::string& path) const {
    return h5_.failure(format("{}: '/{}'", file_, printable(path)), "is damaged", h5_.last_error());
  }
  Status broken() const { return h5_.failure(subject_, "is damaged", h5_.last_error()); }
  Status not_open() const {
    if (Api::is_of_newer(why_not_open_)) return h5_.failure(subject_, "is damaged", why_not_open_);
    return not_found("{}: is not there ({})", subject_, why_not_open_);
  }
  Status unread(std::string_view what) const { return invalid("{}: {}", subject_, what); }

  // A dataset's own name, or where it holds records those of their members behind it.
  void add_names(Id dataset, const std::string& name, Json& names) const {
    const Handle type(h5_.H5Dget_type(dataset), h5_.H5Tclose);
    const std::vector<std::string> members =
        type.is_open() ? member_paths(h5_, type.get()) : std::vector<std::string>();
    const auto has_name = [](const std::string& member) { return is_utf8(member); };
    // The others could not be asked for: with the dataset's own name it is said that there is more in it.
    if (members.empty() || !std::ranges::all_of(members, has_name)) names.push_back(name);
    for (const std::string& member : members) {
      if (has_name(member)) names.push_back(name + "/" + member);
    }
  }

  // A dataset, or the one that the beginning of `name` names, and the member of its records that the rest is.
  Handle open(const std::string& name, std::string& member) {
    Handle whole(h5_.H5Oopen(id_, name.c_str(), access_), h5_.H5Oclose);
    if (whole.is_open() || met_external_) return whole;
    why_not_open_ = h5_.last_error();
    for (std::size_t at = name.rfind('/'); at != std::string::npos && at > 0; at = name.rfind('/', at - 1)) {
      Handle before(h5_.H5Oopen(id_, name.substr(0, at).c_str(), access_), h5_.H5Oclose);
      if (met_external_) break;
      if (!before.is_open()) {
        const std::string why = h5_.last_error();
        if (Api::is_of_newer(why)) why_not_open_ = why;
        continue;
      }
      if (static_cast<Object>(h5_.H5Iget_type(before.get())) != Object::dataset) break;
      member = name.substr(at + 1);
      return before;
    }
    return whole;
  }

  // The file that the dataset lies in: another one behind an external link.
  Status take_holder(Id object, Json& into) {
    std::array<char, kLongestName> name{};
    const Handle file(h5_.H5Iget_file_id(object), h5_.H5Fclose);
    if (!file.is_open()) return broken();
    const Handle made(h5_.H5Fget_create_plist(file.get()), h5_.H5Pclose);
    std::size_t address_bytes = 0, length_bytes = 0;
    if (h5_.H5Fget_name(object, name.data(), name.size()) < 0 ||
        h5_.H5Pget_userblock(made.get(), &userblock_) < 0 ||
        h5_.H5Pget_sizes(made.get(), &address_bytes, &length_bytes) < 0) {
      return broken();
    }
    has_short_addresses_ = address_bytes != 8 || length_bytes != 8;
    holder_ = name.data();
    into["file"] = name.data();
    return {};
  }

  Status take_shape(Id space, const Element& element, Json& into) {
    const int count = h5_.H5Sget_simple_extent_ndims(space);
    if (count < 0 || count > static_cast<int>(kMostDimensions)) return broken();
    constexpr int kEmpty = 2;  // H5S_NULL
    if (h5_.H5Sget_simple_extent_type(space) == kEmpty) return unread("has no elements and no shape");
    std::array<Size, kMostDimensions> sizes{};
    if (h5_.H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0) return broken();
    shape_.assign(sizes.begin(), sizes.begin() + count);
    Extents shape = shape_;
    shape.insert(shape.end(), element.dimensions.begin(), element.dimensions.end());
    if (shape_.empty() && !shape.empty())
      return unread("is one array and no list of them, which is not read");
    if (shape.size() > kMostDimensions) return unread("has more than 32 dimensions");
    into["shape"] = shape;
    return {};
  }

  Status take_fill(Id made, Id type, const Element& element, Json& into) {
    int defined = 0;
    std::vector<std::uint8_t> fill(h5_.H5Tget_size(type));
    if (h5_.H5Pfill_value_defined(made, &defined) >= 0 && defined > 0) {
      h5_.H5Pget_fill_value(made, type, fill.data());
    }
    const std::vector<std::uint8_t> own = picked(fill, element);
    const auto once = own.begin() + static_cast<std::ptrdiff_t>(h5_.H5Tget_size(element.type.get()));
    for (auto at = own.begin(); at < own.end(); at += once - own.begin()) {
      if (!std::equal(own.begin(), once, at))
        return unread("has a fill value that differs within an array, which is not read");
    }
    into["fill"] = std::vector<std::uint8_t>(own.begin(), once);
    return {};
  }

  // That member of each record, or all.
  std::vector<std::uint8_t> picked(std::vector<std::uint8_t> all, const Element& element) const {
    if (element.record_bytes == 0) return all;
    const RecordMember member = member_of(element);
    std::vector<std::uint8_t> own(all.size() / member.record_bytes * member.bytes);
    member.pick(std::as_bytes(std::span(all)), std::as_writable_bytes(std::span(own)));
    return own;
  }

  RecordMember member_of(const Element& element) const {
    const std::uint64_t bytes = h5_.H5Tget_size(element.type.get());
    return {element.record_bytes, element.offset, product(element.dimensions, bytes).value_or(0)};
  }

  // What a member of records changes in what was said of the dataset.
  Status take_element(const Element& element, const std::string& member, Json& into) {
    if (into.contains("chunks")) {
      for (const std::uint64_t size : element.dimensions) into["chunks"].push_back(size);
    }
    if (element.record_bytes == 0) return {};
    into["record"] = {{"bytes", element.record_bytes},
                      {"offset", element.offset},
                      {"dimensions", element.dimensions.size()}};
    if (into.contains("inline"))
      into["inline"] = picked(into["inline"].get<std::vector<std::uint8_t>>(), element);
    if (!into.contains("parts")) return {};
    for (Json& part : into["parts"]) part["dataset"] = part["dataset"].get<std::string>() + "/" + member;
    return {};
  }

  // Of values in heaps: where addresses begin. What was never written must read as nothing, which references
  // of zeros are.
  Status take_heaps(Id made, Id type, Json& into) {
    if (has_short_addresses_)
      return unread("has values of different lengths in a file of short addresses, which is not read");
    into["base"] = userblock_;
    into["fill"] = std::vector<std::uint8_t>(ElementType::kReferenceBytes);
    constexpr int kOfUser = 2;
    int defined = 0;
    if (h5_.H5Pfill_value_defined(made, &defined) < 0 || defined != kOfUser) return {};
    struct Sequence {
      std::size_t length;
      const char* values;
    };
    // Text is a pointer, a list its length and a pointer.
    Sequence fill{};
    const bool is_text = static_cast<Class>(h5_.H5Tget_class(type)) == Class::string;
    void* const to = is_text ? static_cast<void*>(&fill.values) : &fill;
    if (h5_.H5Pget_fill_value(made, type, to) < 0) return broken();
    const bool is_empty = is_text ? fill.values == nullptr || *fill.values == '\0' : fill.length == 0;
    return is_empty ? Status() : unread("has a fill value of any length, which is not read");
  }

  Status take_layout(Id dataset, Id made, Id type, Json& into) {
    if (h5_.H5Pget_external_count(made) > 0) return unread("lies in external files, which are not read");
    switch (static_cast<Layout>(h5_.H5Pget_layout(made))) {
      case Layout::compact:
        into["layout"] = "inline";
        if (is_varying(h5_, type))
          return unread("has values of different lengths in the file's header, which is not read");
        return take_inline(dataset, type, into);
      case Layout::contiguous:
        into["layout"] = "contiguous";
        into["offset"] = place_of(dataset);
        return {};
      case Layout::chunked:
        into["layout"] = "chunked";
        return ask_chunks(h5_, {holder_, subject_, userblock_}, dataset, shape_, into);
      case Layout::virtual_:
        into["layout"] = "parts";
        return take_parts(made, into);
    }
    return broken();
  }

  // libhdf5 adds the userblock even to the address that says that there is none.
  std::uint64_t place_of(Id dataset) const {
    const std::uint64_t at = h5_.H5Dget_offset(dataset);
    return at == kNoAddress + userblock_ ? kNoAddress : at;
  }

  // In the file's own type, so that nothing is converted.
  Status take_inline(Id dataset, Id type, Json& into) {
    const std::optional<std::uint64_t> bytes = product(shape_, h5_.H5Tget_size(type));
    if (!bytes || *bytes > kMostInline) return broken();
    std::vector<std::uint8_t> elements(*bytes);
    if (*bytes > 0 && h5_.H5Dread(dataset, type, kDefault, kDefault, kDefault, elements.data()) < 0)
      return broken();
    into["inline"] = elements;
    return {};
  }

  // Rows of other datasets, all columns of them. Anything else is another kind of mosaic.
  Status take_parts(Id made, Json& into) {
    constexpr std::string_view kOther =
        "is virtual, and not of whole rows of other datasets, which is not read";
    std::size_t count = 0;
    if (h5_.H5Pget_virtual_count(made, &count) < 0 || count > kMostDatasets) return broken();
    Json parts = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
      std::array<char, kLongestName> file{};
      std::array<char, kLongestName> name{};
      if (h5_.H5Pget_virtual_filename(made, i, file.data(), file.size()) < 0 ||
          h5_.H5Pget_virtual_dsetname(made, i, name.data(), name.size()) < 0) {
        return broken();
      }
      const Handle to(h5_.H5Pget_virtual_vspace(made, i), h5_.H5Sclose);
      const Handle from(h5_.H5Pget_virtual_srcspace(made, i), h5_.H5Sclose);
      std::uint64_t first = 0, rows = 0, source = 0, source_rows = 0;
      if (!whole_rows(to.get(), first, rows) || !source_of(from.get(), rows, source, source_rows) ||
          rows != source_rows) {
        return unread(kOther);
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
  bool source_of(Id space, std::uint64_t all_rows, std::uint64_t& first, std::uint64_t& rows) const {
    if (space < 0 || h5_.H5Sget_simple_extent_ndims(space) > 0) return whole_rows(space, first, rows);
    rows = all_rows;
    return true;
  }

  bool whole_rows(Id space, std::uint64_t& first, std::uint64_t& rows) const {
    std::array<Size, kMostDimensions> begin{};
    std::array<Size, kMostDimensions> end{};
    if (space < 0 || shape_.empty() ||
        h5_.H5Sget_simple_extent_ndims(space) != static_cast<int>(shape_.size()) ||
        h5_.H5Sget_select_bounds(space, begin.data(), end.data()) < 0) {
      return false;
    }
    Extents size;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (end[d] < begin[d]) return false;
      size.push_back(end[d] - begin[d] + 1);
      if (d > 0 && (begin[d] != 0 || size[d] != shape_[d])) return false;
    }
    first = begin[0];
    rows = size[0];
    // As many as the bounds hold: no gaps.
    const std::optional<std::uint64_t> all = product(size);
    return all && h5_.H5Sget_select_npoints(space) == static_cast<long long>(*all);
  }

  const Api& h5_;
  const Path file_;
  const ExternalLinks links_;
  std::string subject_;
  std::string why_not_open_;
  bool met_external_ = false;
  // Of the file that the dataset at hand lies in.
  Path holder_;
  Size userblock_ = 0;
  bool has_short_addresses_ = false;
  Id id_ = -1;
  Id access_ = kDefault;
  Extents shape_;
};

}  // namespace

std::string ask_names(const Api& h5, const Path& file) {
  Asker asker(h5, file, ExternalLinks::refuse);
  Status status = asker.open();
  Json names = Json::array();
  if (status.ok()) status = asker.walk(asker.file(), "", 0, names);
  return status.ok() ? answer({{"names", std::move(names)}}) : failure(status);
}

std::string ask_datasets(const Api& h5, const Path& file, const std::vector<std::string>& names,
                         ExternalLinks links) {
  Asker asker(h5, file, links);
  Status status = asker.open();
  Json datasets = Json::array();
  for (const std::string& name : names) {
    if (status.ok()) status = asker.dataset(name, datasets.emplace_back(Json::object()));
  }
  return status.ok() ? answer({{"datasets", std::move(datasets)}}) : failure(status);
}

}  // namespace stoker::formats::hdf5
