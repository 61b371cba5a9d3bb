#include <algorithm>

#include "base/encode.h"
#include "base/json/json.h"
#include "checkpoint/manifest.h"
#include "checkpoint/manifest_form.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

using OrderedJson = nlohmann::ordered_json;

std::string dump(const OrderedJson& json) { return json_text(json); }

// Written by hand, here and below: a step has tens of thousands of pieces, and the library makes a tree of
// each.
void add_text(std::string& to, std::string_view text) {
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (is_plain) {
    to.append("\"").append(text).append("\"");
  } else {
    to += json_string(text);
  }
}

template <typename Integer>
void add_list(std::string& to, const std::vector<Integer>& values) {
  to += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ',';
    to += std::to_string(values[i]);
  }
  to += ']';
}

void add_name_and_form(std::string& to, const std::string& name, DType dtype, const Shape& shape) {
  to += "{\"name\":";
  add_text(to, name);
  to.append(",\"dtype\":\"").append(to_text(dtype)).append("\",\"shape\":");
  add_list(to, shape);
}

void add_piece(std::string& to, const Piece& piece) {
  add_name_and_form(to, piece.name, piece.dtype, piece.shape);
  to.append(",\"first_row\":").append(std::to_string(piece.first_row)).append(",\"data\":[");
  to.append(std::to_string(piece.begin)).append(",").append(std::to_string(piece.end)).append("]}");
}

// Eight digits each.
void add_sums(std::string& to, const std::vector<std::uint32_t>& sums) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  to += '"';
  for (const std::uint32_t sum : sums) {
    for (int shift = 28; shift >= 0; shift -= 4) to += kDigits[sum >> shift & 15];
  }
  to += '"';
}

std::string file_text(const ShardFile& file) {
  std::string text = "{\"path\":";
  add_text(text, file.path);
  text += format(",\"rank\":{},\"bytes\":{},\"header_bytes\":{},\"crc32c\":", file.rank.value, file.bytes,
                 file.header_bytes);
  add_sums(text, file.blocks);
  text += ",\"pieces\":[";
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    if (i > 0) text += ',';
    add_piece(text, file.pieces[i]);
  }
  return text + "]}";
}

std::string tensor_text(const TensorInfo& tensor) {
  std::string text;
  add_name_and_form(text, tensor.name, tensor.dtype, tensor.shape);
  return text + "}";
}

// One element a line, so that people can read it and diff it.
template <typename Items, typename ToText>
std::string lines(const Items& items, ToText to_text) {
  std::string text = "[";
  for (const auto& item : items) {
    text += text.size() > 1 ? ",\n " : "\n ";
    text += to_text(item);
  }
  return text + "]";
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  std::string text = format("{}{}\",\n\"version\": {},\n\"incompatible\": [],\n", kManifestOpening,
                            kNoManifestChecksum, kManifestVersion);
  text += format("\"step\": {},\n\"save\": {},\n\"run\": {},\n\"world_size\": {},\n", manifest.step.value,
                 dump(manifest.save), dump(manifest.run), manifest.world_size.value);
  text += format("\"written\": {},\n\"stall_s\": {},\n\"write_s\": {},\n", dump(manifest.written),
                 dump(manifest.stall_s), dump(manifest.write_s));
  text += format("\"state\": {},\n\"hyper_parameters\": {},\n", manifest.state.to_json(),
                 manifest.hyper_parameters.to_json());
  text += format("\"rank_states\": {},\n",
                 lines(manifest.rank_states, [](const State& state) { return state.to_json(); }));
  for (const Part part : kParts) {
    text += format("\"{}\": {},\n", to_text(part), lines(manifest.of(part), tensor_text));
  }
  text += format("\"files\": {}\n}}\n", lines(manifest.files, file_text));
  text.replace(kManifestOpening.size(), kNoManifestChecksum.size(),
               manifest_checksum_text(manifest_checksum(text)));
  return text;
}

std::string marker_text(const ReadyMarker& marker) {
  std::string text = "{\"save\":";
  add_text(text, marker.save);
  text += ",\"layout\":";
  add_text(text, marker.layout);
  text += ",\"samples\":";
  add_sums(text, marker.samples);
  text += format(",\"stall_s\":{},\"write_s\":{},\"rank_state\":{},\"files\":[", dump(marker.stall_s),
                 dump(marker.write_s), marker.rank_state.to_json());
  for (std::size_t i = 0; i < marker.files.size(); ++i) {
    if (i > 0) text += ',';
    text += file_text(marker.files[i]);
  }
  return text + "]}";
}

std::string sharding_info(const std::vector<Piece>& pieces) {
  std::vector<const Piece*> sorted;
  for (const Piece& piece : pieces) sorted.push_back(&piece);
  std::ranges::sort(sorted, {}, [](const Piece* piece) -> std::string_view { return piece->name; });
  std::string text = "{";
  for (const Piece* piece : sorted) {
    if (text.size() > 1) text += ',';
    add_text(text, piece->name);
    text += ":{\"saved_offsets\":[";
    for (std::size_t i = 0; i < piece->shape.size(); ++i)
      text += i == 0 ? std::to_string(piece->first_row) : ",0";
    text += "]}";
  }
  return text + "}";
}

std::string failure_text(const Status& error) {
  return dump(
      OrderedJson{{"code", to_text(error.code())}, {"message", error.message()}, {"cure", error.cure()}});
}

}  // namespace stoker::checkpoint
