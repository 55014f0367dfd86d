#include "luastate/native_functions.h"

#include <string>

namespace luaspy {
namespace {

// Words with a space before and after each. lua.h, from 5.1 to 5.5 and of LuaJIT and Tarantool: what
// begins with lua_.
constexpr std::string_view lua_functions =
    " absindex arith atpanic call callk checkstack close closeslot closethread compare concat copy cpcall"
    " createtable dump equal error gc getallocf getctx getexdata getexdata2 getfenv getfield getglobal"
    " gethook gethookcount gethookmask geti getinfo getiuservalue getlocal getmetatable getstack gettable"
    " gettop getupvalue getuservalue hash hashstring insert iscfunction isinteger isnumber isstring"
    " isuserdata isyieldable len lessthan load loadx newstate newthread newuserdata newuserdatauv next"
    " numbertocstring objlen pcall pcallk pushboolean pushcclosure pushexternalstring pushfstring"
    " pushinteger pushlightuserdata pushlstring pushnil pushnumber pushstring pushthread pushunsigned"
    " pushvalue pushvfstring rawequal rawget rawgeti rawgetp rawlen rawset rawseti rawsetp remove replace"
    " resetthread resume rotate setallocf setcstacklimit setexdata setexdata2 setfenv setfield setglobal"
    " sethook seti setiuservalue setlevel setlocal setmetatable setoutput settable settop setupvalue"
    " setuservalue setwarnf status stringtonumber toboolean tocfunction toclose tointeger tointegerx"
    " tolstring tonumber tonumberx topointer tothread tounsignedx touserdata type typename upvalueid"
    " upvaluejoin version warning xmove yield yieldk ";

// lauxlib.h, lualib.h: what begins with luaL_.
constexpr std::string_view lual_functions =
    " addgsub addlstring addstring addvalue alloc argerror buffinit buffinitsize callmeta checkany"
    " checkinteger checklstring checknumber checkoption checkstack checktype checkudata checkunsigned"
    " checkversion_ error execresult fileresult findtable getmetafield getn getsubtable gsub len"
    " loadbuffer loadbufferx loadfile loadfilex loadstring makeseed newmetatable newstate openlib openlibs"
    " openselectedlibs optinteger optlstring optnumber optunsigned prepbuffer prepbuffsize pushmodule"
    " pushresult pushresultsize ref register requiref setfuncs setmetatable setn setoutput testudata"
    " tolstring traceback typeerror typerror unref where ";

// lualib.h: what begins with luaopen_.
constexpr std::string_view
    libraries = " base bit bit32 coroutine debug ffi io jit math os package string string_buffer table utf8 ";

// The source files of PUC Lua, without the interpreter (lua.c) and the compiler (luac.c), and of
// LuaJIT apart from those that begin with lj_.
constexpr std::string_view sources =
    " lapi lauxlib lbaselib lbitlib lcode lcorolib lctype ldblib ldebug ldo ldump lfunc lgc lib_aux"
    " lib_base lib_bit lib_buffer lib_debug lib_ffi lib_init lib_io lib_jit lib_math lib_os lib_package"
    " lib_string lib_table linit liolib ljamalg llex lmathlib lmem loadlib lobject lopcodes loslib lparser"
    " lstate lstring lstrlib ltable ltablib ltm lundump lutf8lib lvm lzio ";

bool has(std::string_view words, std::string_view word) {
  return words.find(' ' + std::string(word) + ' ') != words.npos;
}

bool remove_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

}  // namespace

const Frame& NativeFunctions::describe_entry(Address entry) const {
  NativeFrame frame;
  frame.lookup = frame.function = entry;
  return describe(frame);
}

std::string_view without_prefix(std::string_view symbol) {
  const std::size_t at = symbol.rfind("_lua");
  return at != symbol.npos ? symbol.substr(at + 1) : symbol;
}

bool is_lua_name(std::string_view symbol, LuaKind kind) {
  symbol = symbol.substr(0, symbol.find('.'));
  std::string_view rest = symbol;
  if (remove_prefix(rest, "lua_")) return has(lua_functions, rest);
  if (remove_prefix(rest, "luaL_")) return has(lual_functions, rest);
  if (remove_prefix(rest, "luaopen_")) return has(libraries, rest);
  if (kind == LuaKind::luajit)
    return symbol.starts_with("lj_") || symbol.starts_with("luaJIT_") || symbol.starts_with("recff_") ||
           symbol == "str_hash_init_sse42";
  constexpr std::string_view files = "ABCDEFGHIKMOPSTUVXYZ";  // luaV_: lvm.c
  return remove_prefix(rest, "lua") && rest.size() > 2 && rest[1] == '_' && files.find(rest[0]) != files.npos;
}

bool is_lua_source(std::string_view file) {
  file.remove_prefix(file.find_last_of('/') + 1);
  file = file.substr(0, file.find('.'));
  return has(sources, file) || file.starts_with("lj_");
}

}  // namespace luaspy
