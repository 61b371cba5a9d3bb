// What tests/test_zarr.py and tests/test_hdf5.py drive: arrays of a store read to standard output, or written
// from standard input, through the library.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "arrays/hdf5/dataset.h"
#include "arrays/hdf5/writer.h"
#include "arrays/zarr/array.h"
#include "arrays/zarr/store.h"
#include "arrays/zarr/writer.h"
#include "base/file.h"

namespace {

using namespace stoker;
using namespace stoker::arrays;
using namespace stoker::codec;

using Words = std::vector<std::string>;

void put(std::span<const std::byte> bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

std::uint64_t number(const std::string& word) {
  std::uint64_t value = 0;
  if (!parse_number(word, &value)) std::exit(2);
  return value;
}

std::string input() { return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}; }

// STORE ARRAY [ROW...]: the metadata, or those rows, or all of it
Status zarr_info(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(metadata, read_zarr_metadata(words.at(0), words.at(1)));
  std::cout << to_json(metadata);
  return {};
}

Status zarr_read(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(array, ZarrArray::open(words.at(0), words.at(1)));
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 2; i < words.size(); ++i) rows.push_back(number(words[i]));
  const std::uint64_t count = rows.empty() ? array->rows() : rows.size();
  std::vector<std::byte> out(count * array->row_bytes());
  STOKER_RETURN_IF_ERROR(rows.empty() ? array->read_rows(0, count, out) : array->read_rows(rows, out));
  put(out);
  return {};
}

Status zarr_list(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(nodes, list_zarr(words.at(0)));
  for (const ZarrNode& node : nodes) {
    std::cout << (node.kind == ZarrNode::Kind::array ? "array" : "group") << node.version << " " << node.path
              << "\n";
  }
  return {};
}

// FOLDER METADATA-FILE < elements
Status zarr_write(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(words.at(1)));
  Result<ZarrMetadata> metadata = parse_zarr_v3(text, words[1]);
  if (!metadata.ok()) metadata = parse_zarr_v2(text, "", words[1]);
  STOKER_RETURN_IF_ERROR(metadata.status());
  STOKER_ASSIGN_OR_RETURN(writer, ZarrWriter::create(words.at(0), *metadata, ZarrWriter::Existing::resume));
  const std::string elements = input();
  const auto bytes = std::as_bytes(std::span(elements));
  const std::uint64_t rows = metadata->shape.empty() ? 1 : std::max<std::uint64_t>(1, metadata->shape[0]);
  const std::uint64_t row_bytes = bytes.size() / rows;
  for (std::uint64_t block = 0; block < writer.blocks(); ++block) {
    const auto part =
        bytes.subspan(block * writer.rows_per_block() * row_bytes, writer.rows_of(block) * row_bytes);
    STOKER_RETURN_IF_ERROR(writer.write_block(block, part, 2));
  }
  return writer.finish();
}

Status zarr_group(const Words& words) {
  return write_zarr_group(words.at(0), static_cast<int>(number(words.at(1))));
}
Status zarr_consolidate(const Words& words) { return consolidate_zarr(words.at(0)); }

Status hdf5_list(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(names, list_hdf5(words.at(0)));
  for (const std::string& name : names) std::cout << name << "\n";
  return {};
}

Hdf5Options others(const std::string& word) {
  return {.external_files = word == "anywhere" ? ExternalFiles::anywhere
                            : word == "beside" ? ExternalFiles::same_folder
                                               : ExternalFiles::refuse};
}

// FILE refuse|beside|anywhere DATASET [ROW...]
Status hdf5_read(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(dataset, Hdf5Dataset::open(words.at(0), words.at(2), others(words.at(1))));
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 3; i < words.size(); ++i) rows.push_back(number(words[i]));
  const std::uint64_t count = rows.empty() ? dataset->rows() : rows.size();
  std::vector<std::byte> out(count * dataset->row_bytes());
  STOKER_RETURN_IF_ERROR(rows.empty() ? dataset->read_rows(0, count, out) : dataset->read_rows(rows, out));
  put(out);
  return {};
}

// FILE VALUES INDEX SAMPLE
Status hdf5_ragged(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(both,
                          Hdf5Dataset::open(words.at(0), std::vector<std::string>{words.at(1), words.at(2)}));
  STOKER_ASSIGN_OR_RETURN(ragged, Hdf5Ragged::open(std::move(both[0]), *both[1]));
  const std::uint64_t sample = number(words.at(3));
  if (sample >= ragged.samples()) return invalid("no sample {}", sample);
  std::vector<std::byte> out(ragged.rows(sample) * ragged.values().row_bytes());
  STOKER_RETURN_IF_ERROR(ragged.read(sample, out));
  put(out);
  return {};
}

Extents sizes(const std::string& word) {
  Extents found;
  for (const std::string_view size : split(word, 'x')) found.push_back(number(std::string(size)));
  return found;
}

Result<Hdf5DatasetSpec> hdf5_spec(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(type, parse_zarr_v2_type(words.at(2)));
  Hdf5DatasetSpec spec{
      .path = words.at(1), .shape = sizes(words.at(3)), .chunks = sizes(words.at(4)), .type = type.type};
  if (words.at(5) == "none") spec.deflate_level.reset();
  if (words.at(5) != "none") spec.deflate_level = static_cast<int>(number(words.at(5)));
  return spec;
}

// FILE DATASET TYPE SHAPE CHUNKS LEVEL|none < elements
Status hdf5_write(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(spec, hdf5_spec(words));
  STOKER_ASSIGN_OR_RETURN(writer, Hdf5Writer::create(words.at(0), {spec}));
  const std::string elements = input();
  const auto bytes = std::as_bytes(std::span(elements));
  const std::uint64_t row_bytes = bytes.size() / std::max<std::uint64_t>(1, spec.shape[0]);
  for (std::uint64_t block = writer->blocks(0); block-- > 0;) {  // in any order
    const auto part =
        bytes.subspan(block * writer->rows_per_block(0) * row_bytes, writer->rows_of(0, block) * row_bytes);
    STOKER_RETURN_IF_ERROR(writer->write_block(0, block, part, 2));
  }
  return writer->finish();
}

// FILE DATASET TYPE SHAPE CHUNKS none PART=ROWS...
Status hdf5_virtual(const Words& words) {
  STOKER_ASSIGN_OR_RETURN(spec, hdf5_spec(words));
  std::vector<Hdf5Part> parts;
  for (std::size_t i = 6; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    parts.push_back({words[i].substr(0, equals), number(words[i].substr(equals + 1))});
  }
  return write_hdf5_virtual(words.at(0), std::vector<Hdf5DatasetSpec>{spec}, parts);
}

struct Verb {
  std::string_view name;
  Status (*run)(const Words&);
};
constexpr Verb kVerbs[] = {
    {"zarr-info", zarr_info},   {"zarr-read", zarr_read},      {"zarr-list", zarr_list},
    {"zarr-write", zarr_write}, {"zarr-group", zarr_group},    {"zarr-consolidate", zarr_consolidate},
    {"hdf5-list", hdf5_list},   {"hdf5-read", hdf5_read},      {"hdf5-ragged", hdf5_ragged},
    {"hdf5-write", hdf5_write}, {"hdf5-virtual", hdf5_virtual}};

}  // namespace

int main(int count, char** words) {
  for (const Verb& verb : kVerbs) {
    if (count < 3 || verb.name != words[1]) continue;
    const Status status = verb.run(Words(words + 2, words + count));
    if (status.ok()) return 0;
    std::cerr << status.to_string() << "\n";
    return 1;
  }
  return 2;
}
