#include "arrays/hdf5/describe.h"

#include <algorithm>

#include "arrays/hdf5/api.h"
#include "arrays/hdf5/child.h"
#include "arrays/hdf5/query/datasets.h"
#include "base/file.h"
#include "base/json/json.h"
#include "codec/filters/filters.h"

namespace stoker::arrays::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr ByteCount kResponseLimit = 1_GiB;

// A child with a damaged file may have written garbage before it died: every value is checked.
class ResponseReader {
 public:
  ResponseReader(const Json& json, std::string_view subject) : json_(json), subject_(subject) {}

  const Status& status() const { return status_; }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  const Json& at(const char* key) {
    static const Json kNone;
    if (has(key)) return *json_.find(key);
    fail();
    return kNone;
  }
  std::uint64_t number(const char* key) {
    const Json& value = at(key);
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    fail();
    return 0;
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (value.is_string()) return value.get<std::string>();
    fail();
    return {};
  }
  std::vector<std::uint64_t> numbers(const char* key) {
    std::vector<std::uint64_t> found;
    const Json& value = at(key);
    if (!value.is_array()) fail();
    for (const Json& entry : value) {
      if (!entry.is_number_unsigned()) fail();
      found.push_back(entry.is_number_unsigned() ? entry.get<std::uint64_t>() : 0);
    }
    return found;
  }
  std::vector<std::byte> bytes(const char* key) {
    std::vector<std::byte> found;
    for (const std::uint64_t value : numbers(key)) found.push_back(static_cast<std::byte>(value & 255));
    return found;
  }
  void fail() {
    if (status_.ok()) status_ = corrupt("{}: libhdf5 returned an invalid response", subject_);
  }

 private:
  const Json& json_;
  std::string subject_;
  Status status_;
};

codec::ElementType::TextEnd text_end(ResponseReader& response) {
  using TextEnd = codec::ElementType::TextEnd;
  constexpr TextEnd kPaddings[] = {TextEnd::at_zero, TextEnd::before_zeros,
                                   TextEnd::before_blanks};  // H5T_STR_*
  const std::uint64_t padding = response.number("padding");
  if (padding < std::size(kPaddings)) return kPaddings[padding];
  response.fail();
  return {};
}

codec::ElementType type_of(ResponseReader& response) {
  constexpr std::string_view kLetters = "biufEcSV";
  constexpr std::string_view kVarying = "TL";
  using Kind = codec::ElementType::Kind;
  constexpr Kind kKinds[] = {Kind::boolean,  Kind::signed_integer, Kind::unsigned_integer,
                             Kind::floating, Kind::bfloat,         Kind::complex,
                             Kind::bytes,    Kind::bytes};
  const std::string letter = response.text("letter");
  const std::uint64_t bytes = response.number("bytes");
  if (letter.size() == 1 && kVarying.find(letter[0]) != std::string_view::npos) {
    if (bytes != codec::ElementType::kReferenceBytes) response.fail();
    return codec::ElementType::variable_length_of(letter[0]);
  }
  const std::size_t kind = letter.size() == 1 ? kLetters.find(letter[0]) : std::string_view::npos;
  if (kind == std::string_view::npos || bytes == 0 || bytes > (1u << 20)) {
    response.fail();
    return {};
  }
  codec::ElementType type{
      .kind = kKinds[kind], .bytes = static_cast<std::uint32_t>(bytes), .letter = letter[0], .time_unit = {}};
  if (letter == "S") type.text_end = text_end(response);
  return type;
}

// The item type of variable-length lists.
void read_varying(ResponseReader& response, Description& into) {
  into.heap_base = response.number("base");
  if (into.type.letter != codec::ElementType::kNumbers) return;
  ResponseReader of(response.at("of"), "");
  const std::optional<DType> dtype = type_of(of).dtype();
  if (of.at("is_big") == true) into.value_order = codec::ByteOrder::big;
  if (!of.status().ok() || !dtype) return response.fail();
  into.type.item = *dtype;
}

void read_chunks(ResponseReader& response, Description& into) {
  into.layout = Description::Layout::chunked;
  into.chunks = response.numbers("chunks");
  for (const Json& entry : response.at("filters")) {
    ResponseReader filter(entry, "");
    Filter taken{static_cast<std::uint32_t>(filter.number("id")), filter.text("name"), {}};
    for (const std::uint64_t value : filter.numbers("values"))
      taken.values.push_back(static_cast<std::uint32_t>(value));
    if (!filter.status().ok()) response.fail();
    into.filters.push_back(std::move(taken));
  }
  if (into.shape.empty() || into.chunks.size() != into.shape.size() ||
      std::find(into.chunks.begin(), into.chunks.end(), 0) != into.chunks.end()) {
    return response.fail();
  }
  const std::vector<std::uint64_t> places = response.numbers("places");
  if (places.size() % 4 != 0) return response.fail();
  for (std::size_t i = 0; i < places.size(); i += 4) {
    into.chunk_locations.push_back(
        {places[i], places[i + 1], places[i + 2], static_cast<std::uint32_t>(places[i + 3])});
  }
  std::sort(into.chunk_locations.begin(), into.chunk_locations.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
}

// A member of records: its offset in a record, and how many of the last dimensions belong to it.
void read_record(ResponseReader& response, Description& into) {
  if (!response.has("record")) return;
  ResponseReader record(response.at("record"), "");
  const std::uint64_t own = record.number("dimensions");
  RecordMember member{record.number("bytes"), record.number("offset"), 0};
  if (!record.status().ok() || own > into.shape.size()) return response.fail();
  const auto records = std::span(into.shape).first(into.shape.size() - own);
  const auto dimensions = std::span(into.shape).last(own);
  member.bytes = codec::product(dimensions, into.type.bytes).value_or(0);
  const bool has_chunks = into.layout == Description::Layout::chunked;
  const bool is_whole = !has_chunks || std::equal(dimensions.begin(), dimensions.end(),
                                                  into.chunks.end() - static_cast<std::ptrdiff_t>(own));
  const bool fits = member.is_valid() && codec::product(records, member.record_bytes).has_value();
  if (!is_whole || !fits || into.type.kind == codec::ElementType::Kind::variable_length)
    return response.fail();
  into.member = member;
}

void read_parts(ResponseReader& response, Description& into) {
  into.layout = Description::Layout::parts;
  for (const Json& entry : response.at("parts")) {
    ResponseReader part(entry, "");
    into.parts.push_back({part.text("file"), part.text("dataset"), part.number("first_row"),
                          part.number("source_row"), part.number("rows")});
    if (!part.status().ok()) response.fail();
  }
  std::sort(into.parts.begin(), into.parts.end(),
            [](const auto& a, const auto& b) { return a.first_row < b.first_row; });
  std::uint64_t end = 0;
  for (const VirtualPart& part : into.parts) {
    const std::uint64_t rows = into.shape.empty() ? 0 : into.shape[0];
    if (part.first_row < end || part.rows == 0 || part.first_row > rows ||
        part.rows > rows - part.first_row) {
      return response.fail();
    }
    end = part.first_row + part.rows;
  }
}

Result<Description> description(const Json& json, const Path& file) {
  ResponseReader response(json, file.string());
  Description found;
  found.path = response.text("path");
  found.file = response.text("file");
  found.shape = response.numbers("shape");
  found.type = type_of(response);
  const Json& is_big = response.at("is_big");
  if (is_big == true && found.type.swap_unit() > 1) found.order = codec::ByteOrder::big;
  found.fill = response.bytes("fill");
  if (found.type.kind == codec::ElementType::Kind::variable_length) read_varying(response, found);
  if (found.fill.size() != found.type.bytes || found.shape.size() > codec::kMaxDimensions) response.fail();
  STOKER_RETURN_IF_ERROR(response.status());
  if (found.order == codec::ByteOrder::big) codec::swap_bytes(found.fill, found.type.swap_unit());
  const std::string layout = response.text("layout");
  if (layout == "inline") {
    found.layout = Description::Layout::inline_;
    found.inline_bytes = response.bytes("inline");
  } else if (layout == "contiguous") {
    found.offset = response.number("offset");
  } else if (layout == "chunked") {
    read_chunks(response, found);
  } else {
    read_parts(response, found);
  }
  if (response.status().ok()) read_record(response, found);
  STOKER_RETURN_IF_ERROR(response.status());
  if (!codec::product(found.shape, found.type.bytes))
    return corrupt("{}: dataset '{}' is too large", file, printable(found.path));
  return found;
}

// The child's response, or its error.
Result<Json> parsed(const std::string& text, const Path& file) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt("{}: libhdf5 returned an invalid response", file);
  const auto error = json.find("error");
  if (error == json.end()) return json;
  ResponseReader response(json, file.string());
  const std::uint64_t code = response.number("code");
  if (!error->is_string() || code == 0 || code > static_cast<std::uint64_t>(Code::internal)) {
    return corrupt("{}: libhdf5 returned an invalid response", file);
  }
  const std::string cure = response.has("cure") ? response.text("cure") : std::string();
  return Status(static_cast<Code>(code), error->get<std::string>()).cure("{}", cure);
}

}  // namespace

Result<std::vector<std::string>> list_datasets(const Path& file, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(h5, api());
  STOKER_RETURN_IF_ERROR(File::open_read(file).status());  // its own words for a file that is not there
  STOKER_ASSIGN_OR_RETURN(text, call_in_child([&] { return query_dataset_names(*h5, file); }, file.string(),
                                              deadline, kResponseLimit));
  STOKER_ASSIGN_OR_RETURN(json, parsed(text, file));
  std::vector<std::string> names;
  for (const Json& name : json.value("names", Json::array())) {
    if (!name.is_string()) return corrupt("{}: libhdf5 returned an invalid response", file);
    names.push_back(name.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());  // a damaged record's members
  return names;
}

Result<std::vector<Description>> describe(const Path& file, const std::vector<std::string>& names,
                                          ExternalLinks links, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(h5, api());
  STOKER_RETURN_IF_ERROR(File::open_read(file).status());  // its own words for a file that is not there
  STOKER_ASSIGN_OR_RETURN(text, call_in_child([&] { return query_datasets(*h5, file, names, links); },
                                              file.string(), deadline, kResponseLimit));
  return parse_response(text, file, names.size());
}

Result<std::vector<Description>> parse_response(const std::string& text, const Path& file,
                                                std::size_t count) {
  STOKER_ASSIGN_OR_RETURN(json, parsed(text, file));
  const Json datasets = json.value("datasets", Json::array());
  if (!datasets.is_array() || datasets.size() != count) {
    return corrupt("{}: libhdf5 returned an invalid response", file);
  }
  std::vector<Description> found;
  for (const Json& dataset : datasets) {
    STOKER_ASSIGN_OR_RETURN(described, description(dataset, file));
    found.push_back(std::move(described));
  }
  return found;
}

}  // namespace stoker::arrays::hdf5
