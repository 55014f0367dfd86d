# The rest of a 50 MB program with Lua in it: 150,000 functions with call frame information.
  .text
  .rept 150000
  .p2align 4
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  push %rbx
  .cfi_def_cfa_offset 24
  .cfi_offset %rbx, -24
  sub $24, %rsp
  .cfi_def_cfa_offset 48
  .fill 250, 1, 0x90
  add $24, %rsp
  .cfi_def_cfa_offset 24
  pop %rbx
  .cfi_def_cfa_offset 16
  pop %rbp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .endr
  .section .note.GNU-stack, "", @progbits
