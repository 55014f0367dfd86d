#include "unwind/call_frame_entry.h"

namespace luaspy {

// LSB 5.0, table 10.5: DW_EH_PE_*. Indirect pointers, and pointers relative to anything but
// themselves, are not accepted: linkers do not write them.
std::optional<Address> read_pointer(EncodedBytes& bytes, unsigned encoding, bool is_length) {
  const Address here = bytes.at();
  const unsigned relative = encoding & 0xf0;
  std::uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = bytes.read<std::uint64_t>();
      break;
    case 0x01:
      value = bytes.uleb();
      break;
    case 0x02:
      value = bytes.read<std::uint16_t>();
      break;
    case 0x03:
      value = bytes.read<std::uint32_t>();
      break;
    case 0x09:
      value = static_cast<std::uint64_t>(bytes.sleb());
      break;
    case 0x0a:
      value = static_cast<std::uint64_t>(std::int64_t{bytes.read<std::int16_t>()});
      break;
    case 0x0b:
      value = static_cast<std::uint64_t>(std::int64_t{bytes.read<std::int32_t>()});
      break;
    default:
      return std::nullopt;
  }
  if (!bytes.good() || (relative != 0 && relative != 0x10)) return std::nullopt;
  return relative == 0x10 && !is_length ? here + value : value;
}

namespace {

// LSB 5.0, 10.6.1.1.1: the letters of a CIE's augmentation. False if a letter is unknown, because
// what follows cannot be read then.
bool read_augmentation(EncodedBytes& cie, std::string_view letters, CallFrameEntry& entry) {
  if (letters.empty()) return true;
  if (letters.front() != 'z') return false;
  EncodedBytes data(cie.skip(cie.uleb()), cie.at());
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R':
        entry.encoding = data.read<std::uint8_t>();
        break;
      case 'L':
        (void)data.read<std::uint8_t>();
        break;
      case 'P': {
        const unsigned encoding = data.read<std::uint8_t>() & 0x0f;  // only its length is of interest
        if (!read_pointer(data, encoding)) return false;
        break;
      }
      case 'S':
        entry.interrupted = true;
        break;
      default:
        return false;
    }
  }
  return data.good();
}

bool read_cie(const LoadedBytes& loaded, Address at, CallFrameEntry& entry, bool& has_augmentation) {
  EncodedBytes header(loaded.from(at), at);
  const std::uint32_t length = header.read<std::uint32_t>();
  EncodedBytes cie(header.skip(length), at + 4);
  if (!header.good() || cie.read<std::uint32_t>() != 0) return false;
  const std::uint8_t version = cie.read<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  constexpr std::size_t longest = 8;
  char letters[longest];
  std::size_t count = 0;
  for (char letter; (letter = static_cast<char>(cie.read<std::uint8_t>())) != '\0';) {
    if (count == longest) return false;
    letters[count++] = letter;
  }
  entry.code_factor = cie.uleb();
  entry.data_factor = cie.sleb();
  entry.return_address = version == 1 ? cie.read<std::uint8_t>() : cie.uleb();
  has_augmentation = count != 0;
  if (!read_augmentation(cie, {letters, count}, entry) || !cie.good()) return false;
  entry.initial = cie.rest();
  return true;
}

}  // namespace

std::optional<CallFrameEntry> read_entry(const LoadedBytes& loaded, Address at) {
  EncodedBytes header(loaded.from(at), at);
  const std::uint32_t length = header.read<std::uint32_t>();
  EncodedBytes fde(header.skip(length), at + 4);
  const std::uint32_t back = fde.read<std::uint32_t>();  // distance from this field back to the CIE
  CallFrameEntry entry;
  bool has_augmentation = false;
  if (!header.good() || !fde.good() || back == 0 || !read_cie(loaded, at + 4 - back, entry, has_augmentation))
    return std::nullopt;
  const std::optional<Address> start = read_pointer(fde, entry.encoding),
                               size = read_pointer(fde, entry.encoding, true);
  if (!start || !size) return std::nullopt;
  if (has_augmentation) (void)fde.skip(fde.uleb());
  if (!fde.good()) return std::nullopt;
  entry.start = *start, entry.end = *start + *size;
  entry.instructions = fde.rest();
  entry.instructions_at = fde.at();
  return entry;
}

}  // namespace luaspy
