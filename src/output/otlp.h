#pragma once
// Profiles as a message of OpenTelemetry's profiles signal. One message holds those of any number of processes, which
// share its dictionary. What it says has to suit all who read OTLP: the Collector, Pyroscope, which makes CPU time of
// "samples" with a period of "cpu", and Parca, which refuses tables without their first, empty entry.

#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/span.h"
#include "output/otlp_message.h"
#include "output/write_options.h"

namespace luaspy {

// What is known of a process besides its profile, by names of OpenTelemetry's semantic conventions: "service.name".
using OtlpAttributes = std::vector<std::pair<std::string, std::string>>;

class OtlpBuilder {
 public:
  OtlpBuilder();

  // A resource for each process of the profile, with these attributes before those that the profile tells itself; of
  // two with one name, the first counts.
  void add(const Profile& profile, const WriteOptions& options, const OtlpAttributes& known = {});
  const otlp::Message& message() const { return message_; }

 private:
  class Source;

  std::int32_t string(std::string_view text);
  std::int32_t mapping(std::string_view file);
  std::int32_t attribute(std::string_view key, std::string_view value);
  std::int32_t link(const Span& span);
  otlp::ValueType value_type(std::string_view type, std::string_view unit);

  otlp::Message message_;
  std::unordered_map<std::string, std::int32_t> strings_, mappings_, links_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> attributes_;  // by key and value, which are strings
};

// As protobuf, and as JSON.
void write_otlp(const Profile& profile, const WriteOptions& options, std::ostream& out);
void write_otlp_json(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
