// A batch for Python: arrays over the loader's memory, which is returned to the loader when the last array is
// freed. Thread-compatible, under the GIL.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>
#include <vector>

#include "dataset/shard_source.h"
#include "stoker/loader.h"

namespace stoker::python {

/// Supports DLPack and the buffer protocol.
using Array = nanobind::ndarray<nanobind::array_api>;

/// The DLPack type.
nanobind::dlpack::dtype dlpack_type(DType type);

class PyBatch {
 public:
  /// `source` owns the keys; `kinds` belong to LoaderOptions::fields.
  PyBatch(loader::Batch batch, std::shared_ptr<dataset::ShardSource> source,
          std::vector<loader::FieldKind> kinds)
      : pid_(::getpid()), batch_(std::move(batch)), source_(std::move(source)), kinds_(std::move(kinds)) {}
  ~PyBatch();
  PyBatch(const PyBatch&) = delete;
  PyBatch& operator=(const PyBatch&) = delete;

  std::size_t count() const { return batch_.count(); }
  // Arrays owned by `self`, this batch's Python object.
  Array image(nanobind::handle self);
  Array bytes(nanobind::handle self);
  Array offsets(nanobind::handle self);
  /// The classes; with mixed samples, the weight of each class for each sample.
  Array label(nanobind::handle self);
  Array index(nanobind::handle self);
  nanobind::list key() const;
  /// The values of LoaderOptions::fields[i]: an array, or a list of str.
  nanobind::object column(nanobind::handle self, std::size_t i);

 private:
  const int pid_;
  loader::Batch batch_;
  std::shared_ptr<dataset::ShardSource> source_;  // shared with the feed, which may be destroyed earlier
  std::vector<loader::FieldKind> kinds_;
};

}  // namespace stoker::python
