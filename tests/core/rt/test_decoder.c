/* What checking bytes from outside costs: no byte behind them is read, no memory for what a header only promises, no more time than their number. */
#include <sys/mman.h>

#include "fixture.h"

/* The largest request since it was asked. */
typedef struct meter {
    size_t largest;
} meter;

static void *metered(void *data, void *p, size_t old_size, size_t new_size) {
    meter *m = data;
    (void)old_size;
    m->largest = new_size > m->largest ? new_size : m->largest;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

static void memory_is_for_what_is_there_not_for_what_is_promised(void **state) {
    (void)state;
    static const char promise[] = "\xdd\x7f\xff\xff\xff\xc0\xc0", text[] = "\x91\xdb\x7f\xff\xff\xff";
    meter m = {0};
    weir_system_options o = {.alloc = metered, .alloc_data = &m};
    weir_system *s;
    weir_body *b;
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    m.largest = 0;
    assert_int_equal(weir_body_from_bytes(s, promise, sizeof promise - 1, &b, NULL), WEIR_EMSGPACK);
    assert_int_equal(weir_body_from_bytes(s, text, sizeof text - 1, &b, NULL), WEIR_EMSGPACK);
    assert_true(m.largest < 4096);
    enum { BYTES = 100000 };
    unsigned char *bytes = calloc(1, BYTES);
    memcpy(bytes, "\xdd\x00\x01\x86\x9b", 5); /* 99,995 elements of a byte */
    assert_int_equal(weir_body_from_bytes(s, bytes, BYTES, &b, NULL), WEIR_OK);
    assert_true(m.largest < 2 * BYTES);
    weir_body_free(b);
    free(bytes);
    weir_system_free(s);
}

/* The bytes end where the page that may be read ends; each beginning of them. */
static void nothing_behind_the_bytes_is_read(void **state) {
    (void)state;
    static const char all[] =
        "\x9e\x01\xcd\x12\x34\xce\x01\x02\x03\x04\xcf\x01\x02\x03\x04\x05\x06\x07\x08\xca\x01\x02\x03\x04\xa3"
        "abc\xd9\x02xy\xda\x00\x02xy\xdb\x00\x00\x00\x02xy\xc4\x01z\xd6\x05\x01\x02\x03\x04\xc7\x02\x05xy\x92\x01\x02\x81\x01\x02";
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = sizeof all - 1;
    weir_system *s;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    for (size_t cut = 0; cut <= n; cut++) {
        char *at = pages + page - cut;
        weir_body *b = NULL;
        memcpy(at, all, cut);
        assert_int_equal(weir_body_from_bytes(s, at, cut, &b, NULL), cut == n ? WEIR_OK : WEIR_EMSGPACK);
        weir_body_free(b);
    }
    munmap(pages, 2 * page);
    weir_system_free(s);
}

/* 4 million values; the square of that would take days. */
static void time_grows_with_the_bytes(void **state) {
    (void)state;
    enum { VALUES = 4000000 };
    unsigned char *bytes = malloc(5 + VALUES);
    weir_system *s;
    weir_body *b;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    memset(bytes, 0x90, 5 + VALUES);
    memcpy(bytes, "\xdd\x00\x3d\x09\x00", 5);
    assert_int_equal(weir_body_from_bytes(s, bytes, 5 + VALUES, &b, NULL), WEIR_OK);
    weir_body_free(b);
    free(bytes);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_for_what_is_there_not_for_what_is_promised),
        cmocka_unit_test(nothing_behind_the_bytes_is_read),
        cmocka_unit_test(time_grows_with_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
