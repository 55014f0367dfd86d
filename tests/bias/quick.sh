#!/bin/sh
# quick.sh LUASPY [--user] [--rate 100] [--seconds 5] [--summary]: the shares of two system calls,
# on a quiet machine and beside three spinners.
exec /usr/bin/env python3 "$(dirname "$0")/bias.py" quick "$@"
