#pragma once
// Messages of OpenTelemetry's profiles signal (opentelemetry-proto 1.11, profiles/v1development/profiles.proto), as
// bytes of protobuf.

#include <memory>
#include <string>
#include <string_view>

#include "input/recording_part.h"

namespace luaspy {

// Whether the bytes may be such a message, or several with their sizes before them, as a Collector writes them.
bool is_otlp_message(std::string_view bytes);

// What several messages say, of one unit: of the first profile that counts time, else of the last kind of values of the
// first message that has any.
class OtlpReader {
 public:
  explicit OtlpReader(RecordingPart& part);
  ~OtlpReader();
  OtlpReader(const OtlpReader&) = delete;
  OtlpReader& operator=(const OtlpReader&) = delete;

  // Returns what is wrong with the message, or "".
  std::string read(std::string_view message);
  // One message, or several, each behind its size in four bytes, the highest first. Returns where they are damaged.
  std::string read_all(std::string_view bytes);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace luaspy
