/* test_kv.c: the KV cache's bookkeeping: no block is ever in two hands, a refusal changes nothing, all blocks come back. */
#include "../../../core/model/kv.h"
#include "../../../kernels/kernels.h"
#include "test.h"

enum { B = WEIR_KV_BLOCK, BLOCKS = 8, POSITIONS = BLOCKS * B };

typedef struct fixture {
    weir_system *system;
    weir__kv *kv;
    uint64_t bytes;
} fixture;

static uint64_t held_bytes(weir_system *s) {
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    return stats.bytes;
}

static fixture begin(uint32_t positions, uint32_t limit) {
    fixture f = {0};
    assert_int_equal(weir_system_new(NULL, &f.system, NULL), WEIR_OK);
    f.bytes = held_bytes(f.system);
    assert_int_equal(weir__kv_new(f.system, positions, limit, &f.kv, NULL), WEIR_OK);
    return f;
}

static void end(fixture *f) {
    assert_int_equal(weir__kv_free_blocks(f->kv), weir__kv_blocks(f->kv));
    weir__kv_free(f->kv);
    assert_int_equal(held_bytes(f->system), f->bytes);
    weir_system_free(f->system);
}

static uint64_t open_one(fixture *f) {
    uint64_t id = 0;
    assert_int_equal(weir__kv_open(f->kv, &id, NULL), WEIR_OK);
    assert_true(id > 0);
    return id;
}

/* Writes positions [length, length + count). */
static void extend(fixture *f, uint64_t id, uint32_t count) {
    uint32_t length = weir__kv_length(f->kv, id);
    assert_int_equal(weir__kv_reserve(f->kv, id, length, count, NULL), WEIR_OK);
    weir__kv_commit(f->kv, id, length + count);
}

static const int32_t *row(const fixture *f, uint64_t id) {
    return weir__kv_table(f->kv) + (size_t)weir__kv_slot(f->kv, id) * weir__kv_blocks_per_sequence(f->kv);
}

/* The reservation must be refused with that code and these words, and change nothing. */
static void refused(fixture *f, uint64_t id, uint32_t first, uint32_t count, int code, const char *words) {
    weir_error *error = NULL;
    uint32_t free_blocks = weir__kv_free_blocks(f->kv), length = weir__kv_length(f->kv, id);
    size_t size = sizeof(int32_t) * WEIR_MAX_SEQUENCES * weir__kv_blocks_per_sequence(f->kv);
    int32_t *before = malloc(size);
    memcpy(before, weir__kv_table(f->kv), size);
    assert_int_equal(weir__kv_reserve(f->kv, id, first, count, &error), code);
    if (!strstr(weir_error_text(error), words))
        fail_msg("\"%s\" is not in \"%s\"", words, weir_error_text(error));
    weir_error_free(error);
    assert_int_equal(weir__kv_free_blocks(f->kv), free_blocks);
    assert_int_equal(weir__kv_length(f->kv, id), length);
    assert_memory_equal(weir__kv_table(f->kv), before, size);
    free(before);
}

static void a_new_sequence_is_empty(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t id = open_one(&f);
    assert_int_equal(weir__kv_blocks(f.kv), BLOCKS);
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS);
    assert_int_equal(weir__kv_length(f.kv, id), 0);
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void positions_are_rounded_up_to_blocks(void **state) {
    (void)state;
    fixture f = begin(B + 1, 3 * B);
    assert_int_equal(weir__kv_blocks(f.kv), 2);
    assert_int_equal(weir__kv_blocks_per_sequence(f.kv), 2);
    end(&f);
}

static void reserved_positions_take_blocks_and_commit_sets_the_length(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t id = open_one(&f);
    assert_int_equal(weir__kv_reserve(f.kv, id, 0, B + 1, NULL), WEIR_OK);
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS - 2);
    assert_int_equal(weir__kv_length(f.kv, id), 0);
    weir__kv_commit(f.kv, id, B + 1);
    assert_int_equal(weir__kv_length(f.kv, id), B + 1);
    extend(&f, id, B - 1); /* the second block has room for them */
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS - 2);
    extend(&f, id, 1);
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS - 3);
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void no_block_belongs_to_two_sequences(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t ids[2] = {open_one(&f), open_one(&f)};
    unsigned owners[BLOCKS] = {0};
    for (int round = 0; round < BLOCKS / 2; round++)
        for (int i = 0; i < 2; i++)
            extend(&f, ids[i], B);
    for (int i = 0; i < 2; i++)
        for (int b = 0; b < BLOCKS / 2; b++) {
            assert_in_range(row(&f, ids[i])[b], 0, BLOCKS - 1);
            owners[row(&f, ids[i])[b]]++;
        }
    for (int b = 0; b < BLOCKS; b++)
        assert_int_equal(owners[b], 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__kv_close(f.kv, ids[i]), WEIR_OK);
    end(&f);
}

static void a_smaller_commit_truncates_and_gives_blocks_back(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t id = open_one(&f);
    extend(&f, id, 4 * B);
    int32_t kept[2] = {row(&f, id)[0], row(&f, id)[1]};
    weir__kv_commit(f.kv, id, B + 1);
    assert_int_equal(weir__kv_length(f.kv, id), B + 1);
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS - 2);
    assert_memory_equal(row(&f, id), kept, sizeof kept);
    weir__kv_commit(f.kv, id, 0);
    assert_int_equal(weir__kv_free_blocks(f.kv), BLOCKS);
    extend(&f, id, POSITIONS); /* all of them are there again */
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void a_pass_may_begin_inside_what_is_written_but_not_beyond(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t id = open_one(&f);
    extend(&f, id, B);
    refused(&f, id, B + 1, 1, WEIR_ESTATE, "position 33, but only 32 are written");
    assert_int_equal(weir__kv_reserve(f.kv, id, 5, 2, NULL), WEIR_OK);
    weir__kv_commit(f.kv, id, 7);
    assert_int_equal(weir__kv_length(f.kv, id), 7);
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void an_empty_pool_refuses_and_changes_nothing(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t large = open_one(&f), small = open_one(&f);
    extend(&f, large, (BLOCKS - 1) * B);
    extend(&f, small, 1);
    refused(&f, small, 1, B, WEIR_ECONTEXT, "0 of 8 blocks of 32 positions free, 1 more wanted");
    refused(&f, large, (BLOCKS - 1) * B, 1, WEIR_ECONTEXT, "0 of 8 blocks");
    extend(&f, small, B - 1); /* what its block still holds */
    assert_int_equal(weir__kv_close(f.kv, large), WEIR_OK);
    extend(&f, small, B);
    assert_int_equal(weir__kv_close(f.kv, small), WEIR_OK);
    end(&f);
}

static void the_limit_of_a_sequence_refuses_and_changes_nothing(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, 2 * B + 3);
    uint64_t id = open_one(&f);
    assert_int_equal(weir__kv_blocks_per_sequence(f.kv), 3);
    refused(&f, id, 0, 2 * B + 4, WEIR_ECONTEXT, "68 positions wanted, the context holds 67");
    refused(&f, id, 0, UINT32_MAX, WEIR_ECONTEXT, "the context holds 67");
    extend(&f, id, 2 * B + 3);
    refused(&f, id, 2 * B + 3, 1, WEIR_ECONTEXT, "the context holds 67");
    refused(&f, id, 2 * B + 3, UINT32_MAX, WEIR_ECONTEXT, "the context holds 67"); /* the sum would wrap */
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void ids_are_never_used_again(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    enum { ROUNDS = 300 };
    static uint64_t seen[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        seen[i] = open_one(&f);
        for (int j = 0; j < i; j++)
            assert_true(seen[j] != seen[i]);
        extend(&f, seen[i], 1);
        assert_int_equal(weir__kv_close(f.kv, seen[i]), WEIR_OK);
    }
    end(&f);
}

static void a_closed_id_does_nothing(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t old = open_one(&f);
    assert_int_equal(weir__kv_close(f.kv, old), WEIR_OK);
    uint64_t id = open_one(&f); /* in the same place */
    extend(&f, id, 3);
    assert_int_equal(weir__kv_slot(f.kv, old), -1);
    assert_int_equal(weir__kv_slot(f.kv, 0), -1);
    assert_int_equal(weir__kv_length(f.kv, old), 0);
    assert_int_equal(weir__kv_close(f.kv, old), WEIR_ESTATE);
    refused(&f, old, 0, 1, WEIR_ESTATE, "no sequence");
    weir__kv_commit(f.kv, old, 0);
    assert_int_equal(weir__kv_length(f.kv, id), 3);
    assert_int_equal(weir__kv_close(f.kv, id), WEIR_OK);
    end(&f);
}

static void a_sequence_too_many_is_refused(void **state) {
    (void)state;
    fixture f = begin(POSITIONS, POSITIONS);
    uint64_t ids[WEIR_MAX_SEQUENCES], more = 0;
    weir_error *error = NULL;
    for (int i = 0; i < WEIR_MAX_SEQUENCES; i++)
        ids[i] = open_one(&f);
    assert_int_equal(weir__kv_open(f.kv, &more, &error), WEIR_EBUSY);
    assert_int_equal(more, 0);
    weir_error_free(error);
    assert_int_equal(weir__kv_close(f.kv, ids[7]), WEIR_OK);
    ids[7] = open_one(&f);
    for (int i = 0; i < WEIR_MAX_SEQUENCES; i++)
        assert_int_equal(weir__kv_close(f.kv, ids[i]), WEIR_OK);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_sequence_is_empty),
        cmocka_unit_test(positions_are_rounded_up_to_blocks),
        cmocka_unit_test(reserved_positions_take_blocks_and_commit_sets_the_length),
        cmocka_unit_test(no_block_belongs_to_two_sequences),
        cmocka_unit_test(a_smaller_commit_truncates_and_gives_blocks_back),
        cmocka_unit_test(a_pass_may_begin_inside_what_is_written_but_not_beyond),
        cmocka_unit_test(an_empty_pool_refuses_and_changes_nothing),
        cmocka_unit_test(the_limit_of_a_sequence_refuses_and_changes_nothing),
        cmocka_unit_test(ids_are_never_used_again),
        cmocka_unit_test(a_closed_id_does_nothing),
        cmocka_unit_test(a_sequence_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
