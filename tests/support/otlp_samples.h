#pragma once
// What the bytes of a message for OpenTelemetry say of samples, read as its schema says (opentelemetry-proto 1.11,
// profiles/v1development/profiles.proto). Indexes that have no entry, and damaged fields, fail the test.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex.h"
#include "base/protobuf_fields.h"

namespace luaspy::otlp_samples {

struct OtlpSample {
  std::vector<std::string> frames;  // outermost first
  std::map<std::string, std::string> attributes;
  std::string span;  // "TRACE-SPAN" in hexadecimal digits; "": none
  std::int64_t value = 0;
};

struct OtlpProfile {
  std::string type;  // "samples"
  std::uint64_t time_ns = 0, duration_ns = 0, period = 0;
  std::vector<OtlpSample> samples;
};

// The messages and texts that are field `number`.
inline std::vector<std::string_view> all_of(std::string_view message, std::uint32_t number) {
  std::vector<std::string_view> all;
  ProtobufFields fields(message);
  while (const std::optional<ProtobufFields::Field> field = fields.next()) {
    if (field->number == number) all.push_back(field->bytes);
  }
  REQUIRE_FALSE(fields.torn());
  return all;
}

inline std::string_view one_of(std::string_view message, std::uint32_t number) {
  const std::vector<std::string_view> all = all_of(message, number);
  REQUIRE(all.size() == 1);
  return all.front();
}

inline std::vector<std::uint64_t> numbers_of(std::string_view message, std::uint32_t number) {
  std::vector<std::uint64_t> all;
  ProtobufFields fields(message);
  while (const std::optional<ProtobufFields::Field> field = fields.next()) {
    if (field->number == number) REQUIRE(add_numbers(*field, all));
  }
  return all;
}

// 0 if it is not there.
inline std::uint64_t number_of(std::string_view message, std::uint32_t number) {
  const std::vector<std::uint64_t> all = numbers_of(message, number);
  return all.empty() ? 0 : all.front();
}

class Dictionary {
 public:
  explicit Dictionary(std::string_view bytes)
      : locations_(all_of(bytes, 2)),
        functions_(all_of(bytes, 3)),
        links_(all_of(bytes, 4)),
        strings_(all_of(bytes, 5)),
        attributes_(all_of(bytes, 6)),
        stacks_(all_of(bytes, 7)) {}

  OtlpProfile profile(std::string_view message) const {
    OtlpProfile profile = {string(number_of(one_of(message, 1), 1)),
                           number_of(message, 3),
                           number_of(message, 4),
                           number_of(message, 6),
                           {}};
    for (const std::string_view each : all_of(message, 2)) profile.samples.push_back(sample(each));
    return profile;
  }

 private:
  std::string string(std::uint64_t index) const { return std::string(strings_.at(index)); }

  OtlpSample sample(std::string_view message) const {
    OtlpSample sample;
    for (const std::uint64_t location : numbers_of(stacks_.at(number_of(message, 1)), 1)) {
      const std::string_view line = one_of(locations_.at(location), 3);
      sample.frames.push_back(string(number_of(functions_.at(number_of(line, 1)), 1)));
    }
    std::ranges::reverse(sample.frames);
    for (const std::uint64_t index : numbers_of(message, 2)) {
      const std::string_view attribute = attributes_.at(index);
      sample.attributes[string(number_of(attribute, 1))] = one_of(one_of(attribute, 2), 1);
    }
    if (const std::uint64_t index = number_of(message, 3); index != 0)
      sample.span = hex_digits(one_of(links_.at(index), 1)) + '-' + hex_digits(one_of(links_.at(index), 2));
    for (const std::uint64_t value : numbers_of(message, 4)) sample.value += static_cast<std::int64_t>(value);
    return sample;
  }

  std::vector<std::string_view> locations_, functions_, links_, strings_, attributes_, stacks_;
};

inline std::vector<OtlpProfile> profiles_of(std::string_view message) {
  const Dictionary dictionary(one_of(message, 2));
  std::vector<OtlpProfile> profiles;
  for (const std::string_view resource : all_of(message, 1)) {
    for (const std::string_view scope : all_of(resource, 2)) {
      for (const std::string_view profile : all_of(scope, 2)) profiles.push_back(dictionary.profile(profile));
    }
  }
  return profiles;
}

}  // namespace luaspy::otlp_samples
