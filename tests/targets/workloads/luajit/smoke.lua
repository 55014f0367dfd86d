io.stdout:write(jit.version, " ", require("ffi").abi("gc64") and "yes" or "no", "\n")
