# Joins the parts of the flame graph page to one file and converts it to C++: SOURCE is the folder
# of the parts, OUTPUT the file to write. The page may run only this script and use only this style,
# identified by their hashes (https://www.w3.org/TR/CSP3/, hash-source).
set(scripts data views shape trees layout timelayout heaps marks heatmap colours graph chart words head table tip menu source page heap_data heap_classes heap_page input)

function(hash_source text result)
  string(SHA256 rest "${text}")
  string(APPEND rest 00)   # 33 bytes: base64 takes three at a time
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(base64 "")
  while(NOT rest STREQUAL "")
    string(SUBSTRING ${rest} 0 6 three)
    string(SUBSTRING ${rest} 6 -1 rest)
    foreach(shift 18 12 6 0)
      math(EXPR place "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${place} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endwhile()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${result} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

set(script "\"use strict\";\n(() => {\n")
foreach(name ${scripts})
  file(READ ${SOURCE}/${name}.js part)
  string(APPEND script "${part}\n")
endforeach()
string(APPEND script "})();\n")
file(READ ${SOURCE}/page.css style)
file(READ ${SOURCE}/page.html page)
hash_source("${script}" script_hash)
hash_source("${style}" style_hash)
foreach(name script_hash style_hash style script)
  string(TOUPPER @${name}@ place)
  string(REPLACE "${place}" "${${name}}" page "${page}")
endforeach()
# REGEX MATCH would take lists apart.
macro(split_at place before after)
  string(FIND "${page}" ${place} at)
  string(SUBSTRING "${page}" 0 ${at} ${before})
  string(LENGTH ${place} length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${page}" ${at} -1 ${after})
endmacro()
split_at(@DATA@ head page)
split_at(@RECORDING@ middle tail)
file(WRITE ${OUTPUT} "#include \"output/flamegraph_page.h\"

namespace luaspy {

const std::string_view flamegraph_head = R\"luaspy(${head})luaspy\";
const std::string_view flamegraph_middle = R\"luaspy(${middle})luaspy\";
const std::string_view flamegraph_tail = R\"luaspy(${tail})luaspy\";

}  // namespace luaspy
")
