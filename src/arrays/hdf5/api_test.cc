// Compares our declarations of libhdf5's C interface with the installed hdf5.h at compile time: every
// prototype of Api, the structures and the constants. Types may differ in name (hsize_t is unsigned long or
// unsigned long long, enumerations are int here), but not in size, kind or number.
#include "arrays/hdf5/api.h"

#include <gtest/gtest.h>

#if __has_include(<hdf5/serial/hdf5.h>)
#include <hdf5/serial/hdf5.h>
#define STOKER_HAS_HDF5_HEADER
#elif __has_include(<hdf5.h>)
#include <hdf5.h>
#define STOKER_HAS_HDF5_HEADER
#endif

#ifdef STOKER_HAS_HDF5_HEADER
#include <cstddef>
#include <type_traits>

namespace stoker::arrays::hdf5 {
namespace {

template <typename Ours, typename Theirs>
struct SameFunction : std::false_type {};

// A structure behind a pointer may be larger here than in the library, which fills it.
template <typename Ours, typename Theirs>
constexpr bool is_same_pointee() {
  using Our = std::remove_cv_t<Ours>;
  using Their = std::remove_cv_t<Theirs>;
  if constexpr (std::is_void_v<Our> || std::is_void_v<Their>) {
    return true;
  } else if constexpr (std::is_class_v<Our> && std::is_class_v<Their>) {
    return sizeof(Our) >= sizeof(Their) && alignof(Our) <= alignof(Their);
  } else if constexpr (std::is_class_v<Our> || std::is_class_v<Their>) {
    return false;
  } else {
    return sizeof(Our) == sizeof(Their) && std::is_const_v<Ours> == std::is_const_v<Theirs>;
  }
}

template <typename Ours, typename Theirs>
constexpr bool is_same_abi() {
  if constexpr (std::is_same_v<Ours, Theirs>) {
    return true;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using Our = std::remove_pointer_t<Ours>;
    using Their = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_function_v<Our> && std::is_function_v<Their>) {
      return SameFunction<Our, Their>::value;
    } else if constexpr (std::is_function_v<Our> || std::is_function_v<Their>) {
      return std::is_void_v<Our>;  // a null callback
    } else {
      return is_same_pointee<Our, Their>();
    }
  } else {
    constexpr bool kIsOurNumber = std::is_integral_v<Ours> || std::is_enum_v<Ours>;
    constexpr bool kIsTheirNumber = std::is_integral_v<Theirs> || std::is_enum_v<Theirs>;
    return kIsOurNumber && kIsTheirNumber && sizeof(Ours) == sizeof(Theirs);
  }
}

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct SameFunction<OurResult(Ours...), TheirResult(Theirs...)>
    : std::bool_constant<is_same_abi<OurResult, TheirResult>() && (is_same_abi<Ours, Theirs>() && ...)> {};

template <typename Ours, typename Theirs>
constexpr bool kIsSame = SameFunction<std::remove_pointer_t<Ours>, Theirs>::value;

#define STOKER_CHECK_PROTOTYPE(type, name, parameters) \
  static_assert(kIsSame<decltype(Api::name), decltype(::name)>, #name);
STOKER_HDF5_FUNCTIONS(STOKER_CHECK_PROTOTYPE)
#undef STOKER_CHECK_PROTOTYPE

#define STOKER_CHECK_ID(name) static_assert(std::is_same_v<Id, decltype(::name)>, #name);
STOKER_HDF5_IDS(STOKER_CHECK_ID)
#undef STOKER_CHECK_ID

// Members of Api whose functions have a suffix since they have several versions. The names behind hdf5.h's
// macros must not be used for Api here.
using LinkInfoFunction = int(Id, const char*, LinkInfo*, Id);
using ReadChunkFunction = int(Id, Id, const Size*, std::uint32_t*, void*);
using IterateChunksFunction = int(Id, Id, ChunkCallback, void*);
#if H5_VERSION_GE(1, 12, 0)
static_assert(kIsSame<LinkInfoFunction, decltype(::H5Lget_info1)>);
using LibraryLinkInfo = H5L_info1_t;
#else
static_assert(kIsSame<LinkInfoFunction, decltype(::H5Lget_info)>);
using LibraryLinkInfo = H5L_info_t;
#endif
#if H5_VERSION_GE(2, 0, 0)
static_assert(kIsSame<ReadChunkFunction, decltype(::H5Dread_chunk1)>);
#else
static_assert(kIsSame<ReadChunkFunction, decltype(::H5Dread_chunk)>);
#endif
#if H5_VERSION_GE(1, 14, 2)
static_assert(kIsSame<IterateChunksFunction, decltype(::H5Dchunk_iter)>);
#endif

static_assert(sizeof(GroupInfo) == sizeof(H5G_info_t));
static_assert(offsetof(GroupInfo, storage_type) == offsetof(H5G_info_t, storage_type));
static_assert(offsetof(GroupInfo, links) == offsetof(H5G_info_t, nlinks));
static_assert(offsetof(GroupInfo, max_order) == offsetof(H5G_info_t, max_corder));
static_assert(offsetof(GroupInfo, is_mounted) == offsetof(H5G_info_t, mounted));
static_assert(sizeof(LinkInfo) >= sizeof(LibraryLinkInfo));
static_assert(offsetof(LinkInfo, type) == offsetof(LibraryLinkInfo, type));
static_assert(sizeof(ErrorEntry) == sizeof(H5E_error2_t));
static_assert(offsetof(ErrorEntry, line) == offsetof(H5E_error2_t, line));
static_assert(offsetof(ErrorEntry, text) == offsetof(H5E_error2_t, desc));

template <typename Ours, typename Theirs>
constexpr bool has_value(Ours ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}
static_assert(has_value(TypeClass::integer, H5T_INTEGER) && has_value(TypeClass::floating, H5T_FLOAT));
static_assert(has_value(TypeClass::string, H5T_STRING) && has_value(TypeClass::opaque, H5T_OPAQUE));
static_assert(has_value(TypeClass::compound, H5T_COMPOUND) && has_value(TypeClass::reference, H5T_REFERENCE));
static_assert(has_value(TypeClass::enumeration, H5T_ENUM) && has_value(TypeClass::sequence, H5T_VLEN));
static_assert(has_value(TypeClass::array, H5T_ARRAY));
static_assert(has_value(Layout::compact, H5D_COMPACT) && has_value(Layout::contiguous, H5D_CONTIGUOUS));
static_assert(has_value(Layout::chunked, H5D_CHUNKED) && has_value(Layout::virtual_, H5D_VIRTUAL));
static_assert(has_value(ObjectType::group, H5I_GROUP) && has_value(ObjectType::dataset, H5I_DATASET));
static_assert(has_value(kSoftLink, H5L_TYPE_SOFT) && has_value(kHardLink, H5L_TYPE_HARD));
static_assert(kNoAddress == HADDR_UNDEF && kDefault == H5P_DEFAULT && kDefault == H5S_ALL);

// The comparison must detect a difference.
static_assert(!kIsSame<int(Id), decltype(::H5Fflush)>, "number of parameters");
static_assert(!kIsSame<int(int), decltype(::H5Fclose)>, "size of a parameter");
static_assert(!kIsSame<int(Id, double), decltype(::H5Fflush)>, "kind of a parameter");
static_assert(!kIsSame<std::int64_t(Id), decltype(::H5Fclose)>, "size of the result");
static_assert(!kIsSame<int(Id, int*), decltype(::H5Gget_info)>, "structure behind a pointer");

}  // namespace
}  // namespace stoker::arrays::hdf5
#endif

TEST(Hdf5Prototypes, match_the_installed_header) {
#ifndef STOKER_HAS_HDF5_HEADER
  GTEST_SKIP() << "hdf5.h is not installed: apt-get install libhdf5-dev";
#endif
}
