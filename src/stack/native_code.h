#pragma once
// The target's native functions: which belong to a Lua VM (with or without symbols), and their
// names.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "luastate/call_rules.h"
#include "luastate/detect.h"
#include "luastate/luajit/vm_code.h"
#include "luastate/native_functions.h"
#include "luastate/puc/collector_code.h"
#include "unwind/unwinder.h"

namespace luaspy {

class NativeCode : public NativeFunctions {
 public:
  NativeCode(const Modules& modules, const Unwinder& unwinder) : modules_(modules), unwinder_(unwinder) {}

  // The code of one Lua VM, as far as it was found.
  struct VmImage {
    Address start, end;
    // Where functions are Lua's own, unless a symbol says something else: a linker puts Lua's objects
    // next to each other.
    std::vector<Unwinder::Range> own;
    std::vector<Unwinder::Range> executes;  // luaV_execute of each PUC Lua that is linked into it
    // What luaV_execute has before its name, if several Luas are linked into one program: "mud_".
    std::vector<std::string> prefixes;
    std::vector<CollectorCode> collectors;  // PUC
    std::optional<VmCode> vm;
    // Functions without a symbol that were recognised; by their starts.
    std::unordered_map<Address, std::string_view> recognised;
  };
  const std::vector<VmImage>& vm_images() const { return vm_images_; }

  // What was found in files, shared by many processes.
  using KnownVmImages = std::map<FileVersion, VmImage>;
  using VersionOf = std::function<std::optional<FileVersion>(Address)>;  // of the file mapped at an address

  // Takes the images that hold a Lua VM. Finds luaV_execute, or LuaJIT's virtual machine, in
  // each. Reads `known` and adds to it.
  void update(const std::vector<LuaImage>& images, KnownVmImages& known, const VersionOf& version_of);

  // The LuaJIT virtual machine whose code contains `address`; nullptr if there is none.
  const VmCode* vm_at(Address address) const;
  // All of them.
  std::vector<const VmCode*> vms() const;

  bool executes_lua(const NativeFrame& frame) const override { return judged(frame).executes; }
  const TraceExit* trace_exit(const NativeFrame& frame) const override;
  bool collects(const NativeFrame& frame) const override { return judged(frame).collects; }
  bool carries(const NativeFrame& frame) const override { return judged(frame).carries; }
  bool in_core_module(const NativeFrame& frame) const override { return judged(frame).in_core; }
  LuaCode lua_code(const NativeFrame& frame) const override { return judged(frame).code; }
  std::vector<std::byte> code(const NativeFrame& frame) const override;
  bool may_be_code(Address address) const override {
    return modules_.find(address) != nullptr || modules_.executes(address);
  }

  const Frame& describe(const NativeFrame& frame) const override;
  std::uint64_t descriptions() const override { return descriptions_; }

 private:
  const VmImage* vm_image_of(Address address) const;
  static VmImage moved(VmImage image, Address to);
  VmImage find_vm_image(const LuaImage& lua, const Module& module, const std::vector<LuaImage>& all);
  using Functions = std::vector<Unwinder::Range>;  // of a module, ascending
  void find_executes(VmImage& image, const Module& module, const Functions& functions, std::size_t count);
  void find_collectors(VmImage& image, const Module& module, const Functions& functions,
                       const std::vector<const Lua*>& layouts);
  void find_vm(VmImage& image, const Module& module);
  void find_own(VmImage& image, const Module& module, const Functions& functions);
  void extend_own(VmImage& image, const Module& module, const Functions& functions);
  LuaCode owner(const VmImage& image, const Symbol& symbol) const;
  void recognise(VmImage& image, const Module& module, const Functions& all, const std::vector<const Lua*>& layouts);
  CallGraph call_graph(const VmImage& image, const Module& module, const Functions& all) const;
  std::string_view recognised_name(const NativeFrame& frame) const;  // ""

  const Modules& modules_;
  const Unwinder& unwinder_;
  std::vector<VmImage> vm_images_;
  // What a function's name says about it.
  struct Described {
    Frame frame;
    bool executes = false, collects = false, carries = false;
    bool has_symbol = false;         // or was recognised
    LuaCode owner = LuaCode::maybe;  // by its symbol
  };
  const Described& described(const NativeFrame& frame) const;
  std::uint64_t descriptions_ = 0;
  // What is asked of a frame many times in each look.
  struct Judged {
    Address lookup = 0, function = 0;
    bool in_trace = false, in_core = false, executes = false, collects = false, carries = false;
    LuaCode code = LuaCode::no;
  };
  const Judged& judged(const NativeFrame& frame) const;
  Judged judge(const NativeFrame& frame) const;
  static constexpr std::size_t most_judged = 1 << 9;
  mutable std::vector<Judged> judged_ = std::vector<Judged>(most_judged);  // each at a place that its address gives
  mutable std::unordered_map<Address, Described> described_;               // by function start, or lookup address
};

}  // namespace luaspy
