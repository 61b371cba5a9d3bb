// libhdf5, loaded when the first HDF5 file is opened. Declares the part of its C interface that has been
// stable since version 1.10.5, so that building needs no HDF5 headers. Used only inside this folder. libhdf5
// is not thread-safe: callers hold hdf5_mutex(), or run in a separate process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

#include "base/thread.h"
#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

using Id = std::int64_t;          // hid_t
using Size = unsigned long long;  // hsize_t

constexpr Id kDefault = 0;  // H5P_DEFAULT, H5S_ALL, H5E_DEFAULT
constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

enum class TypeClass {
  integer = 0,
  floating = 1,
  string = 3,
  opaque = 5,
  compound = 6,
  reference = 7,
  enumeration = 8,
  sequence = 9,
  array = 10
};
enum class Layout { compact = 0, contiguous = 1, chunked = 2, virtual_ = 3 };
enum class ObjectType { group = 2, dataset = 5 };

struct GroupInfo {
  int storage_type;
  Size links;
  std::int64_t max_order;
  bool is_mounted;
};
struct LinkInfo {
  int type;
  bool has_order;
  std::int64_t order;
  int charset;
  std::uint64_t object;  // of a hard link: the address, or the first half of the token, which has it
  char rest[96];         // larger than in any version
};
constexpr int kSoftLink = 1;
constexpr int kHardLink = 0;
struct ErrorEntry {
  Id of_class, major, minor;
  unsigned line;
  const char* function;
  const char* file;
  const char* text;
};

using ElinkCallback = int (*)(const char*, const char*, const char*, const char*, unsigned*, Id, void*);
using ErrorCallback = int (*)(unsigned, const ErrorEntry*, void*);
using ChunkCallback = int (*)(const Size* offset, unsigned mask, std::uint64_t address, Size bytes, void*);

// All functions that are called, under their own names.
#define STOKER_HDF5_FUNCTIONS(F)                                                                            \
  F(int, H5open, (void))                                                                                    \
  F(int, H5get_libversion, (unsigned*, unsigned*, unsigned*))                                               \
  F(int, H5Eset_auto2, (Id, void*, void*))                                                                  \
  F(int, H5Ewalk2, (Id, int, ErrorCallback, void*))                                                         \
  F(int, H5Eclear2, (Id))                                                                                   \
  F(Id, H5Fopen, (const char*, unsigned, Id))                                                               \
  F(Id, H5Fcreate, (const char*, unsigned, Id, Id))                                                         \
  F(int, H5Fflush, (Id, int))                                                                               \
  F(int, H5Fclose, (Id))                                                                                    \
  F(Id, H5Fget_create_plist, (Id))                                                                          \
  F(ssize_t, H5Fget_name, (Id, char*, std::size_t))                                                         \
  F(int, H5Gget_info, (Id, GroupInfo*))                                                                     \
  F(ssize_t, H5Lget_name_by_idx, (Id, const char*, int, int, Size, char*, std::size_t, Id))                 \
  F(Id, H5Oopen, (Id, const char*, Id))                                                                     \
  F(int, H5Oclose, (Id))                                                                                    \
  F(int, H5Iget_type, (Id))                                                                                 \
  F(Id, H5Iget_file_id, (Id))                                                                               \
  F(Id, H5Dcreate2, (Id, const char*, Id, Id, Id, Id, Id))                                                  \
  F(int, H5Dclose, (Id))                                                                                    \
  F(Id, H5Dget_space, (Id))                                                                                 \
  F(Id, H5Dget_type, (Id))                                                                                  \
  F(Id, H5Dget_create_plist, (Id))                                                                          \
  F(std::uint64_t, H5Dget_offset, (Id))                                                                     \
  F(int, H5Dget_num_chunks, (Id, Id, Size*))                                                                \
  F(int, H5Dget_chunk_info, (Id, Id, Size, Size*, unsigned*, std::uint64_t*, Size*))                        \
  F(int, H5Dwrite_chunk, (Id, Id, std::uint32_t, const Size*, std::size_t, const void*))                    \
  F(int, H5Dread, (Id, Id, Id, Id, Id, void*))                                                              \
  F(int, H5Dwrite, (Id, Id, Id, Id, Id, const void*))                                                       \
  F(Id, H5Screate_simple, (int, const Size*, const Size*))                                                  \
  F(int, H5Sclose, (Id))                                                                                    \
  F(int, H5Sget_simple_extent_ndims, (Id))                                                                  \
  F(int, H5Sget_simple_extent_dims, (Id, Size*, Size*))                                                     \
  F(int, H5Sget_simple_extent_type, (Id))                                                                   \
  F(int, H5Sget_select_bounds, (Id, Size*, Size*))                                                          \
  F(long long, H5Sget_select_npoints, (Id))                                                                 \
  F(int, H5Sselect_hyperslab, (Id, int, const Size*, const Size*, const Size*, const Size*))                \
  F(int, H5Tget_class, (Id))                                                                                \
  F(std::size_t, H5Tget_size, (Id))                                                                         \
  F(int, H5Tget_order, (Id))                                                                                \
  F(std::size_t, H5Tget_precision, (Id))                                                                    \
  F(int, H5Tget_offset, (Id))                                                                               \
  F(int, H5Tget_sign, (Id))                                                                                 \
  F(int, H5Tget_fields, (Id, std::size_t*, std::size_t*, std::size_t*, std::size_t*, std::size_t*))         \
  F(std::size_t, H5Tget_ebias, (Id))                                                                        \
  F(int, H5Tget_norm, (Id))                                                                                 \
  F(int, H5Tget_strpad, (Id))                                                                               \
  F(Id, H5Tget_super, (Id))                                                                                 \
  F(int, H5Tis_variable_str, (Id))                                                                          \
  F(int, H5Tget_nmembers, (Id))                                                                             \
  F(char*, H5Tget_member_name, (Id, unsigned))                                                              \
  F(int, H5Tget_member_value, (Id, unsigned, void*))                                                        \
  F(Id, H5Tget_member_type, (Id, unsigned))                                                                 \
  F(std::size_t, H5Tget_member_offset, (Id, unsigned))                                                      \
  F(int, H5Tget_array_ndims, (Id))                                                                          \
  F(int, H5Tget_array_dims2, (Id, Size*))                                                                   \
  F(int, H5free_memory, (void*))                                                                            \
  F(Id, H5Tcopy, (Id))                                                                                      \
  F(Id, H5Tcreate, (int, std::size_t))                                                                      \
  F(Id, H5Tenum_create, (Id))                                                                               \
  F(int, H5Tenum_insert, (Id, const char*, const void*))                                                    \
  F(int, H5Tinsert, (Id, const char*, std::size_t, Id))                                                     \
  F(int, H5Tset_size, (Id, std::size_t))                                                                    \
  F(int, H5Tset_fields, (Id, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t))              \
  F(int, H5Tset_ebias, (Id, std::size_t))                                                                   \
  F(int, H5Tset_strpad, (Id, int))                                                                          \
  F(int, H5Tset_tag, (Id, const char*))                                                                     \
  F(int, H5Tclose, (Id))                                                                                    \
  F(Id, H5Pcreate, (Id))                                                                                    \
  F(int, H5Pclose, (Id))                                                                                    \
  F(int, H5Pget_layout, (Id))                                                                               \
  F(int, H5Pget_chunk, (Id, int, Size*))                                                                    \
  F(int, H5Pset_chunk, (Id, int, const Size*))                                                              \
  F(int, H5Pget_chunk_opts, (Id, unsigned*))                                                                \
  F(int, H5Pget_nfilters, (Id))                                                                             \
  F(int, H5Pget_filter2, (Id, unsigned, unsigned*, std::size_t*, unsigned*, std::size_t, char*, unsigned*)) \
  F(int, H5Pset_deflate, (Id, unsigned))                                                                    \
  F(int, H5Pset_shuffle, (Id))                                                                              \
  F(int, H5Pget_external_count, (Id))                                                                       \
  F(int, H5Pget_fill_value, (Id, Id, void*))                                                                \
  F(int, H5Pfill_value_defined, (Id, int*))                                                                 \
  F(int, H5Pget_userblock, (Id, Size*))                                                                     \
  F(int, H5Pget_sizes, (Id, std::size_t*, std::size_t*))                                                    \
  F(int, H5Pset_create_intermediate_group, (Id, unsigned))                                                  \
  F(int, H5Pset_elink_cb, (Id, ElinkCallback, void*))                                                       \
  F(int, H5Pget_virtual_count, (Id, std::size_t*))                                                          \
  F(ssize_t, H5Pget_virtual_filename, (Id, std::size_t, char*, std::size_t))                                \
  F(ssize_t, H5Pget_virtual_dsetname, (Id, std::size_t, char*, std::size_t))                                \
  F(Id, H5Pget_virtual_vspace, (Id, std::size_t))                                                           \
  F(Id, H5Pget_virtual_srcspace, (Id, std::size_t))                                                         \
  F(int, H5Pset_virtual, (Id, Id, const char*, const char*, Id))

// Identifiers that are known only after H5open(): types and classes of property lists.
#define STOKER_HDF5_IDS(F)       \
  F(H5P_CLS_DATASET_CREATE_ID_g) \
  F(H5P_CLS_DATASET_ACCESS_ID_g) \
  F(H5P_CLS_LINK_CREATE_ID_g)    \
  F(H5T_STD_I8LE_g)              \
  F(H5T_STD_I16LE_g)             \
  F(H5T_STD_I32LE_g)             \
  F(H5T_STD_I64LE_g)             \
  F(H5T_STD_U8LE_g)              \
  F(H5T_STD_U16LE_g)             \
  F(H5T_STD_U32LE_g) F(H5T_STD_U64LE_g) F(H5T_IEEE_F32LE_g) F(H5T_IEEE_F64LE_g) F(H5T_C_S1_g)

struct Api {
#define STOKER_DECLARE(type, name, parameters) type(*name) parameters = nullptr;
  STOKER_HDF5_FUNCTIONS(STOKER_DECLARE)
#undef STOKER_DECLARE
  // Functions with two names, depending on the version.
  int (*H5Lget_info)(Id, const char*, LinkInfo*, Id) = nullptr;
  int (*H5Dread_chunk)(Id, Id, const Size*, std::uint32_t*, void*) = nullptr;
  int (*H5Dchunk_iter)(Id, Id, ChunkCallback,
                       void*) = nullptr;  // null if it is missing or counts differently
#define STOKER_DECLARE(name) Id* name = nullptr;
  STOKER_HDF5_IDS(STOKER_DECLARE)
#undef STOKER_DECLARE

  std::string library;            ///< the loaded file
  std::string version;            ///< of the library: "1.14.6"
  bool counts_userblock = false;  ///< whether addresses of chunks include the userblock

  /// Returns the text of libhdf5's innermost error since the last call, and clears it.
  std::string last_error() const;
  /// Whether this last_error() means that a newer library wrote the file, or that a version number is
  /// damaged.
  static bool is_newer_version_error(std::string_view why);
  /// "<subject>: <what> (<why>)" with `why` from last_error(): Corrupt, or Invalid with a cure if
  /// is_newer_version_error().
  Status failure(std::string_view subject, std::string_view what, std::string_view why) const;
};

/// Loads the library on the first call. Unavailable, with an install command, if it is missing or too old. It
/// stays loaded.
Result<const Api*> api();

/// Locked while any function of libhdf5 runs in this process.
Mutex& hdf5_mutex();

/// Closes a handle of libhdf5.
class Handle {
 public:
  Handle(Id id, int (*close)(Id)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0 && close_ != nullptr) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;

  Id get() const { return id_; }
  bool is_open() const { return id_ >= 0; }
  /// Closes the handle and returns whether that succeeded.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  Id id_;
  int (*close_)(Id);
};

}  // namespace stoker::arrays::hdf5
