#pragma once
// LuaJIT's compiler, read from outside (jit_reader.h).

#include <array>
#include <optional>
#include <span>

#include "luastate/jit_reader.h"
#include "luastate/luajit/jit_fields.h"
#include "luastate/luajit/luajit_lua.h"

namespace luaspy {

class LuajitJit : public JitReader {
 public:
  // `memory` and `lua` must outlive it.
  LuajitJit(const Memory& memory, const LuajitLua& lua, Address G);

  std::optional<bool> is_on() const override;
  std::optional<JitInstant> instant() override;
  std::vector<JitTrace> traces() override;
  std::vector<Address> trace_objects() override;
  std::optional<JitTrace> trace(Address object) override;
  std::optional<JitFunction> function(Address prototype) const override;
  Address prototype_of(Address instruction) const override;
  bool is_blacklisted(Address start) const override;
  bool find_prototypes(std::uint64_t most, std::vector<Address>& found) const override;
  JitStrings strings(std::uint64_t most) const override;
  std::string reason(unsigned number, const JitDetail& detail, const std::string& function) const override;
  std::string advice(unsigned number, const JitDetail& detail) const override;

 private:
  bool find_fields();
  void find_trace_form();
  std::optional<JitTrace> read_trace(Address object) const;
  void read_exits(JitTrace& trace, std::uint32_t count, Address snapshots) const;
  std::optional<std::uint32_t> chain_length(const Memory& memory, Address anchor, std::uint64_t& left) const;
  std::uint32_t original(std::uint32_t instruction) const;

  const Memory& memory_;
  const LuajitLua& lua_;
  LuajitLayout layout_;  // with what find_traces() finds
  Address G_;
  std::optional<JitFields> fields_;
  unsigned asked_ = 0;  // how often for fields
};

// What an abort left in errinfo.
JitDetail jit_detail(const LuajitLua& lua, std::uint64_t errinfo);
// The used ones of the ring of penalties in `bytes`, which begin with it.
std::vector<JitPenalty> read_penalties(const LuajitLayout& layout, std::span<const std::byte> bytes);

}  // namespace luaspy
