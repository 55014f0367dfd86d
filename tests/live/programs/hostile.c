/* A program that builds states, code and names which no Lua would build, and then works: hostile CASE. Linked with the
   static library of Lua 5.4.6 or a later 5.4.
     names      functions, chunks, fields, locals and threads whose names are terminal escapes, separators, markup, or
                invalid UTF-8
     cycle      a CallInfo that is its own caller
     sizes      a Proto that claims to have 2^31 - 1 instructions, constants, upvalues and lines
     endless    a chunk's name of 2^40 bytes at the end of mapped memory
     backwards  an L whose global_State has another main thread; and a thousand like it on the C stack
     elf        the call comes through a mapped ELF file with absurd counts and sizes */

#define _GNU_SOURCE
#include <elf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lobject.h"
#include "lstate.h"
#include "lua.h"
#include "lualib.h"

/* Right to left, a line separator, a byte order mark. */
#define MARKS "\\xe2\\x80\\xae\\xe2\\x80\\xa8\\xef\\xbb\\xbf"
#define ESCAPES \
  "a;b\\n\\x1b[31m\\x1b]0;owned\\x07\\xff\\xc2\\x9b2J" MARKS "</script><script>window.owned=1</script><!--"

static const char* what;
static volatile unsigned long long sink;

static void work(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  puts("READY");
  fflush(stdout);
  while (poll(&input, 1, 0) == 0) {
    for (int i = 0; i < 100000; ++i) sink += (unsigned)i;
  }
  _exit(0); /* these structures do not allow a normal exit */
}

static void write_chunk_name(Proto* p) {
  long page = sysconf(_SC_PAGESIZE);
  char* room = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(room + page, (size_t)page);
  TString* name = (TString*)(room + page - 64);
  memset(room, '\x1b', (size_t)page);
  name->tt = LUA_VLNGSTR;
  name->u.lnglen = (size_t)1 << 40;
  name->contents[0] = '@';
  p->source = name;
}

struct fakes {
  lua_State states[8];
  lua_State* mentioned[1000];
};

static __attribute__((noinline)) void work_among_fakes(lua_State* L) {
  struct fakes fakes;
  for (int i = 0; i < 8; ++i) fakes.states[i] = *L, fakes.states[i].errorJmp = (void*)&fakes.states[i];
  for (int i = 0; i < 1000; ++i) fakes.mentioned[i] = &fakes.states[i % 8];
  G(L)->mainthread = &fakes.states[3];
  __asm__ volatile("" : : "r"(&fakes) : "memory");
  work();
}

static int build(lua_State* L) {
  CallInfo* ci = L->ci->previous; /* of the Lua function that has called this one */
  Proto* p = clLvalue(s2v(ci->func.p))->p;
  if (strcmp(what, "cycle") == 0) ci->previous = ci;
  if (strcmp(what, "sizes") == 0)
    p->sizecode = p->sizek = p->sizeupvalues = p->sizelocvars = p->sizelineinfo = p->sizeabslineinfo = p->linedefined =
        0x7fffffff;
  if (strcmp(what, "endless") == 0) write_chunk_name(p);
  if (strcmp(what, "backwards") == 0) work_among_fakes(L);
  work();
  return 0;
}

/* A file of one page with an ELF header; at 0x800 in it: sub rsp, 8; call rdi; add rsp, 8; ret. */
static void call_through_elf(void (*function)(void)) {
  static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  unsigned char page[4096] = {0};
  Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_DYN,
                       .e_machine = EM_X86_64,
                       .e_version = EV_CURRENT};
  header.e_phoff = sizeof header, header.e_ehsize = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr),
  header.e_phnum = 4;
  header.e_shoff = 0x400, header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 0, header.e_shstrndx = SHN_XINDEX;
  Elf64_Phdr segments[4] = {{PT_LOAD, PF_R | PF_X, 0, 0, 0, 4096, 4096, 4096},
                            {PT_GNU_EH_FRAME, PF_R, 0x600, 0x600, 0x600, ~0ul, ~0ul, 4},
                            {PT_DYNAMIC, PF_R, 0xff0, 0xff0, 0xff0, ~0ul, ~0ul, 8},
                            {PT_LOAD, PF_R | PF_X, 0xfffffffffffff000, 0x1000, 0x1000, ~0ul, ~0ul, 4096}};
  Elf64_Shdr sections[3] = {
      {.sh_size = 0xffffffffff, .sh_link = 0xffffffff, .sh_info = 0xffffffff},
      {.sh_type = SHT_SYMTAB,
       .sh_offset = 0x100,
       .sh_size = 0xffffffffffffff00,
       .sh_entsize = 24,
       .sh_link = 2,
       .sh_info = 0x7fffffff},
      {.sh_type = SHT_STRTAB, .sh_flags = SHF_COMPRESSED, .sh_offset = 0x100, .sh_size = 0xffffffffffffff00}};
  const unsigned table[] = {0x3b031b01, 0x100, 0x7fffffff, 0x80000000, 0x7fffffff};
  memcpy(page, &header, sizeof header);
  memcpy(page + sizeof header, segments, sizeof segments);
  memcpy(page + 0x400, sections, sizeof sections);
  memcpy(page + 0x600, table, sizeof table);
  memcpy(page + 0x800, code, sizeof code);
  FILE* file = tmpfile();
  if (file == NULL || fwrite(page, sizeof page, 1, file) != 1 || fflush(file) != 0) exit(1);
  char* mapped = mmap(NULL, sizeof page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
  if (mapped == MAP_FAILED) exit(1);
  ((void (*)(void (*)(void)))(mapped + 0x800))(function);
}

static void run(void) {
  static const char
      source[] = "local t = {} for _, name in ipairs{'" ESCAPES
                 "', 'plain'} do t[name] = build _G[name] = build end\n"
                 "local hostile = '" ESCAPES
                 "'\n"
                 "local function outer(arg, ...) local copy = {[hostile] = hostile, hostile} return (t['" ESCAPES
                 "'](arg, copy, ...)) end\n"
                 "local module = {__name = '\\x9b31mEVIL\\xff', field = function(x) return (outer(x, hostile)) end}\n"
                 "package.loaded.module = module\n"
                 "local co = coroutine.wrap(module.field)\n"
                 "co(hostile)";
  static const char chunk[] =
      "@a;b\n\x1b[31m\x1b]0;owned\x07\xff\xc2\x9b"
      "2J\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf</script><script>window.owned=1</script><!--.lua";
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "build", build);
  if (luaL_loadbuffer(L, source, sizeof source - 1, chunk) || lua_pcall(L, 0, 0, 0))
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
}

int main(int count, char** arguments) {
  what = count > 1 ? arguments[1] : "names";
  prctl(PR_SET_NAME, "\x1b[31m;\n</script>");
  if (strcmp(what, "elf") == 0) call_through_elf(run);
  else run();
  return 1;
}
