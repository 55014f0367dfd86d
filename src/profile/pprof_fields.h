#pragma once
// The field numbers of pprof's messages (github.com/google/pprof, proto/profile.proto), as far as luaspy writes or
// reads them.

namespace luaspy::pprof_field {

enum Profile {
  sample_type = 1,
  sample,
  mapping,
  location,
  function,
  string_table,
  time_nanos = 9,
  duration_nanos,
  period_type,
  period,
  comment,
  default_sample_type,
  last_of_profile  // doc_url
};
enum ValueType { type = 1, unit };
enum Sample { location_id = 1, value, label };
enum Label { key = 1, str, num };
enum Mapping {
  mapping_id = 1,
  memory_start,
  file_offset = 4,
  mapping_filename,
  has_functions = 7,
  has_filenames,
  has_line_numbers,
  has_inline_frames
};
enum Location { id_of_location = 1, mapping_of_location, address, line };
enum Line { function_id = 1, line_number };
enum Function { id_of_function = 1, name, system_name, filename, start_line };

}  // namespace luaspy::pprof_field
