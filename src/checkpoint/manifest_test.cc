#include "checkpoint/manifest.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/hash.h"

namespace stoker::checkpoint {
namespace {

// 'w' is split by rows over two ranks, 'b' and the scalar are whole, 'none' has no bytes.
StepManifest sample() {
  StepManifest m;
  m.step = Step{200};
  m.save = "run/1/0";
  m.run = "run";
  m.world_size = WorldSize{2};
  m.written = 1.8e9;
  m.stall_s = 0.011;
  m.write_s = 1.5;
  m.state.set("epoch", std::int64_t{3});
  m.hyper_parameters.set("lr", 0.1);
  m.rank_states.resize(2);
  m.rank_states[1].set("generator", StateValues::Bytes{std::byte{7}});
  m.tensors[0] = {{"w", DType::f32, {3, 2}}, {"b", DType::f32, {1}}, {"none", DType::u8, {0, 4}}};
  m.tensors[1] = {{"state.w.step", DType::i64, {}}};
  m.files = {{shard_path(StepPart::model, Rank{0}),
              Rank{0},
              4096 + 20,
              4096,
              {{"b", DType::f32, {1}, 0, 0, 4}, {"w", DType::f32, {2, 2}, 0, 4, 20}},
              {1}},
             {shard_path(StepPart::model, Rank{1}),
              Rank{1},
              4096 + 8,
              4096,
              {{"w", DType::f32, {1, 2}, 2, 0, 8}, {"none", DType::u8, {0, 4}, 0, 8, 8}},
              {0xfedcba98}},
             {shard_path(StepPart::optimizer, Rank{1}),
              Rank{1},
              4096 + 8,
              4096,
              {{"state.w.step", DType::i64, {}, 0, 0, 8}},
              {2}}};
  return m;
}

// The error for a manifest that was changed and got a new checksum.
std::string problem(const std::function<void(StepManifest&)>& change) {
  StepManifest m = sample();
  change(m);
  const auto parsed = parse_manifest("m", manifest_text(m));
  if (parsed.ok()) return "ok";
  EXPECT_EQ(parsed.error().code(), Code::corrupt);
  return parsed.error().to_string();
}

// The error after a replacement in the text, with a new checksum.
std::string edited(std::string_view from, std::string_view to) {
  std::string text = manifest_text(sample());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::size_t digits = text.find("\"crc32c\": \"") + 11;
  text.replace(digits, 8, "00000000");
  text.replace(digits, 8, format("{:08x}", crc32c(text)));
  const auto parsed = parse_manifest("m", text);
  return parsed.ok() ? "ok" : parsed.error().to_string();
}

TEST(StepManifest, round_trips_through_text) {
  const auto back = parse_manifest("m", manifest_text(sample()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, sample());
  EXPECT_EQ(back->total_bytes(), 3u * 4096 + 36);
}

TEST(StepManifest, every_flipped_bit_is_found) {
  const std::string text = manifest_text(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(parse_manifest("m", flipped).ok()) << "byte " << i;
  }
}

TEST(StepManifest, every_truncation_is_found) {
  const std::string text = manifest_text(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(parse_manifest("m", text.substr(0, i)).error().code(), Code::corrupt) << i;
  }
  EXPECT_EQ(parse_manifest("m", "{}").error().to_string(),
            "m: is not a checkpoint manifest, or is truncated");
  std::string flipped = text;
  flipped[flipped.size() - 5] ^= 1;
  EXPECT_EQ(parse_manifest("m", flipped).error().to_string().substr(0, 18), "m: damaged (crc32c");
}

TEST(StepManifest, a_newer_version_or_feature_is_named) {
  EXPECT_EQ(edited("\"version\": 1", "\"version\": 2"),
            "m: version 2 is not supported (this Stoker version reads version 1)");
  EXPECT_EQ(edited("\"incompatible\": []", "\"incompatible\": [\"zstd\"]"),
            "m: requires 'zstd', which this Stoker version does not support");
}

TEST(StepManifest, members_are_required_and_typed) {
  EXPECT_EQ(edited("\"step\"", "\"stop\""), "m: 'step' is missing");
  EXPECT_EQ(edited("\"step\": 200", "\"step\": -1"), "m: 'step' is not a whole number");
  EXPECT_EQ(edited("\"step\": 200", "\"step\": 99999999999999999999"), "m: 'step' is not a whole number");
  EXPECT_EQ(edited("\"step\": 200", "\"step\": 18446744073709551615"), "m: 'step' is too large");
  EXPECT_EQ(edited("\"save\": \"run/1/0\"", "\"save\": 1"), "m: 'save' is not a string");
  EXPECT_EQ(edited("\"world_size\": 2", "\"world_size\": 0"), "m: world_size is out of range");
  EXPECT_EQ(edited("\"world_size\": 2", "\"world_size\": 3"),
            "m: has the states of 2 ranks, but world_size is 3");
  EXPECT_EQ(edited("\"stall_s\": 0.011", "\"stall_s\": null"), "m: 'stall_s' is not a number");
  EXPECT_EQ(edited("\"state\": {", "\"state\": {\"x\":[],"), "m: state 'x' is not a supported value");
  EXPECT_EQ(edited("\"files\": [", "\"files\": [1,"), "m: 'files' has an invalid element");
  EXPECT_EQ(edited("\"dtype\":\"F32\"", "\"dtype\":\"F33\""), "m: dtype 'F33' is not supported");
  EXPECT_EQ(edited("\"shape\":[3,2]", "\"shape\":[3,-2]"), "m: 'shape' has an invalid element");
  EXPECT_EQ(edited("\"shape\":[3,2]", "\"shape\":[9223372036854775807,2]"), "m: shape is too large");
  EXPECT_EQ(edited("\"data\":[0,4]", "\"data\":[0]"), "m: 'data' is not a pair of numbers");
  EXPECT_EQ(edited("\"data\":[0,4]", "\"data\":[0,5]"),
            "m: the size of a piece of 'b' does not match its shape");
  EXPECT_EQ(edited("fedcba98", "fedcba9x"), "m: crc32c is not hexadecimal");
  EXPECT_EQ(edited("fedcba98", "fedcba9"), "m: crc32c is not hexadecimal");
  EXPECT_EQ(edited("fedcba98", "fedcba98fedcba98"), "m: 'crc32c' does not have one value per block");
  EXPECT_EQ(edited("model/shard", "../../shard"),
            "m: path '../../shard-00001-model-00001-of-00001.safetensors' is not the path of a step's file");
  EXPECT_EQ(edited("\"bytes\":4116", "\"bytes\":4117"), "m: 'bytes' is not the size of header and pieces");
}

TEST(StepManifest, a_tensor_must_be_covered_once) {
  EXPECT_EQ(problem([](StepManifest& m) { m.files.pop_back(); }), "m: tensor 'state.w.step': is in no file");
  EXPECT_EQ(problem([](StepManifest& m) { m.files[1].pieces[0].first_row = 1; }),
            "m: tensor 'w': row 1 appears twice");
  EXPECT_EQ(problem([](StepManifest& m) { m.tensors[0][0].shape = {4, 2}; }),
            "m: tensor 'w': rows 3 to 3 are missing");
  EXPECT_EQ(problem([](StepManifest& m) {
              m.tensors[0][0].shape = {4, 2};
              m.files[1].pieces[0].first_row = 3;
            }),
            "m: tensor 'w': rows 2 to 2 are missing");
  EXPECT_EQ(problem([](StepManifest& m) { m.tensors[0][0].shape = {2, 2}; }),
            "m: tensor 'w': has 2 rows, but a piece ends beyond them");
  EXPECT_EQ(problem([](StepManifest& m) {
              m.files[0].pieces[1].begin = 5;
              m.files[0].pieces[1].end = 21;
            }),
            "m: pieces do not follow one another");
}

TEST(StepManifest, files_contain_the_listed_tensors_once) {
  EXPECT_EQ(problem([](StepManifest& m) { m.files.push_back(m.files[0]); }),
            "m: file model/shard-00001-model-00001-of-00001.safetensors is listed twice");
  EXPECT_EQ(problem([](StepManifest& m) { m.tensors[0].push_back(m.tensors[0][1]); }),
            "m: tensor 'b' is listed twice");
  EXPECT_EQ(problem([](StepManifest& m) { m.tensors[0].erase(m.tensors[0].begin() + 1); }),
            "m: model/shard-00001-model-00001-of-00001.safetensors contains 'b', which is not listed");
  EXPECT_EQ(
      problem([](StepManifest& m) { m.tensors[0][1].dtype = DType::i32; }),
      "m: model/shard-00001-model-00001-of-00001.safetensors contains 'b' with a different type or shape");
}

TEST(StepManifest, a_marker_round_trips_and_is_checked) {
  ReadyMarker marker{"run/1/0", "abc", {7, 0xffffffff}, sample().files, sample().rank_states[1], 0.5, 1.5};
  const auto back = parse_marker("r", marker_text(marker));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, marker);
  EXPECT_EQ(parse_marker("r", "").error().to_string(), "r: is not a JSON object");
  EXPECT_EQ(parse_marker("r", "{}").error().to_string(), "r: 'save' is missing");
}

TEST(StepManifest, a_waiting_rank_distinguishes_saves) {
  StepManifest manifest = sample();
  manifest.save = "run \"a\"/1/10";
  manifest.state.set("note", "\n\"save\": \"run/1/1\",\n\"run\": ");
  std::string text = manifest_text(manifest);
  EXPECT_TRUE(is_manifest_for_save(text, "run \"a\"/1/10"));
  EXPECT_FALSE(is_manifest_for_save(text, "run \"a\"/1/1"));
  EXPECT_FALSE(is_manifest_for_save(text, "run/1/1"));
  EXPECT_FALSE(is_manifest_for_save("", ""));
  EXPECT_FALSE(is_manifest_for_save(std::string_view(text).substr(0, text.size() - 1), manifest.save));
  text[text.size() / 2] ^= 1;
  EXPECT_FALSE(is_manifest_for_save(text, manifest.save));
}

TEST(StepManifest, an_error_keeps_code_and_cure) {
  const Status error = no_space("a: no space left on device").cure("df -h /a");
  const Status back = parse_failure("rank 1", failure_text(error));
  EXPECT_EQ(back.code(), Code::no_space);
  EXPECT_EQ(back.to_string(), "rank 1: a: no space left on device\n  try: df -h /a");
  for (const char* text : {"", "{}", R"({"code":"ok","message":"x","cure":""})", "[]"}) {
    EXPECT_EQ(parse_failure("rank 1", text).to_string(), "rank 1: failed without a reason");
  }
}

}  // namespace
}  // namespace stoker::checkpoint
