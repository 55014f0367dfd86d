#include "stack/kernel_frames.h"

#include <catch2/catch.hpp>

using namespace luaspy;

namespace {

constexpr const char* kallsyms =
    "ffffffff81000000 T _text\n"
    "ffffffff81000000 T __plain\n"
    "ffffffff81000100 T entry_SYSCALL_64_after_hwframe\n"
    "ffffffff81000200 t do_syscall_64\n"
    "ffffffff81000300 T __x64_sys_read\n"
    "ffffffff81000400 t vfs_read.isra.0\n"
    "ffffffff81000500 d some_data\n"
    "ffffffff81000600 t asm_exc_page_fault\n"
    "ffffffff810006f0 t __pfx_exc_page_fault\n"
    "ffffffff81000700 T exc_page_fault\n"
    "ffffffff81000800 T do_user_addr_fault\n"
    "ffffffff81000900 T clear_page_erms\n"
    "no symbol\n"
    "ffffffff81000a00\n"
    "ffffffffc0100000 t ext4_file_read_iter\t[ext4]\n";

KernelChain chain_of(std::initializer_list<Address> innermost_first) {
  KernelChain chain;
  for (const Address address : innermost_first) chain.add(address);
  return chain;
}

// Outermost first; what is folded in parentheses.
std::string text_of(const Stack& stack) {
  std::string text;
  for (const Frame& frame : stack) {
    REQUIRE(frame.kind == Frame::Kind::kernel);
    const std::string one = describe(frame, true);
    text += (text.empty() ? "" : "; ") + (frame.part == Frame::Part::program ? one : "(" + one + ")");
  }
  return text;
}

}  // namespace

TEST_CASE("kernel symbols: functions, by address") {
  const KernelSymbols symbols{kallsyms};
  CHECK(symbols.at(0xffffffff81000450) == KernelFunction{"vfs_read.isra.0", ""});
  CHECK(symbols.at(0xffffffff81000590) == KernelFunction{"vfs_read.isra.0", ""});  // data has no functions
  CHECK(symbols.at(0xffffffff810006f8) == KernelFunction{"asm_exc_page_fault", ""});
  CHECK(symbols.at(0xffffffff81000010) == KernelFunction{"_text", ""});
  CHECK(symbols.at(0xffffffffc0100001) == KernelFunction{"ext4_file_read_iter", "ext4"});
  CHECK(symbols.at(0xffffffffc0900000) == KernelFunction{});  // too far from any symbol
  CHECK(symbols.at(0x1000) == KernelFunction{});
}

TEST_CASE("kernel symbols: without the right to see addresses there are none") {
  CHECK(KernelSymbols("0000000000000000 T _text\n0000000000000000 T do_syscall_64\n").empty());
  CHECK(KernelSymbols("").empty());
  CHECK(KernelSymbols{}.at(0xffffffff81000100) == KernelFunction{});
}

TEST_CASE("kernel frames: a system call is called what programs call it, what leads there is folded") {
  const KernelSymbols symbols{kallsyms};
  const KernelChain chain = chain_of(
      {0xffffffffc0100010, 0xffffffff81000420, 0xffffffff81000310, 0xffffffff81000210, 0xffffffff81000110});
  CHECK(text_of(kernel_stack(chain, symbols)) ==
        "(entry_SYSCALL_64_after_hwframe [kernel]); (do_syscall_64 [kernel]); read [kernel]; vfs_read [kernel]; "
        "ext4_file_read_iter [ext4]");
}

TEST_CASE("kernel frames: a return address belongs to the call before it") {
  const KernelSymbols symbols{kallsyms};
  // The call is the last instruction of __x64_sys_read.
  CHECK(text_of(kernel_stack(chain_of({0xffffffff81000400, 0xffffffff81000400}), symbols)) ==
        "read [kernel]; vfs_read [kernel]");
}

TEST_CASE("kernel frames: page faults and interrupts by name") {
  const KernelSymbols symbols{kallsyms};
  CHECK(text_of(kernel_stack(chain_of({0xffffffff81000901, 0xffffffff81000801, 0xffffffff81000701, 0xffffffff81000601}),
                             symbols)) ==
        "(asm_exc_page_fault [kernel]); page_fault [kernel]; (do_user_addr_fault [kernel]); clear_page_erms [kernel]");
  CHECK(text_of(kernel_stack(std::vector<KernelFunction>{{"asm_sysvec_apic_timer_interrupt", ""},
                                                         {"sysvec_apic_timer_interrupt", ""}})) ==
        "(asm_sysvec_apic_timer_interrupt [kernel]); apic_timer_interrupt [kernel]");
}

TEST_CASE("kernel frames: wrappers of one system call are one frame") {
  CHECK(text_of(kernel_stack(std::vector<KernelFunction>{{"__x64_sys_futex", ""},
                                                         {"__se_sys_futex", ""},
                                                         {"__do_sys_futex.cold", ""},
                                                         {"do_futex.constprop.0", ""}})) ==
        "futex [kernel]; (futex [kernel]); (futex [kernel]); do_futex [kernel]");
}

TEST_CASE("kernel frames: the border itself is shown if nothing else is left") {
  const KernelSymbols symbols{kallsyms};
  CHECK(text_of(kernel_stack(chain_of({0xffffffff81000201, 0xffffffff81000110}), symbols)) ==
        "(entry_SYSCALL_64_after_hwframe [kernel]); do_syscall_64 [kernel]");
}

TEST_CASE("kernel frames: without symbols, with unknown addresses, without a chain") {
  const KernelSymbols symbols{kallsyms};
  CHECK(text_of(kernel_stack(chain_of({0xffffffff81000420}), KernelSymbols{})) == "[kernel]");
  CHECK(text_of(kernel_stack(chain_of({0x1234, 0xffffffff81000310}), symbols)) == "read [kernel]; ? [kernel]");
  CHECK(kernel_stack(KernelChain{}, symbols).empty());
}

TEST_CASE("kernel frames: a chain takes no more than it has room for") {
  KernelChain chain;
  for (Address i = 0; i < 1000; ++i) chain.add(i);
  CHECK(chain.addresses().size() == KernelChain::most);
  CHECK(chain.addresses().back() == KernelChain::most - 1);
}

TEST_CASE("kernel frames: the stack of a sleeping thread") {
  CHECK(text_of(kernel_stack("[<0>] ep_poll+0x2f0/0x3a0\n"
                             "[<0>] fuse_dev_read+0x10/0x20 [fuse]\n"
                             "[<0>] do_epoll_wait+0xb4/0xe0\n"
                             "[<0>] __x64_sys_epoll_wait+0x60/0x100\n"
                             "[<0>] do_syscall_64+0x3a/0x90\n"
                             "[<0>] entry_SYSCALL_64_after_hwframe+0x72/0xdc\n")) ==
        "(entry_SYSCALL_64_after_hwframe [kernel]); (do_syscall_64 [kernel]); epoll_wait [kernel]; "
        "do_epoll_wait [kernel]; fuse_dev_read [fuse]; ep_poll [kernel]");
}

TEST_CASE("kernel frames: text that is no stack gives none, and not too many") {
  CHECK(kernel_stack("").empty());
  CHECK(kernel_stack("[<0>]\n[<0>] \n[<0>] +0x1/0x2\nfoo+0x1/0x2\n[<0>] 0xffffffff\n").empty());
  CHECK(text_of(kernel_stack("[<0>] a\x1b[31m+0x1/0x2 [\n")) == "a\\x1b[31m [kernel]");
  std::string long_text;
  for (int i = 0; i < 1000; ++i) long_text += "[<0>] f+0x1/0x2\n";
  CHECK(kernel_stack(long_text).size() == KernelChain::most);
}
