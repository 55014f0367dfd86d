// What of a stack is shown: the same as base/mode.cpp decides.

const modeTexts = {lua: "Lua only", merged: "C and Lua", all: "everything"};

// `part` is Frame::Part (base/frame.h): 0 is the program's own.
function shows(mode, kind, part) {
  if (mode === "all" || mode === "native") return true;
  return part === 0 && (mode === "merged" || (kind !== "native" && kind !== "kernel"));
}

// shown[frame]
function shownFrames(frames, mode) { return Uint8Array.from(frames.kind, (kind, frame) => shows(mode, kind, frames.part[frame])); }
