#pragma once
// Files of other programs, read as luaspy reads them, and written.

#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "input/recording_reader.h"
#include "input/source_stream.h"
#include "output/format.h"
#include "output/gzip.h"
#include "output/write_options.h"

namespace luaspy::foreign {

inline Result<Profile> read(const std::string& bytes, const RawWindow& window = {}, const ViewOptions& shape = {}) {
  std::istringstream in(bytes);
  Result<Profile> profile = read_recording(in, shape, window);
  if (profile) profile->resolve_names();
  return profile;
}
inline Profile profile_of(const std::string& bytes) {
  Result<Profile> profile = read(bytes);
  REQUIRE(profile);
  return std::move(*profile);
}
inline std::string error_of(const std::string& bytes) {
  const Result<Profile> profile = read(bytes);
  return profile ? "" : profile.error().text;
}

inline std::string written(std::string_view format, const Profile& profile, const WriteOptions& options = {}) {
  std::ostringstream out;
  find_format(format)->write(profile, options, out);
  return out.str();
}

inline std::string gzipped(const std::string& bytes) {
  std::ostringstream out;
  Gzip(out).add(bytes);
  return out.str();
}
inline std::string gunzipped(std::istream& in) {
  InflatedStream inflated(in);
  std::istream out(&inflated);
  return *read_all_of(out);
}
inline std::string gunzipped(const std::string& bytes) {
  std::istringstream in(bytes);
  return gunzipped(in);
}

}  // namespace luaspy::foreign
