// One batch as Python sees it: arrays over the loader's own memory, which goes back to the loader when the
// last array is gone. Thread-compatible, under the GIL.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>
#include <vector>

#include "data/loader.h"
#include "format/shard_source.h"

namespace stoker::python {

/// Speaks DLPack and the buffer protocol.
using Array = nanobind::ndarray<nanobind::array_api>;

/// The type as DLPack names it.
nanobind::dlpack::dtype dlpack_type(DType type);

class Batch {
 public:
  /// `source` keeps the keys; `kinds` are those of LoaderOptions::fields.
  Batch(data::Batch batch, std::shared_ptr<formats::ShardSource> source, std::vector<data::FieldKind> kinds)
      : pid_(::getpid()), batch_(std::move(batch)), source_(std::move(source)), kinds_(std::move(kinds)) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  std::size_t count() const { return batch_.count(); }
  // Arrays whose owner is `self`, this batch's Python object.
  Array image(nanobind::handle self);
  Array bytes(nanobind::handle self);
  Array offsets(nanobind::handle self);
  /// The classes; where samples are mixed, what each class counts for each sample.
  Array label(nanobind::handle self);
  Array index(nanobind::handle self);
  nanobind::list key() const;
  /// The values of LoaderOptions::fields[i]: an array, or a list of str.
  nanobind::object column(nanobind::handle self, std::size_t i);

 private:
  const int pid_;
  data::Batch batch_;
  std::shared_ptr<formats::ShardSource> source_;  // shared with the feed, which may be gone before
  std::vector<data::FieldKind> kinds_;
};

}  // namespace stoker::python
