#include <algorithm>
#include <array>

#include "arrays/hdf5/member.h"
#include "arrays/hdf5/query/element_type_internal.h"
#include "arrays/hdf5/query/members_internal.h"
#include "stoker/text.h"

namespace stoker::arrays::hdf5 {

namespace {

constexpr std::size_t kMaxMembers = 4096;
constexpr std::size_t kDeepestRecord = 16;
constexpr std::size_t kMaxListed = 8;

TypeClass class_of(const Api& h5, Id type) { return static_cast<TypeClass>(h5.H5Tget_class(type)); }

// Nested array types become one array type with the dimensions of both.
Handle strip_arrays(const Api& h5, Handle type, codec::Extents& dimensions) {
  if (!type.is_open() || class_of(h5, type.get()) != TypeClass::array) return type;
  std::array<Size, codec::kMaxDimensions> sizes{};
  const int count = h5.H5Tget_array_ndims(type.get());
  if (count < 1 || static_cast<std::size_t>(count) > codec::kMaxDimensions - dimensions.size() ||
      h5.H5Tget_array_dims2(type.get(), sizes.data()) < 0) {
    return {-1, nullptr};
  }
  dimensions.insert(dimensions.end(), sizes.begin(), sizes.begin() + count);
  return strip_arrays(h5, Handle(h5.H5Tget_super(type.get()), h5.H5Tclose), dimensions);
}

// The members of records, including nested records.
class Members {
 public:
  struct Member {
    std::string path;
    std::uint64_t offset = 0;
    Handle type;
  };

  explicit Members(const Api& h5) : h5_(h5) {}

  // The reason why the record is unsupported, or empty.
  std::string_view collect(Id record) { return collect(record, "", 0, 0); }
  std::vector<Member>& found() { return found_; }

 private:
  std::string_view collect(Id record, const std::string& before, std::uint64_t offset, std::size_t depth) {
    const int count = h5_.H5Tget_nmembers(record);
    if (count < 0 || depth > kDeepestRecord) return "has too deeply nested records, which are not supported";
    for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
      if (found_.size() == kMaxMembers)
        return "has records of more than 4 096 members, which are not supported";
      Handle type(h5_.H5Tget_member_type(record, i), h5_.H5Tclose);
      if (!type.is_open()) return "has records with a damaged member";
      const std::string path = before + member_name(h5_, record, i);
      const std::uint64_t at = offset + h5_.H5Tget_member_offset(record, i);
      if (is_record(h5_, type.get())) {
        const std::string_view why = collect(type.get(), path + "/", at, depth + 1);
        if (!why.empty()) return why;
        continue;
      }
      if (has_indirect_data(type.get(), depth))
        return "has records with references or values of different lengths, which are not supported";
      found_.push_back({path, at, std::move(type)});
    }
    return {};
  }

  // libhdf5 reports a record's size and offsets in memory. With such a member they differ in the file.
  bool has_indirect_data(Id type, std::size_t depth) const {
    const TypeClass kind = class_of(h5_, type);
    if (kind == TypeClass::reference || is_variable_length(h5_, type) || depth > kDeepestRecord) return true;
    if (kind == TypeClass::array) {
      const Handle of(h5_.H5Tget_super(type), h5_.H5Tclose);
      return !of.is_open() || has_indirect_data(of.get(), depth + 1);
    }
    if (kind != TypeClass::compound) return false;
    for (int i = 0; i < h5_.H5Tget_nmembers(type); ++i) {
      const Handle member(h5_.H5Tget_member_type(type, static_cast<unsigned>(i)), h5_.H5Tclose);
      if (!member.is_open() || has_indirect_data(member.get(), depth + 1)) return true;
    }
    return false;
  }

  const Api& h5_;
  std::vector<Member> found_;
};

std::string member_list(const std::vector<Members::Member>& members) {
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), kMaxListed); ++i)
    text += format("{}'{}'", i == 0 ? "" : ", ", printable(members[i].path));
  return members.size() > kMaxListed ? text + ", ..." : text;
}

Result<DatasetElement> checked(const Api& h5, const std::string& subject, DatasetElement element) {
  if (!element.type.is_open()) return invalid("{}: has elements that are unsupported arrays", subject);
  if (std::find(element.dimensions.begin(), element.dimensions.end(), 0u) != element.dimensions.end())
    return invalid("{}: has empty arrays as elements, which are not supported", subject);
  if (!element.dimensions.empty() && is_record(h5, element.type.get()))
    return invalid("{}: has arrays of records as elements, which are not supported", subject);
  if (!element.dimensions.empty() && is_variable_length(h5, element.type.get()))
    return invalid("{}: has arrays of values of different lengths as elements, which are not supported",
                   subject);
  return element;
}

}  // namespace

bool is_record(const Api& h5, Id type) {
  if (class_of(h5, type) != TypeClass::compound) return false;
  if (h5.H5Tget_nmembers(type) != 2) return true;
  constexpr std::pair<std::string_view, std::string_view> kComplex[] = {
      {"r", "i"}, {"re", "im"}, {"real", "imag"}, {"real", "imaginary"}};
  for (unsigned i = 0; i < 2; ++i) {
    const Handle member(h5.H5Tget_member_type(type, i), h5.H5Tclose);
    if (!member.is_open() || class_of(h5, member.get()) != TypeClass::floating) return true;
  }
  const std::string first = to_lower(member_name(h5, type, 0));
  const std::string second = to_lower(member_name(h5, type, 1));
  return std::none_of(std::begin(kComplex), std::end(kComplex),
                      [&](const auto& names) { return names.first == first && names.second == second; });
}

std::vector<std::string> member_paths(const Api& h5, Id type) {
  std::vector<std::string> paths;
  if (!is_record(h5, type)) return paths;
  Members members(h5);
  if (!members.collect(type).empty()) return paths;
  for (const Members::Member& member : members.found()) paths.push_back(member.path);
  return paths;
}

Result<DatasetElement> resolve_element(const Api& h5, const std::string& subject, Id type,
                                       const std::string& member) {
  codec::Extents dimensions;
  if (!is_record(h5, type)) {
    if (!member.empty())
      return not_found("{}: has no member '{}', its elements are not records", subject, printable(member));
    Handle whole = strip_arrays(h5, Handle(h5.H5Tcopy(type), h5.H5Tclose), dimensions);
    return checked(h5, subject, {std::move(whole), std::move(dimensions)});
  }
  Members members(h5);
  const std::string_view why = members.collect(type);
  if (!why.empty()) return invalid("{}: {}", subject, why);
  const auto found = std::find_if(members.found().begin(), members.found().end(),
                                  [&](const Members::Member& one) { return one.path == member; });
  if (member.empty()) {
    return invalid("{}: holds records: select one of their members ({})", subject,
                   member_list(members.found()));
  }
  if (found == members.found().end()) {
    return not_found("{}: its records have no member '{}' (they have {})", subject, printable(member),
                     member_list(members.found()));
  }
  const std::uint64_t record_bytes = h5.H5Tget_size(type);
  if (record_bytes > RecordMember::kLargestRecord)
    return invalid("{}: has records of {} bytes (at most 1 MiB is supported)", subject, record_bytes);
  Handle leaf = strip_arrays(h5, std::move(found->type), dimensions);
  return checked(h5, subject, {std::move(leaf), std::move(dimensions), record_bytes, found->offset});
}

}  // namespace stoker::arrays::hdf5
