/* test_places.c: the queue of places to merge: whatever way they come in, they come out by priority, then from the left; what repeats itself stays out of the heap. */
#include "../../../core/text/places.h"
#include "test.h"

enum { MOST = 4096 };

static weir_system *s;

static int setup(void **state) {
    (void)state;
    return weir_system_new(NULL, &s, NULL);
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    return 0;
}

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Pushes and pops at random, n places at most; compares with a sorted array. */
static void check_random(size_t n, uint32_t priorities, uint32_t seed) {
    static uint64_t keys[MOST];
    size_t held = 0;
    weir__places q = {0};
    uint32_t priority, position, random = seed;
    assert_int_equal(weir__places_reserve(s, &q, n), WEIR_OK);
    weir__places_start(&q, n);
    for (size_t step = 0; step < 8 * n; step++) {
        random = random * 1664525 + 1013904223;
        if (held < n && random >> 31) {
            uint64_t key = (uint64_t)(random >> 8 & 0xFFFF) % priorities << 32 | (step & 1 ? step : (random >> 4) % n);
            keys[held++] = key;
            qsort(keys, held, sizeof *keys, by_key);
            weir__places_push(&q, (uint32_t)(key >> 32), (uint32_t)key);
        } else {
            assert_int_equal(weir__places_pop(&q, &priority, &position), held > 0);
            if (held == 0)
                continue;
            assert_true(((uint64_t)priority << 32 | position) == keys[0]);
            memmove(keys, keys + 1, --held * sizeof *keys);
        }
    }
    weir__places_fini(s, &q);
}

static void places_come_out_in_order(void **state) {
    (void)state;
    check_random(20, 4, 1);
    check_random(600, 1, 2);
    check_random(600, 3, 3);
    check_random(600, 5000, 4); /* more priorities than lanes */
    check_random(1000, 50, 5);
}

static void places_that_come_in_from_the_left_cost_no_heap(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    weir__places q = {0};
    uint32_t priority, position;
    assert_int_equal(weir__places_reserve(s, &q, N), WEIR_OK);
    weir__places_start(&q, N);
    for (uint32_t i = 0; i < N; i++)
        weir__places_push(&q, i % 7, i);
    assert_int_equal(q.heap_size, 0);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(weir__places_pop(&q, &priority, &position));
        if (i % 7 == 0)
            weir__places_push(&q, priority + 100, position);
    }
    assert_int_equal(q.heap_size, 0);
    assert_int_equal(q.n_entries, N); /* what was taken out is used again */
    weir__places_fini(s, &q);
}

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        weir__places q = {0};
        weir__inject_arm(s, "ALLOC", nth, 1);
        assert_int_equal(weir__places_reserve(s, &q, 1000), WEIR_ENOMEM);
        weir__inject_arm(s, "ALLOC", 1, 0);
        assert_int_equal(weir__places_reserve(s, &q, 1000), WEIR_OK);
        weir__places_start(&q, 1000);
        weir__places_push(&q, 1, 2);
        weir__places_fini(s, &q);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_come_out_in_order),
        cmocka_unit_test(places_that_come_in_from_the_left_cost_no_heap),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
