#include "checkpoint/convert/import.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "archive/safetensors.h"
#include "base/file.h"
#include "base/json/json.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/read/step_reader.h"
#include "stoker/checkpoint.h"

namespace stoker::checkpoint {

namespace {

// A box of a tensor, stored in one file.
struct Box {
  Shape offset;
  Shape shape;
  std::size_t file = 0;
  std::uint64_t at = 0;  // byte offset in the file
};

struct ImportedTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<Box> boxes;
  std::vector<std::byte> bytes;
};

using Tensors = std::map<std::string, ImportedTensor>;

Result<std::vector<Path>> files_of(const Path& source) {
  if (!folder_exists(source)) return std::vector<Path>{source};
  STOKER_ASSIGN_OR_RETURN(names, list_directory(source));
  std::vector<Path> files;
  for (const std::string& name : names) {
    if (name.ends_with(kTensorSuffix)) files.push_back(source / name);
  }
  if (files.empty()) return not_found("{}: no .safetensors file", printable(source.string()));
  return files;
}

// {"w": {"saved_offsets": [8, 0]}}: position of the piece in its tensor. Zeros if missing.
Result<Shape> offset_of(const std::string& subject, const nlohmann::json& info,
                        const archive::SafetensorsEntry& entry) {
  Shape offset(entry.shape.size(), 0);
  const auto found = info.find(entry.name);
  if (found == info.end()) return offset;
  const auto saved = found->is_object() ? found->find("saved_offsets") : found->end();
  const Status damaged =
      corrupt("{}: tensor '{}': DCP_SHARDING_INFO is damaged", subject, printable(entry.name));
  if (!found->is_object() || saved == found->end() || !saved->is_array() || saved->size() != offset.size())
    return damaged;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    if (!(*saved)[i].is_number_unsigned()) return damaged;
    const auto value = (*saved)[i].get<std::uint64_t>();
    if (value > 1ull << 62 || entry.shape[i] > 1ll << 62) return damaged;
    offset[i] = static_cast<std::int64_t>(value);
  }
  return offset;
}

Status add_file(const Path& path, std::size_t index, Tensors& tensors) {
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(header, archive::read_safetensors_header(path));
  const auto text = header.metadata.find("DCP_SHARDING_INFO");
  const nlohmann::json info =
      text == header.metadata.end() ? nlohmann::json::object() : parse_json<nlohmann::json>(text->second);
  if (!info.is_object()) return corrupt("{}: DCP_SHARDING_INFO is not JSON", subject);
  for (const archive::SafetensorsEntry& entry : header.entries) {
    STOKER_ASSIGN_OR_RETURN(offset, offset_of(subject, info, entry));
    ImportedTensor& tensor = tensors[entry.name];
    if (tensor.boxes.empty()) {
      tensor.dtype = entry.dtype;
      tensor.shape.assign(entry.shape.size(), 0);
    }
    if (tensor.dtype != entry.dtype || tensor.shape.size() != entry.shape.size()) {
      return corrupt("{}: tensor '{}': type differs between files", subject, printable(entry.name));
    }
    for (std::size_t i = 0; i < offset.size(); ++i)
      tensor.shape[i] = std::max(tensor.shape[i], offset[i] + entry.shape[i]);
    tensor.boxes.push_back({offset, entry.shape, index, header.data_begin + entry.begin});
  }
  return {};
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (a.offset[i] + a.shape[i] <= b.offset[i] || b.offset[i] + b.shape[i] <= a.offset[i]) return false;
  }
  return true;
}

// Disjoint boxes with the element count of the tensor cover it completely.
Status check_boxes(const std::string& where, const ImportedTensor& tensor) {
  const auto whole = archive::tensor_bytes(tensor.dtype, tensor.shape);
  if (!whole) return corrupt("{}: shape is too large", where);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tensor.boxes.size(); ++i) {
    sum += archive::tensor_bytes(tensor.dtype, tensor.boxes[i].shape).value_or(0);
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(tensor.boxes[i], tensor.boxes[j]))
        return corrupt("{}: two files contain the same elements", where);
    }
  }
  if (sum == *whole) return {};
  return corrupt("{}: {} of {} bytes are in no file", where, *whole - std::min(*whole, sum), *whole);
}

// Copies a box row by row (last dimension) to its position in the tensor.
void place(const ImportedTensor& tensor, const Box& box, std::span<const std::byte> from,
           std::span<std::byte> to) {
  if (from.empty()) return;
  const std::size_t dimensions = box.shape.size();
  const std::size_t size = size_of(tensor.dtype);
  if (dimensions == 0) {
    std::memcpy(to.data(), from.data(), size);
    return;
  }
  const std::size_t line = static_cast<std::size_t>(box.shape[dimensions - 1]) * size;
  Shape at(dimensions, 0);
  for (std::size_t done = 0; done < from.size(); done += line) {
    std::uint64_t element = 0;
    for (std::size_t i = 0; i < dimensions; ++i)
      element = element * static_cast<std::uint64_t>(tensor.shape[i]) +
                static_cast<std::uint64_t>(box.offset[i] + at[i]);
    std::memcpy(to.data() + element * size, from.data() + done, line);
    for (std::size_t i = dimensions - 1; i-- > 0;) {
      if (++at[i] < box.shape[i]) break;
      at[i] = 0;
    }
  }
}

Status read_boxes(const std::vector<File>& files, ImportedTensor& tensor, Progress& progress) {
  tensor.bytes.resize(*archive::tensor_bytes(tensor.dtype, tensor.shape));
  std::vector<std::byte> buffer;
  for (const Box& box : tensor.boxes) {
    if (progress.stop_requested()) return cancelled("checkpoint: conversion stopped");
    const std::uint64_t bytes = archive::tensor_bytes(tensor.dtype, box.shape).value_or(0);
    if (box.shape == tensor.shape) {
      STOKER_RETURN_IF_ERROR(files[box.file].read_at(box.at, tensor.bytes));
      continue;
    }
    buffer.resize(bytes);
    STOKER_RETURN_IF_ERROR(files[box.file].read_at(box.at, buffer));
    place(tensor, box, buffer, tensor.bytes);
  }
  return {};
}

// The run of existing steps there, otherwise the directory's name.
std::string run_of(const Path& directory) {
  const auto steps = step_folders(directory);
  if (steps.ok() && !steps->empty()) {
    const auto manifest = read_manifest(directory / step_folder_name(steps->back()));
    if (manifest.ok()) return manifest->run;
  }
  const std::string name = std::filesystem::weakly_canonical(directory).filename().string();
  return name.empty() || printable(name) != name ? "converted" : name;
}

Status save(const Path& target, Step step, const Tensors& tensors) {
  StepContents contents;
  contents.step = step;
  for (const auto& [name, tensor] : tensors)
    contents.parameters.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
  SaverOptions options;
  options.directory = target.has_parent_path() ? target.parent_path() : Path(".");
  options.run = run_of(options.directory);
  options.writer = "convert-" + random_name();
  options.keep_last = 0;
  STOKER_ASSIGN_OR_RETURN(saver, Saver::create(std::move(options)));
  STOKER_RETURN_IF_ERROR(saver->save(contents));
  return saver->finish(Deadline::after(std::chrono::hours(1)));
}

}  // namespace

Result<Imported> import_step(const Path& source, const Path& target, Progress& progress) {
  const auto step = step_of_folder(target.filename().string());
  if (!step) {
    return invalid("{}: is not a valid step folder name", printable(target.string()))
        .cure("{}", shell_quote((target / "step-0").string()));
  }
  if (path_exists(target)) return exists("{}: already exists", printable(target.string()));
  STOKER_ASSIGN_OR_RETURN(paths, files_of(source));
  Tensors tensors;
  std::vector<File> files;
  for (const Path& path : paths) {
    STOKER_RETURN_IF_ERROR(add_file(path, files.size(), tensors));
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
    files.push_back(std::move(file));
  }
  for (const auto& [name, tensor] : tensors) {
    STOKER_RETURN_IF_ERROR(
        check_boxes(format("{}: tensor '{}'", printable(source.string()), printable(name)), tensor));
  }
  Imported imported{tensors.size(), files.size(), 0};
  for (auto& [name, tensor] : tensors) {
    STOKER_RETURN_IF_ERROR(read_boxes(files, tensor, progress));
    imported.bytes += tensor.bytes.size();
  }
  STOKER_RETURN_IF_ERROR(save(target, *step, tensors));
  return imported;
}

}  // namespace stoker::checkpoint
