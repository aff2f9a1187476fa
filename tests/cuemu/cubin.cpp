// cubin.cpp: what a cubin's ELF sections say of its kernels: registers, stack, static shared memory, launch bounds, parameters. Reads the images that nvcc made for this
// build; every offset is checked against the image.
#include "state.h"
#include <cstring>

namespace {
enum { SECTION_SIZE = 64, SYMBOL_SIZE = 24, SYMBOL_TABLE = 2, GLOBAL_FUNCTION = 0x12 };
enum { INFO_REGISTERS = 0x2f, INFO_STACK = 0x11, INFO_BOUNDS = 0x05, INFO_PARAMETER = 0x17, INFO_SIZED = 4 };

struct Image {
    const uint8_t *bytes;
    size_t size;
    template <class T> T get(size_t at) const {
        T v = 0;
        if (at <= size && sizeof v <= size - at)
            memcpy(&v, bytes + at, sizeof v);
        return v;
    }
    size_t section(size_t i) const { return get<uint64_t>(40) + SECTION_SIZE * i; }
    size_t offset(size_t i) const { return get<uint64_t>(section(i) + 24); }
    size_t length(size_t i) const { return get<uint64_t>(section(i) + 32); }
    string text(size_t table, uint32_t at) const {
        const size_t from = offset(table) + at;
        return from < size ? string((const char *)bytes + from, strnlen((const char *)bytes + from, size - from)) : string();
    }
};

typedef std::map<uint32_t, string> Symbols;

void read_symbols(const Image &f, size_t section, Symbols &symbols, Cubin &out) {
    const size_t from = f.offset(section), names = f.get<uint32_t>(f.section(section) + 40);
    for (size_t j = 0; j < f.length(section) / SYMBOL_SIZE; j++) {
        const size_t at = from + j * SYMBOL_SIZE;
        if (at >= f.size)
            return;
        if (f.get<uint8_t>(at + 4) == GLOBAL_FUNCTION) {
            symbols[(uint32_t)j] = f.text(names, f.get<uint32_t>(at));
            out[symbols[(uint32_t)j]];
        }
    }
}

void read_parameter(const Image &f, size_t at, Resources &r) {
    const size_t ordinal = f.get<uint16_t>(at + 4);
    if (r.parameters.size() <= ordinal)
        r.parameters.resize(ordinal + 1);
    r.parameters[ordinal] = {f.get<uint16_t>(at + 6), f.get<uint32_t>(at + 8) >> 18};
}

// One section of attributes; own: the kernel that it is about, NULL for the section about all.
void read_info(const Image &f, size_t section, const Symbols &symbols, Cubin &out, Resources *own) {
    size_t at = f.offset(section);
    const size_t end = at + f.length(section);
    while (at + 4 <= end && at + 4 <= f.size) {
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
} // namespace

bool parse_cubin(const uint8_t *image, size_t size, Cubin &out) {
    const Image f{image, size};
    if (size < SECTION_SIZE || memcmp(image, "\177ELF", 4) != 0)
        return false;
    const size_t sections = f.get<uint16_t>(60), names = f.get<uint16_t>(62);
    Symbols symbols;
    for (size_t i = 0; i < sections; i++)
        if (f.get<uint32_t>(f.section(i) + 4) == SYMBOL_TABLE)
            read_symbols(f, i, symbols, out);
    for (size_t i = 0; i < sections; i++) {
        const string name = f.text(names, f.get<uint32_t>(f.section(i)));
        if (name.rfind(".nv.shared.", 0) == 0 && out.count(name.substr(11)))
            out[name.substr(11)].shared = (int)f.length(i);
        else if (name == ".nv.info")
            read_info(f, i, symbols, out, nullptr);
        else if (name.rfind(".nv.info.", 0) == 0 && out.count(name.substr(9)))
            read_info(f, i, symbols, out, &out[name.substr(9)]);
    }
    return true;
}
