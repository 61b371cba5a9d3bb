#include "dataset/container_kind.h"

namespace stoker::dataset {

std::string_view to_text(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::tar:
      return "tar";
    case ContainerKind::tfrecord:
      return "tfrecord";
    case ContainerKind::parquet:
      return "parquet";
    case ContainerKind::hdf5:
      return "hdf5";
    case ContainerKind::mds:
      return "mds";
    case ContainerKind::npy:
      return "npy";
    case ContainerKind::zarr:
    case ContainerKind::zarr_2:
      break;
  }
  return "zarr";
}

std::string_view shard_extension(ContainerKind kind) {
  const bool is_zarr = kind == ContainerKind::zarr || kind == ContainerKind::zarr_2;
  return is_zarr ? "zarr.zip" : to_text(kind);
}

}  // namespace stoker::dataset
