/* test_verbs.c: verbs.def and the actors' handlers say the same. */
#include "model_fixture.h"

static const struct {
    const char *actor, *verb;
} listed[] = {
#define WEIR_VERB(actor, verb, arguments, reply, errors) {#actor, #verb},
#include "../../actors/verbs.def"
#undef WEIR_VERB
};
#define LISTED (sizeof listed / sizeof *listed)

static bool is_listed(const char *actor, const char *verb) {
    for (size_t i = 0; i < LISTED; i++)
        if (strcmp(listed[i].actor, actor) == 0 && strcmp(listed[i].verb, verb) == 0)
            return true;
    return false;
}

static void verbs_def_lists_every_handler(void **state) {
    (void)state;
    size_t handlers = 0;
    for (const weir_behaviour *const *b = weir__behaviours(); *b; b++)
        for (const weir_handler *h = (*b)->handlers; h->verb; h++, handlers++)
            if (!is_listed((*b)->name, h->verb))
                fail_msg("%s.%s is not in verbs.def", (*b)->name, h->verb);
    assert_int_equal(handlers, LISTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verbs_def_lists_every_handler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
