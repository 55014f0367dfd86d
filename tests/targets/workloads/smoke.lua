io.stdout:write(_VERSION, "\n")
