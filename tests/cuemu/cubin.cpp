// cubin.cpp: what a cubin's ELF sections say of its kernels: registers, stack, static shared memory, launch bounds, parameters; and the parts of a fatbin. Every offset
// is checked against the image, and no byte of a cubin is read for more than one section.
#include "cubin.h"
#include <algorithm>
#include <cstring>

using std::string;

namespace {
enum { SECTION_SIZE = 64, SYMBOL_SIZE = 24, SYMBOL_TABLE = 2, NO_BYTES = 8, GLOBAL_FUNCTION = 0x12 };
enum { INFO_REGISTERS = 0x2f, INFO_STACK = 0x11, INFO_BOUNDS = 0x05, INFO_PARAMETER = 0x17, INFO_SIZED = 4 };
enum { MAX_NAME = 256, MAX_PARAMETERS = 256 };

struct Image {
    const uint8_t *bytes;
    size_t size;
    template <class T> T get(size_t at) const {
        T v = 0;
        if (at <= size && sizeof v <= size - at)
            memcpy(&v, bytes + at, sizeof v);
        return v;
    }
    string text(size_t table, uint32_t at) const {
        const size_t from = table + at;
        return table < size && from < size
                   ? string((const char *)bytes + from, strnlen((const char *)bytes + from, std::min(size - from, (size_t)MAX_NAME)))
                   : string();
    }
};

struct Section {
    uint32_t name, type, link;
    size_t offset, length; // inside of the image
};

typedef std::map<uint32_t, string> Symbols;

Section read_section(const Image &f, size_t i) {
    const size_t at = f.get<uint64_t>(40) + SECTION_SIZE * i;
    Section s = {f.get<uint32_t>(at), f.get<uint32_t>(at + 4), f.get<uint32_t>(at + 40), f.get<uint64_t>(at + 24),
                 f.get<uint64_t>(at + 32)};
    if (s.type != NO_BYTES && (s.offset > f.size || s.length > f.size - s.offset))
        s.offset = s.length = 0;
    return s;
}

// False: they have more bytes together than the image, so some overlap.
bool read_sections(const Image &f, std::vector<Section> &out) {
    size_t left = f.size;
    const size_t count = f.get<uint16_t>(60);
    for (size_t i = 0; i < count && i < f.size / SECTION_SIZE; i++) {
        out.push_back(read_section(f, i));
        if (out[i].type == NO_BYTES)
            continue;
        if (out[i].length > left)
            return false;
        left -= out[i].length;
    }
    return true;
}

void read_symbols(const Image &f, const Section &s, size_t names, Symbols &symbols, Cubin &out) {
    for (size_t j = 0; j < s.length / SYMBOL_SIZE; j++) {
        const size_t at = s.offset + j * SYMBOL_SIZE;
        if (f.get<uint8_t>(at + 4) != GLOBAL_FUNCTION)
            continue;
        const string name = f.text(names, f.get<uint32_t>(at));
        symbols[(uint32_t)j] = name;
        out[name];
    }
}

void read_parameter(const Image &f, size_t at, Resources &r) {
    const size_t ordinal = f.get<uint16_t>(at + 4);
    if (ordinal >= MAX_PARAMETERS)
        return;
    if (r.parameters.size() <= ordinal)
        r.parameters.resize(ordinal + 1);
    r.parameters[ordinal] = {f.get<uint16_t>(at + 6), f.get<uint32_t>(at + 8) >> 18};
}

// One section of attributes; own: the kernel that it is about, NULL for the section about all.
void read_info(const Image &f, const Section &s, const Symbols &symbols, Cubin &out, Resources *own) {
    size_t at = s.offset;
    const size_t end = at + s.length;
    while (at + 4 <= end) {
        const int format = f.get<uint8_t>(at), attribute = f.get<uint8_t>(at + 1);
        const size_t size = f.get<uint16_t>(at + 2);
        at += 4;
        if (format != INFO_SIZED)
            continue;
        const auto symbol = symbols.find(f.get<uint32_t>(at));
        if (!own && symbol != symbols.end() && attribute == INFO_REGISTERS)
            out[symbol->second].registers = (int)f.get<uint32_t>(at + 4);
        if (!own && symbol != symbols.end() && attribute == INFO_STACK)
            out[symbol->second].local = (int)f.get<uint32_t>(at + 4);
        if (own && attribute == INFO_BOUNDS)
            own->max_threads = (int)(f.get<uint32_t>(at) * f.get<uint32_t>(at + 4) * f.get<uint32_t>(at + 8));
        if (own && attribute == INFO_PARAMETER)
            read_parameter(f, at, *own);
        at += size;
    }
}

void read_kernel(const Image &f, const Section &s, const string &name, const Symbols &symbols, Cubin &out) {
    if (name.rfind(".nv.shared.", 0) == 0 && out.count(name.substr(11)))
        out[name.substr(11)].shared = (int)s.length;
    else if (s.type == NO_BYTES)
        return; // its length is no number of bytes here
    else if (name == ".nv.info")
        read_info(f, s, symbols, out, nullptr);
    else if (name.rfind(".nv.info.", 0) == 0 && out.count(name.substr(9)))
        read_info(f, s, symbols, out, &out[name.substr(9)]);
}

template <class T> T get(const uint8_t *p) {
    T v;
    memcpy(&v, p, sizeof v);
    return v;
}

// A fatbin: 16 bytes of header, then parts of a header and bytes each.
const uint32_t FATBIN_MAGIC = 0xba55ed50;
enum { IMAGE_PTX = 1, IMAGE_CUBIN = 2, PACKED = 0xa000 /* by lz4 or zstd */, PART_HEADER = 64 };
} // namespace

bool parse_cubin(const uint8_t *image, size_t size, Cubin &out) {
    const Image f{image, size};
    std::vector<Section> sections;
    Symbols symbols;
    if (size < SECTION_SIZE || memcmp(image, "\177ELF", 4) != 0 || !read_sections(f, sections))
        return false;
    const size_t names = f.get<uint16_t>(62);
    for (const Section &s : sections)
        if (s.type == SYMBOL_TABLE && s.link < sections.size())
            read_symbols(f, s, sections[s.link].offset, symbols, out);
    for (const Section &s : sections)
        if (names < sections.size())
            read_kernel(f, s, f.text(sections[names].offset, s.name), symbols, out);
    return true;
}

uint64_t fatbin_size(const uint8_t *image) {
    const uint64_t header = get<uint16_t>(image + 6), bytes = get<uint64_t>(image + 8);
    return get<uint32_t>(image) == FATBIN_MAGIC && bytes <= UINT64_MAX / 2 ? header + bytes : 0;
}

bool parse_fatbin(const uint8_t *image, size_t size, unsigned capability, Cubin &out, bool *usable) {
    uint32_t best = 0;
    for (uint64_t at = get<uint16_t>(image + 6); at + PART_HEADER <= size;) {
        const uint8_t *p = image + at;
        const uint16_t kind = get<uint16_t>(p);
        const uint32_t header = get<uint32_t>(p + 4), arch = get<uint32_t>(p + 28);
        const uint64_t bytes = get<uint64_t>(p + 8);
        const bool packed = get<uint64_t>(p + 40) & PACKED;
        if (header < PART_HEADER || header > size - at || bytes > size - at - header)
            break;
        *usable = *usable || (kind == IMAGE_PTX && arch <= capability);
        if (kind == IMAGE_CUBIN && arch / 10 == capability / 10 && arch <= capability && arch > best) {
            *usable = true;
            out.clear();
            if (!packed && parse_cubin(p + header, bytes, out))
                best = arch;
        }
        at += header + bytes;
    }
    return best != 0;
}

extern "C" int cuemu_kernels_of(const uint8_t *image, size_t size, unsigned capability) {
    Cubin cubin;
    bool usable = false;
    if (size < 16)
        return -1;
    const uint64_t whole = fatbin_size(image);
    if (whole ? whole > size || !parse_fatbin(image, whole, capability, cubin, &usable) : !parse_cubin(image, size, cubin))
        return -1;
    return (int)cubin.size();
}
