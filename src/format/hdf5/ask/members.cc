#include <algorithm>
#include <array>

#include "base/text.h"
#include "format/hdf5/ask/element_type_internal.h"
#include "format/hdf5/ask/members_internal.h"
#include "format/hdf5/member.h"

namespace stoker::formats::hdf5 {

namespace {

constexpr std::size_t kMostMembers = 4096;
constexpr std::size_t kDeepestRecord = 16;
constexpr std::size_t kMostTold = 8;

Class class_of(const Api& h5, Id type) { return static_cast<Class>(h5.H5Tget_class(type)); }

// Numbers of an array's array are those of one with the dimensions of both.
Handle without_arrays(const Api& h5, Handle type, Extents& dimensions) {
  if (!type.is_open() || class_of(h5, type.get()) != Class::array) return type;
  std::array<Size, kMostDimensions> sizes{};
  const int count = h5.H5Tget_array_ndims(type.get());
  if (count < 1 || static_cast<std::size_t>(count) > kMostDimensions - dimensions.size() ||
      h5.H5Tget_array_dims2(type.get(), sizes.data()) < 0) {
    return {-1, nullptr};
  }
  dimensions.insert(dimensions.end(), sizes.begin(), sizes.begin() + count);
  return without_arrays(h5, Handle(h5.H5Tget_super(type.get()), h5.H5Tclose), dimensions);
}

// The members of records, with those of records in them.
class Members {
 public:
  struct Member {
    std::string path;
    std::uint64_t offset = 0;
    Handle type;
  };

  explicit Members(const Api& h5) : h5_(h5) {}

  // What stands in the way, or nothing.
  std::string_view take(Id record) { return take(record, "", 0, 0); }
  std::vector<Member>& found() { return found_; }

 private:
  std::string_view take(Id record, const std::string& before, std::uint64_t offset, std::size_t depth) {
    const int count = h5_.H5Tget_nmembers(record);
    if (count < 0 || depth > kDeepestRecord) return "has records in records in records that are not read";
    for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
      if (found_.size() == kMostMembers) return "has records of more than 4 096 members, which is not read";
      Handle type(h5_.H5Tget_member_type(record, i), h5_.H5Tclose);
      if (!type.is_open()) return "has records with a damaged member";
      const std::string path = before + member_name(h5_, record, i);
      const std::uint64_t at = offset + h5_.H5Tget_member_offset(record, i);
      if (is_record(h5_, type.get())) {
        const std::string_view why = take(type.get(), path + "/", at, depth + 1);
        if (!why.empty()) return why;
        continue;
      }
      if (lies_elsewhere(type.get(), depth))
        return "has records with references or values of different lengths, which are not read";
      found_.push_back({path, at, std::move(type)});
    }
    return {};
  }

  // What libhdf5 says of a record's size and places holds in memory: with such a member others in the file.
  bool lies_elsewhere(Id type, std::size_t depth) const {
    const Class kind = class_of(h5_, type);
    if (kind == Class::reference || is_varying(h5_, type) || depth > kDeepestRecord) return true;
    if (kind == Class::array) {
      const Handle of(h5_.H5Tget_super(type), h5_.H5Tclose);
      return !of.is_open() || lies_elsewhere(of.get(), depth + 1);
    }
    if (kind != Class::compound) return false;
    for (int i = 0; i < h5_.H5Tget_nmembers(type); ++i) {
      const Handle member(h5_.H5Tget_member_type(type, static_cast<unsigned>(i)), h5_.H5Tclose);
      if (!member.is_open() || lies_elsewhere(member.get(), depth + 1)) return true;
    }
    return false;
  }

  const Api& h5_;
  std::vector<Member> found_;
};

std::string told(const std::vector<Members::Member>& members) {
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), kMostTold); ++i)
    text += format("{}'{}'", i == 0 ? "" : ", ", printable(members[i].path));
  return members.size() > kMostTold ? text + ", ..." : text;
}

Result<Element> checked(const Api& h5, const std::string& subject, Element element) {
  if (!element.type.is_open()) return invalid("{}: has arrays as elements that are not read", subject);
  if (std::find(element.dimensions.begin(), element.dimensions.end(), 0u) != element.dimensions.end())
    return invalid("{}: has arrays of no elements as elements, which are not read", subject);
  if (!element.dimensions.empty() && is_record(h5, element.type.get()))
    return invalid("{}: has arrays of records as elements, which are not read", subject);
  if (!element.dimensions.empty() && is_varying(h5, element.type.get()))
    return invalid("{}: has arrays of values of different lengths as elements, which are not read", subject);
  return element;
}

}  // namespace

bool is_record(const Api& h5, Id type) {
  if (class_of(h5, type) != Class::compound) return false;
  if (h5.H5Tget_nmembers(type) != 2) return true;
  constexpr std::pair<std::string_view, std::string_view> kComplex[] = {
      {"r", "i"}, {"re", "im"}, {"real", "imag"}, {"real", "imaginary"}};
  for (unsigned i = 0; i < 2; ++i) {
    const Handle member(h5.H5Tget_member_type(type, i), h5.H5Tclose);
    if (!member.is_open() || class_of(h5, member.get()) != Class::floating) return true;
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
  if (!members.take(type).empty()) return paths;
  for (const Members::Member& member : members.found()) paths.push_back(member.path);
  return paths;
}

Result<Element> element_of(const Api& h5, const std::string& subject, Id type, const std::string& member) {
  Extents dimensions;
  if (!is_record(h5, type)) {
    if (!member.empty())
      return not_found("{}: has no member '{}', its elements are no records", subject, printable(member));
    Handle whole = without_arrays(h5, Handle(h5.H5Tcopy(type), h5.H5Tclose), dimensions);
    return checked(h5, subject, {std::move(whole), std::move(dimensions)});
  }
  Members members(h5);
  const std::string_view why = members.take(type);
  if (!why.empty()) return invalid("{}: {}", subject, why);
  const auto found = std::find_if(members.found().begin(), members.found().end(),
                                  [&](const Members::Member& one) { return one.path == member; });
  if (member.empty()) {
    return invalid("{}: holds records, of which one member is read at a time ({})", subject,
                   told(members.found()));
  }
  if (found == members.found().end()) {
    return not_found("{}: its records have no member '{}' (they have {})", subject, printable(member),
                     told(members.found()));
  }
  const std::uint64_t record_bytes = h5.H5Tget_size(type);
  if (record_bytes > RecordMember::kLargestRecord)
    return invalid("{}: has records of {} bytes (at most 1 MiB is read)", subject, record_bytes);
  Handle leaf = without_arrays(h5, std::move(found->type), dimensions);
  return checked(h5, subject, {std::move(leaf), std::move(dimensions), record_bytes, found->offset});
}

}  // namespace stoker::formats::hdf5
