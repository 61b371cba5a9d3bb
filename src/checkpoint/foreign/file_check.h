// Checks whether a file from other software is complete: torch.save, Keras, HDF5 and safetensors record their
// own length. Reads only the ends of a file and unpickles nothing. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::checkpoint {

/// File format by name.
enum class FileKind : std::uint8_t { torch, keras, hdf5, safetensors };
constexpr std::string_view to_text(FileKind kind) {
  constexpr std::string_view kNames[] = {"torch", "keras", "hdf5", "safetensors"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// By suffix: .pt .pth .bin .ckpt, .keras, .h5 .hdf5, .safetensors.
std::optional<FileKind> file_kind(std::string_view name);

/// Corrupt or invalid "<path>: ..." if the file is truncated or not of the format of its name.
Status check_complete(const Path& path, FileKind kind);

}  // namespace stoker::checkpoint
